//! What can be wrong with a recording, where, and what helps.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clew_context::model::MessageId;

/// Places kept in a [`Report`]; what lies beyond is only counted.
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
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is something else.
    #[error(
        "{} is not an export: {found}; export the channel with DiscordChatExporter as JSON \
         (`--format Json`), or name a scenario file", path.display()
    )]
    NotAnExport {
        /// Which.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// It ends in the middle.
    #[error(
        "{place}: the file is cut off after {messages} messages; export it again, or use --lenient to replay what is there"
    )]
    CutOff {
        /// Where the last, incomplete part begins.
        place: Place,
        /// Whole messages before it.
        messages: u64,
    },
    /// One message or operation cannot be read.
    #[error("{place}: {problem}; export it again, or use --lenient to leave it out")]
    Bad {
        /// Where.
        place: Place,
        /// What is wrong.
        problem: String,
    },
    /// A scenario is kept in memory and may not be larger than this.
    #[error("{} is a scenario of {bytes} bytes; at most {max} are read", path.display())]
    TooLarge {
        /// Which.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        max: u64,
    },
    /// The file is not what it was when it was opened.
    #[error("{} changed while it was being read: message {id} is no longer where it was", path.display())]
    Changed {
        /// Which.
        path: PathBuf,
        /// The message that was looked for.
        id: MessageId,
    },
}

impl ArchiveError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Line, from 1.
    pub line: u64,
    /// Byte, from 0.
    pub offset: u64,
    /// The message's id, where it could be read.
    pub message: Option<String>,
}

impl fmt::Display for Place {
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

/// What was read, and what was left out by `lenient`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Files read.
    pub files: usize,
    /// Messages in the world.
    pub messages: u64,
    /// Messages that stood in more than one file; the last file's is used.
    pub duplicates: u64,
    /// Messages or operations left out because they could not be read.
    pub skipped: u64,
    /// Files that end in the middle.
    pub cut_off: u64,
    /// The first 20 of both, each with what is wrong.
    pub places: Vec<(Place, String)>,
}

impl Report {
    pub(super) fn note(&mut self, place: impl FnOnce() -> Place, problem: &str) {
        if self.places.len() < MAX_PLACES {
            self.places.push((place(), problem.to_owned()));
        }
    }
}

/// The place of a byte. Lines are counted only here, where something is wrong.
pub(super) fn place(path: &Path, offset: u64, message: Option<&str>) -> Place {
    Place {
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
        // Pieces between line breaks are one more than line breaks.
        line += chunk[..used].split(|byte| *byte == b'\n').count() as u64 - 1;
        reader.consume(used);
        left -= used;
    }
    Ok(line)
}
