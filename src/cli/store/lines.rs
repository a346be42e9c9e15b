//! The lines that `export` and `backup` write, read again one by one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::Error;
use clew_context::model::UserId;
use clew_store::{FormError, Record, Transcripts};

/// The longest line read, in bytes: what a saved conversation may take.
const LONGEST: u64 = 256 << 20;

/// Begins the line of a log of direct messages, whose own lines have no kind.
pub(super) const LOG_LINE: &str = r#"{"kind":"direct_message_log","#;

/// The last line of a file, which tells that it is whole.
pub(super) fn end_line(entries: u64) -> String {
    format!(r#"{{"kind":"end","entries":{entries}}}"#)
}

/// What a line holds.
#[derive(Debug)]
pub(super) enum Line {
    /// An entry of a store.
    Entry(Box<Record>),
    /// A line of somebody's log of direct messages.
    Log { user: UserId, text: String },
    /// A result of a tool.
    Output,
    /// The end of a file.
    End,
}

/// Why a line was refused; holds none of its text.
#[derive(Debug, thiserror::Error)]
pub(super) enum LineError {
    #[error("the file ends within it: what wrote the file was not finished, so write another")]
    Torn,
    #[error("it is not UTF-8")]
    NotText,
    #[error("it is longer than {} MiB", LONGEST >> 20)]
    TooLong,
    #[error("the line before it ends the file: import one file at a time")]
    AfterEnd,
    #[error("it says that {expected} entries stand before it, and there are {found}")]
    Incomplete { expected: u64, found: u64 },
    #[error(transparent)]
    Form(#[from] FormError),
}

/// A file's lines.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    number: u64,
    text: Vec<u8>,
    entries: u64,
    is_ended: bool,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| unread(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::new(file),
            number: 0,
            text: Vec::new(),
            entries: 0,
            is_ended: false,
        })
    }

    /// The next line and its length in bytes.
    pub(super) fn next(&mut self) -> Result<Option<(Line, usize)>, Error> {
        self.text.clear();
        self.number += 1;
        let mut limited = (&mut self.file).take(LONGEST + 1);
        let read = limited.read_until(b'\n', &mut self.text);
        let read = read.map_err(|source| unread(&self.path, source))?;
        if read == 0 {
            return Ok(None);
        }
        match self.line() {
            Ok(line) => Ok(Some((line, read))),
            Err(source) => Err(Error::Line {
                path: self.path.clone(),
                number: self.number,
                source,
            }),
        }
    }

    fn line(&mut self) -> Result<Line, LineError> {
        if self.is_ended {
            return Err(LineError::AfterEnd);
        }
        if self.text.len() as u64 > LONGEST {
            return Err(LineError::TooLong);
        }
        let is_whole = self.text.ends_with(b"\n");
        let text = std::str::from_utf8(&self.text).map_err(|_| LineError::NotText);
        match text.and_then(parse) {
            Ok(Parsed::Line(line)) => {
                self.entries += 1;
                Ok(line)
            }
            Ok(Parsed::End(expected)) if expected == self.entries => {
                self.is_ended = true;
                Ok(Line::End)
            }
            Ok(Parsed::End(expected)) => Err(LineError::Incomplete {
                expected,
                found: self.entries,
            }),
            Err(_) if !is_whole => Err(LineError::Torn),
            Err(error) => Err(error),
        }
    }
}

enum Parsed {
    Line(Line),
    End(u64),
}

fn parse(text: &str) -> Result<Parsed, LineError> {
    let error = match Record::from_line(text) {
        Ok(record) => return Ok(Parsed::Line(Line::Entry(Box::new(record)))),
        Err(error) => error,
    };
    match serde_json::from_str(text) {
        Ok(OtherLine::DirectMessageLog) => Ok(Parsed::Line(Line::Log {
            user: Transcripts::owner_of(text)?,
            text: text.to_owned(),
        })),
        Ok(OtherLine::ToolOutput) => Ok(Parsed::Line(Line::Output)),
        Ok(OtherLine::End { entries }) => Ok(Parsed::End(entries)),
        Err(_) => Err(error.into()),
    }
}

/// A line that is no entry of a store.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum OtherLine {
    DirectMessageLog,
    ToolOutput,
    End { entries: u64 },
}

fn unread(path: &Path, source: io::Error) -> Error {
    Error::Read {
        path: path.to_owned(),
        source,
    }
}
