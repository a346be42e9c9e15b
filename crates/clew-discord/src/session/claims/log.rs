//! The file of claims: a JSON object in each line, the last of a claim counts.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::super::file::{Lasts, replace};
use super::KEPT;
use clew_context::model::{InteractionId, MessageId, UnixMillis, UserId};

/// Once so many lines more than claims are in the file, it is written anew.
const MOST_SUPERSEDED: usize = 4_096;

/// What a claim is found by.
pub(super) type Hash = u64;

/// Hashes and seals with the key of the state folder.
#[derive(Debug)]
pub(super) struct Keys(Option<Hmac<Sha256>>);

impl Keys {
    pub(super) fn new(key: &[u8]) -> Self {
        Self(Hmac::new_from_slice(key).ok())
    }

    fn hash(&self, what: &str, id: u64, number: usize) -> u64 {
        let Some(mut mac) = self.0.clone() else {
            return id;
        };
        mac.update(what.as_bytes());
        mac.update(&id.to_le_bytes());
        mac.update(&number.to_le_bytes());
        let bytes = mac.finalize().into_bytes();
        let first = bytes.iter().take(size_of::<u64>());
        first.fold(0, |hash, byte| hash << 8 | u64::from(*byte))
    }

    pub(super) fn of_question(&self, id: MessageId) -> Hash {
        self.hash("question", id.get(), 0)
    }

    pub(super) fn of_call(&self, id: InteractionId) -> Hash {
        self.hash("call", id.get(), 0)
    }

    pub(super) fn of_user(&self, id: UserId) -> Hash {
        self.hash("user", id.get(), 0)
    }

    pub(super) fn of_answer(&self, id: MessageId) -> Hash {
        self.hash("answer", id.get(), 0)
    }

    /// The messages of an answer, to be read only by who knows the question.
    pub(super) fn sealed(&self, question: MessageId, posted: &[MessageId]) -> Vec<(u64, Hash)> {
        let seal = |(number, id): (usize, &MessageId)| {
            let pad = self.hash("posted", question.get(), number);
            (id.get() ^ pad, self.of_answer(*id))
        };
        posted.iter().enumerate().map(seal).collect()
    }

    /// The messages that a line seals.
    pub(super) fn posted(&self, question: MessageId, line: &Line) -> Vec<MessageId> {
        let open = |(number, (sealed, mark)): (usize, &(u64, Hash))| {
            let id = sealed ^ self.hash("posted", question.get(), number);
            let id = (id != 0).then(|| MessageId::new(id))?;
            (self.of_answer(id) == *mark).then_some(id)
        };
        line.posted.iter().enumerate().filter_map(open).collect()
    }
}

/// A claim as it was at some time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) claim: Hash,
    /// In Unix milliseconds.
    pub(super) at: i64,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) restarts: u32,
    /// Each message of the answer, sealed, and a keyed hash of its id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) posted: Vec<(u64, Hash)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) over: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_none(number: &u32) -> bool {
    *number == 0
}

impl Line {
    pub(super) const fn at(&self) -> UnixMillis {
        UnixMillis(self.at)
    }

    /// As it is kept.
    pub(super) fn text(&self) -> String {
        // A line of numbers can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it names that message of ours.
    pub(super) fn marks(&self, answer: Hash) -> bool {
        self.posted.iter().any(|(_, mark)| *mark == answer)
    }
}

/// Those that are still kept, oldest claim first; there is one line of each.
pub(super) fn parsed(lines: &[String], now: UnixMillis) -> Vec<Line> {
    let lines = lines.iter().map(|line| serde_json::from_str(line));
    still_kept(lines.filter_map(Result::ok).collect(), now)
}

fn still_kept(mut lines: Vec<Line>, now: UnixMillis) -> Vec<Line> {
    let oldest = now.before(KEPT);
    lines.retain(|line| line.at() >= oldest);
    lines.sort_by_key(Line::at);
    lines
}

/// The last line of each claim that is still kept, oldest claim first.
pub(super) fn read(path: &Path, now: UnixMillis) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut places: HashMap<Hash, usize> = HashMap::new();
    let reading = each_line(path, |line, _| {
        if let Some(place) = places.get(&line.claim) {
            lines[*place] = line;
        } else {
            places.insert(line.claim, lines.len());
            lines.push(line);
        }
        Ok(())
    });
    if let Err(error) = reading {
        tracing::warn!(path = %path.display(), %error,
            "what was answered cannot be read, so a question may be answered twice: make \
             STATE_DIR readable for the user that runs clew");
    }
    still_kept(lines, now)
}

/// Reads one line after the other, with its text. One cut off by a kill is skipped; a missing
/// file has none.
fn each_line(path: &Path, mut visit: impl FnMut(Line, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let (mut reader, mut text) = (BufReader::new(file), Vec::new());
    while reader.read_until(b'\n', &mut text)? > 0 {
        if let Ok(line) = serde_json::from_slice::<Line>(&text) {
            visit(line, text.trim_ascii_end())?;
        }
        text.clear();
    }
    Ok(())
}

/// The file, written to at its end.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    file: Option<File>,
    /// The lines in it, and the claims that they are about.
    lines: usize,
    claims: usize,
    /// When the oldest of them was noted.
    oldest: Option<UnixMillis>,
    has_failed: bool,
}

impl Log {
    /// The file, written anew with these lines only.
    pub(super) fn new(path: PathBuf, lines: &[Line]) -> Self {
        let mut log = Self {
            path,
            file: None,
            lines: 0,
            claims: 0,
            oldest: None,
            has_failed: false,
        };
        let replaced = log.replace(|new| {
            for line in lines {
                serde_json::to_writer(&mut *new, line)?;
                new.write_all(b"\n")?;
            }
            Ok((lines.len(), lines.iter().map(Line::at).min()))
        });
        log.told(replaced);
        log
    }

    pub(super) fn append(&mut self, line: &Line) {
        let appended = self.try_append(line);
        self.told(appended);
    }

    fn try_append(&mut self, line: &Line) -> io::Result<()> {
        if self.lines > self.claims.saturating_mul(2) + MOST_SUPERSEDED {
            self.shorten(line.at())?;
        }
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(open(&self.path)?),
        };
        // One call, so that a kill leaves whole lines.
        file.write_all(&text)?;
        self.lines += 1;
        self.oldest.get_or_insert(line.at());
        Ok(())
    }

    /// Whether it holds what was to be kept half as long.
    pub(super) fn is_old(&self, now: UnixMillis) -> bool {
        self.oldest
            .is_some_and(|oldest| oldest < now.before(2 * KEPT))
    }

    /// Removes what is kept no longer.
    pub(super) fn tidy(&mut self, now: UnixMillis) {
        let shortened = self.shorten(now);
        self.told(shortened);
    }

    /// Writes the file anew with the last line of each claim that is still kept: a line at a
    /// time, since there may be an hour of them.
    fn shorten(&mut self, now: UnixMillis) -> io::Result<()> {
        let (path, oldest) = (self.path.clone(), now.before(KEPT));
        let mut last: HashMap<Hash, usize> = HashMap::new();
        let mut number = 0;
        each_line(&path, |line, _| {
            last.insert(line.claim, number);
            number += 1;
            Ok(())
        })?;
        self.replace(|new| {
            let (mut number, mut claims, mut first) = (0, 0, None);
            each_line(&path, |line, text| {
                if line.at() >= oldest && last.get(&line.claim) == Some(&number) {
                    new.write_all(text)?;
                    new.write_all(b"\n")?;
                    claims += 1;
                    first = first.into_iter().chain([line.at()]).min();
                }
                number += 1;
                Ok(())
            })?;
            Ok((claims, first))
        })
    }

    /// `write` returns how many claims the new file has, a line each, and when the oldest was noted.
    fn replace(
        &mut self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<(usize, Option<UnixMillis>)>,
    ) -> io::Result<()> {
        let (mut claims, mut oldest) = (0, None);
        replace(&self.path, Lasts::Process, |new| {
            (claims, oldest) = write(new)?;
            Ok(())
        })?;
        self.oldest = oldest;
        self.file = None;
        (self.lines, self.claims) = (claims, claims);
        Ok(())
    }

    /// Says once that it cannot be written.
    fn told(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                tracing::warn!(path = %self.path.display(), %error,
                    "what is answered cannot be noted, so after a crash a question may be answered \
                     twice: make STATE_DIR writable for the user that runs clew");
            }
            Err(_) => {}
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)
}
