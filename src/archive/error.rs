//! What can be wrong with a recording: what, where, and the remedy.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clew_context::model::MessageId;

/// The most places kept in a [`Report`]; further ones are only counted.
pub(super) const MAX_PLACES: usize = 20;

/// A recording that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// No file was named.
    #[error("no file to read: name exported channels or scenario files")]
    NoFiles,
    /// The file could not be opened or read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// It is not a regular file, so messages cannot be read from their offsets.
    #[error(
        "{} is {what}; {remedy}", path.display()
    )]
    NoFile {
        path: PathBuf,
        /// What it is.
        what: &'static str,
        remedy: &'static str,
    },
    /// It is not an export.
    #[error(
        "{} is not an export: {found}; export the channel with DiscordChatExporter as JSON \
         (`--format Json`), or name a scenario file", path.display()
    )]
    NotAnExport {
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// The file ends in the middle.
    #[error(
        "{place}: the file is cut off after {messages} messages; export it again, or use --lenient to replay what is there"
    )]
    CutOff {
        /// Where the last, incomplete part begins.
        place: FilePlace,
        /// The complete messages before it.
        messages: u64,
    },
    /// One message or operation cannot be read.
    #[error("{place}: {problem}; export it again, or use --lenient to leave it out")]
    Bad { place: FilePlace, problem: String },
    /// A scenario is kept in memory, so its size is limited.
    #[error("{} is a scenario of {bytes} bytes; at most {max} are read", path.display())]
    TooLarge { path: PathBuf, bytes: u64, max: u64 },
    /// The file has changed since it was opened.
    #[error("{} changed while it was being read: message {id} is no longer where it was", path.display())]
    Changed {
        path: PathBuf,
        /// The message that was looked for.
        id: MessageId,
    },
}

impl ArchiveError {
    /// Refuses what cannot be opened twice and read from any offset: pipes, folders.
    pub(super) fn unless_file(path: &Path, found: &Metadata) -> Result<(), Self> {
        let (what, remedy) = if found.is_file() {
            return Ok(());
        } else if found.is_dir() {
            ("a folder", "name the files in it")
        } else {
            (
                "a pipe or a device, and messages are read from where they stand in a file",
                "write it to a file first and name that",
            )
        };
        Err(Self::NoFile {
            path: path.to_owned(),
            what,
            remedy,
        })
    }

    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    pub path: PathBuf,
    /// The line, from 1; 0 if it could not be found out.
    pub line: u64,
    /// The byte offset, from 0.
    pub offset: u64,
    /// The message's id, where it could be read.
    pub message: Option<String>,
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{} (byte {})",
            self.path.display(),
            self.line,
            self.offset
        )?;
        match &self.message {
            Some(id) => write!(f, ", message {id}"),
            None => Ok(()),
        }
    }
}

/// What was read, and what `lenient` left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub files: usize,
    /// Messages in the recording.
    pub messages: u64,
    /// Messages that were in more than one file; the last file's is used.
    pub duplicates: u64,
    /// Messages or operations left out because they could not be read.
    pub skipped: u64,
    /// Files that end in the middle.
    pub cut_off: u64,
    /// The first 20 skipped messages or cut-off files, each with what is wrong.
    pub places: Vec<(FilePlace, String)>,
}

impl Report {
    pub(super) fn note(&mut self, place: impl FnOnce() -> FilePlace, problem: &str) {
        if self.places.len() < MAX_PLACES {
            self.places.push((place(), problem.to_owned()));
        }
    }
}

/// A parser's error in JSON's terms instead of this program's. Its position is
/// dropped: it counts from the message's beginning, and [`FilePlace`] has the file's.
pub(super) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rfind(" at line ").map_or(&*text, |at| &text[..at]);
    if text.starts_with("data did not match any variant") {
        return "a value of none of the forms that are known".to_owned();
    }
    let Some((found, expected)) = text.rsplit_once(", expected ") else {
        return text.to_owned();
    };
    let found = found.replace("invalid type: map", "an object stands there");
    let found = found.replace("invalid type: sequence", "a list stands there");
    let expected = match expected.split(' ').next().unwrap_or_default() {
        "struct" | "enum" | "internally" => "an object",
        "u8" | "u16" | "u32" | "u64" | "i64" | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        _ => expected,
    };
    format!("{found}, expected {expected}")
}

/// The place of a byte. Lines are counted only here, when something is wrong.
pub(super) fn place(path: &Path, offset: u64, message: Option<&str>) -> FilePlace {
    FilePlace {
        path: path.to_owned(),
        line: line_of(path, offset).unwrap_or(0),
        offset,
        message: message.map(str::to_owned),
    }
}

fn line_of(path: &Path, offset: u64) -> io::Result<u64> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut left = usize::try_from(offset).unwrap_or(usize::MAX);
    let mut line = 1;
    while left > 0 {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let used = chunk.len().min(left);
        // There is one piece more than there are line breaks.
        line += chunk[..used].split(|byte| *byte == b'\n').count() as u64 - 1;
        reader.consume(used);
        left -= used;
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn a_parsers_words_are_json_s() {
        #[derive(Debug, Deserialize)]
        struct Wire {
            #[expect(dead_code, reason = "only its errors are looked at")]
            small: u8,
        }
        #[derive(Debug, Deserialize)]
        #[serde(untagged)]
        enum Either {
            #[expect(dead_code, reason = "only its errors are looked at")]
            Small(u8),
        }
        #[track_caller]
        fn check<T: for<'de> Deserialize<'de> + fmt::Debug>(text: &str, expected: &str) {
            let error = serde_json::from_str::<T>(text).unwrap_err();
            assert_eq!(plain(&error), expected);
        }
        check::<Wire>("null", "invalid type: null, expected an object");
        check::<Wire>("7", "invalid type: integer `7`, expected an object");
        check::<Wire>("{}", "missing field `small`");
        let large = "invalid value: integer `300`, expected a whole number";
        check::<Wire>(r#"{"small":300}"#, large);
        let object = "an object stands there, expected a whole number";
        check::<Wire>(r#"{"small":{}}"#, object);
        check::<Either>("null", "a value of none of the forms that are known");
        check::<Wire>(r#"{"small":1"#, "EOF while parsing an object");
    }
}
