//! The lines that `export` and `backup` write, and how they are read again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail, ensure};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::cli::exit::{Failure, cannot};
use clew_context::model::UserId;
use clew_store::{Record, Transcripts};

/// The longest line read, in bytes: what a saved conversation may take.
const LONGEST: u64 = 256 << 20;

/// Begins the line of a log of direct messages, whose own lines have no kind.
pub(super) const LOG_LINE: &str = r#"{"kind":"direct_message_log","#;

/// What the last line of a file says of those before it, so that one that was cut or
/// altered is told from a whole one.
#[derive(Debug, Clone, Default)]
struct Sum {
    entries: u64,
    digest: Sha256,
}

impl Sum {
    /// `line`: with its line break.
    fn add(&mut self, line: &[u8]) {
        self.entries += 1;
        self.digest.update(line);
    }

    /// As `sha256sum` prints it.
    fn hex(&self) -> String {
        HEXLOWER.encode(&self.digest.clone().finalize())
    }
}

/// Writes lines, and the one that ends them.
#[derive(Debug)]
pub(super) struct LinesWriter<W> {
    out: W,
    sum: Sum,
}

impl<W: Write> LinesWriter<W> {
    pub(super) fn new(out: W) -> Self {
        let sum = Sum::default();
        Self { out, sum }
    }

    /// Writes one line.
    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        self.sum.add(line.as_bytes());
        self.out.write_all(line.as_bytes())
    }

    /// Writes the last line. Returns how many stand before it.
    pub(super) fn finish(mut self) -> io::Result<(W, u64)> {
        let end = OtherLine::End {
            entries: self.sum.entries,
            sha256: Some(self.sum.hex()),
        };
        writeln!(self.out, "{}", serde_json::to_string(&end)?)?;
        Ok((self.out, self.sum.entries))
    }
}

/// Whether a file must have a last line that tells that it is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLine {
    Required,
    /// For what earlier versions exported, and for lines that somebody chose.
    Optional,
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
    /// The end of a file: how many entries stand before it, and their checksum.
    End {
        entries: u64,
        sha256: Option<String>,
    },
}

/// A file's lines.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    number: u64,
    text: Vec<u8>,
    last_line: LastLine,
    sum: Sum,
    is_ended: bool,
}

impl Lines {
    pub(super) fn open(path: &Path, last_line: LastLine) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|source| unread(path, source))?;
        Ok(Self {
            path: path.to_owned(),
            file: BufReader::new(file),
            number: 0,
            text: Vec::new(),
            last_line,
            sum: Sum::default(),
            is_ended: false,
        })
    }

    /// The next line and its length in bytes; none after the last one, of a file that is
    /// whole.
    pub(super) fn next(&mut self) -> Result<Option<(Line, usize)>, Failure> {
        self.text.clear();
        self.number += 1;
        let mut limited = (&mut self.file).take(LONGEST + 1);
        let read = limited.read_until(b'\n', &mut self.text);
        let read = read.map_err(|source| unread(&self.path, source))?;
        if read == 0 && !self.is_ended && self.last_line == LastLine::Required {
            let path = self.path.display();
            return Err(cannot(anyhow!(
                "nothing was imported: {path} ends without the line that tells that it is whole, \
                 so entries may be missing, opt-outs among them. Write it again; what an earlier \
                 version exported, or lines that you chose, are imported with --unchecked"
            )));
        }
        if read == 0 {
            return Ok(None);
        }
        match self.line() {
            Ok(line) => Ok(Some((line, read))),
            Err(error) => Err(cannot(error).context(format!(
                "line {} of {} cannot be imported: write the file again, or correct it, remove \
                 the last line and say --unchecked",
                self.number,
                self.path.display()
            ))),
        }
    }

    /// The line; an error says why it was refused, with none of its text.
    fn line(&mut self) -> anyhow::Result<Line> {
        ensure!(
            !self.is_ended,
            "the line before it ends the file: import one file at a time"
        );
        let is_short = self.text.len() as u64 <= LONGEST;
        ensure!(is_short, "it is longer than {} MiB", LONGEST >> 20);
        let is_whole = self.text.ends_with(b"\n");
        let text = std::str::from_utf8(&self.text).map_err(|_| anyhow!("it is not UTF-8"));
        match text.and_then(parse) {
            Ok(Line::End { entries, sha256 }) => {
                self.check(entries, sha256.as_deref())?;
                self.is_ended = true;
                Ok(Line::End { entries, sha256 })
            }
            Ok(line) => {
                self.sum.add(&self.text);
                Ok(line)
            }
            Err(_) if !is_whole => bail!(
                "the file ends within it: what wrote the file was not finished, so write another"
            ),
            Err(error) => Err(error),
        }
    }

    /// Whether the lines so far are those that the last one is about.
    fn check(&self, expected: u64, sha256: Option<&str>) -> anyhow::Result<()> {
        let found = self.sum.entries;
        ensure!(
            expected == found,
            "it says that {expected} entries stand before it, and there are {found}"
        );
        match sha256 {
            Some(sha256) if sha256 == self.sum.hex() => Ok(()),
            Some(_) => {
                bail!("its checksum is of other lines than those before it: the file was altered")
            }
            None if self.last_line == LastLine::Optional => Ok(()),
            None => bail!("it has no checksum: an earlier version wrote it"),
        }
    }
}

fn parse(text: &str) -> anyhow::Result<Line> {
    let error = match Record::from_line(text) {
        Ok(record) => return Ok(Line::Entry(Box::new(record))),
        Err(error) => error,
    };
    match serde_json::from_str(text) {
        Ok(OtherLine::DirectMessageLog) => Ok(Line::Log {
            user: Transcripts::owner_of(text)?,
            text: text.to_owned(),
        }),
        Ok(OtherLine::ToolOutput) => Ok(Line::Output),
        Ok(OtherLine::End { entries, sha256 }) => Ok(Line::End { entries, sha256 }),
        Err(_) => Err(error.into()),
    }
}

/// A line that is no entry of a store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum OtherLine {
    DirectMessageLog,
    ToolOutput,
    End {
        entries: u64,
        sha256: Option<String>,
    },
}

fn unread(path: &Path, error: io::Error) -> Failure {
    cannot(error).context(format!("cannot read {}", path.display()))
}
