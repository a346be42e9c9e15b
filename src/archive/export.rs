//! One pass over an exported channel: reads its header, and notes where each
//! message is. Nothing else of a message is kept, except for its participants.

use std::fs::File;
use std::path::Path;

use serde::Deserialize;

use super::error::{ArchiveError, Report, place, plain};
use super::header::{ExportChannel, ExportGuild};
use super::index::IndexEntry;
use super::participants::Participants;
use super::scan::{ScanError, Scanner, opening_id};
use super::wire::ExportMessage;
use clew_context::model::{Channel, MessageKind};

/// The number of bytes between two calls of the progress function.
const PROGRESS_STEP: u64 = 1 << 20;
/// Top-level keys that only scenarios have.
const SCENARIO_KEYS: [&str; 6] = ["bot", "users", "guilds", "dms", "timeline", "trigger"];

/// What a pass needs and what it fills.
pub(super) struct ExportPass<'a> {
    pub(super) path: &'a Path,
    /// The file's number in the index.
    pub(super) file: u32,
    pub(super) lenient: bool,
    pub(super) report: &'a mut Report,
    pub(super) participants: &'a mut Participants,
    /// Called with the number of bytes of this file that are done.
    pub(super) progress: &'a dyn Fn(u64),
}

/// An exported channel, or part of one.
pub(super) struct Export {
    pub(super) channel: Channel,
    /// In the order of the file.
    pub(super) entries: Vec<IndexEntry>,
    /// Whether it has a message of type 21: then it is a thread started from a
    /// message.
    pub(super) anchored: bool,
}

/// Reads one file; none if it is a scenario, to be read by `scenario`.
pub(super) fn read(pass: ExportPass<'_>) -> Result<Option<Export>, ArchiveError> {
    let file = File::open(pass.path).map_err(|error| ArchiveError::read(pass.path, error))?;
    let scanner = Scanner::new(file).map_err(|error| ArchiveError::read(pass.path, error))?;
    let mut reader = ExportReader {
        pass,
        scanner,
        value: Vec::new(),
        guild: None,
        channel: None,
        entries: Vec::new(),
        anchored: false,
        has_messages: false,
        keys: Vec::new(),
        past_messages: false,
        reported: 0,
    };
    reader.sniff()?;
    let ended = reader.members();
    reader.conclude(ended)
}

struct ExportReader<'a> {
    pass: ExportPass<'a>,
    scanner: Scanner,
    /// The value read last.
    value: Vec<u8>,
    guild: Option<ExportGuild>,
    channel: Option<ExportChannel>,
    entries: Vec<IndexEntry>,
    anchored: bool,
    /// Whether there is a list of messages, even an empty one.
    has_messages: bool,
    /// Top-level keys, to describe a file that is not an export.
    keys: Vec<String>,
    /// Whether the messages are over: nothing after them is needed.
    past_messages: bool,
    reported: u64,
}

enum ExportEnd {
    Whole,
    Scenario,
}

enum ExportStop {
    /// The file is not valid JSON from some place on.
    Damage(ScanError),
    Error(ArchiveError),
}

impl From<ScanError> for ExportStop {
    fn from(error: ScanError) -> Self {
        Self::Damage(error)
    }
}

impl From<std::io::Error> for ExportStop {
    fn from(error: std::io::Error) -> Self {
        Self::Damage(error.into())
    }
}

impl ExportReader<'_> {
    /// Recognises other kinds of files by their first byte.
    fn sniff(&mut self) -> Result<(), ArchiveError> {
        let first = self.scanner.peek();
        let first = first.map_err(|error| ArchiveError::read(self.pass.path, error))?;
        let found = match first {
            Some(b'{') => return Ok(()),
            None => "it is empty",
            Some(b'<') => "it looks like HTML",
            Some(b'[') => "it is a JSON list",
            Some(_) => "it is not JSON",
        };
        Err(not_an_export(self.pass.path, found))
    }

    /// Turns the way the reading ended into a result.
    fn conclude(
        mut self,
        ended: Result<ExportEnd, ExportStop>,
    ) -> Result<Option<Export>, ArchiveError> {
        let usable = self.pass.lenient && self.channel.is_some();
        match ended {
            Ok(ExportEnd::Scenario) => Ok(None),
            Ok(ExportEnd::Whole) => self.finish().map(Some),
            Err(ExportStop::Damage(ScanError::End)) => self.cut_off().map(Some),
            Err(ExportStop::Damage(ScanError::Syntax(at, what))) if usable => {
                let ended = self.rescue(at, what);
                self.conclude(ended)
            }
            Err(ExportStop::Damage(error)) => Err(self.damage(error)),
            Err(ExportStop::Error(error)) => Err(error),
        }
    }

    /// Damage outside of a message: continues at the next message, if there is
    /// one. Each call gets further in the file, so this ends.
    fn rescue(&mut self, at: u64, what: &str) -> Result<ExportEnd, ExportStop> {
        self.value.clear();
        self.note(at, what);
        if !self.past_messages && self.scanner.resync(at)? {
            self.elements()?;
        }
        Ok(ExportEnd::Whole)
    }

    /// Reads the members of the top-level object.
    fn members(&mut self) -> Result<ExportEnd, ExportStop> {
        self.scanner.expect(b'{', "an object is missing")?;
        if self.scanner.take(b'}')? {
            return self.end();
        }
        loop {
            self.scanner.value(&mut self.value)?;
            let key: String = self.parsed()?;
            self.scanner.expect(b':', "a `:` is missing")?;
            match key.as_str() {
                "guild" => self.guild = self.member()?,
                "channel" => self.channel = self.member()?,
                "messages" => {
                    self.has_messages = true;
                    if !self.messages()? {
                        return Ok(ExportEnd::Whole);
                    }
                }
                other if self.channel.is_none() && SCENARIO_KEYS.contains(&other) => {
                    return Ok(ExportEnd::Scenario);
                }
                _ => self.scanner.skip()?,
            }
            self.keys.push(key);
            if !self.scanner.take(b',')? {
                self.scanner.expect(b'}', "a `,` or `}` is missing")?;
                return self.end();
            }
        }
    }

    /// Checks that nothing follows the last bracket: a second export in the same
    /// file would be taken for part of the first.
    fn end(&mut self) -> Result<ExportEnd, ExportStop> {
        self.past_messages = true;
        if self.scanner.peek()?.is_none() {
            return Ok(ExportEnd::Whole);
        }
        let at = self.scanner.offset();
        Err(ScanError::Syntax(at, "more follows after the end of the export").into())
    }

    /// One member's value; `null` counts as absent.
    fn member<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<T>, ExportStop> {
        self.scanner.value(&mut self.value)?;
        self.parsed()
    }

    /// Parses the value read last.
    fn parsed<T: for<'de> Deserialize<'de>>(&self) -> Result<T, ExportStop> {
        serde_json::from_slice(&self.value).map_err(|error| {
            let offset = self.scanner.offset() - self.value.len() as u64;
            ExportStop::Error(self.bad(offset, plain(&error)))
        })
    }

    /// Reads the messages; false if nothing after them can be read.
    fn messages(&mut self) -> Result<bool, ExportStop> {
        self.scanner.expect(b'[', "`messages` is no list")?;
        if self.scanner.take(b']')? {
            return Ok(true);
        }
        self.elements()
    }

    /// Reads from the beginning of a message to the end of the list.
    fn elements(&mut self) -> Result<bool, ExportStop> {
        loop {
            self.scanner.peek()?;
            let start = self.scanner.offset();
            self.tell_progress(start);
            let goes_on = match self.scanner.value(&mut self.value) {
                Ok(()) => self.message(start)?,
                Err(ScanError::Syntax(at, what)) => self.damaged(start + 1, at, what)?,
                Err(ScanError::End) => self.ended_within(start)?,
                Err(error) => return Err(error.into()),
            };
            match goes_on {
                NextMessage::Resynced => continue,
                NextMessage::Nothing => return Ok(false),
                NextMessage::Separator => {}
            }
            if self.scanner.take(b']')? && self.list_ends()? {
                self.past_messages = true;
                return Ok(true);
            }
            let missing = "a `,` between messages is missing";
            match self.scanner.expect(b',', missing) {
                Ok(()) => {}
                Err(ScanError::Syntax(at, what)) => {
                    self.value.clear();
                    if matches!(self.damaged(at, at, what)?, NextMessage::Nothing) {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// After a `]`: whether it ended the list; not so if another message follows.
    fn list_ends(&mut self) -> Result<bool, ExportStop> {
        Ok(matches!(self.scanner.peek()?, None | Some(b',' | b'}')))
    }

    /// Notes where the message read last is.
    fn message(&mut self, start: u64) -> Result<NextMessage, ExportStop> {
        let wire = match ExportMessage::parse(&self.value) {
            Ok(wire) => wire,
            Err(error) => {
                let at = start + position(&self.value, &error);
                return self.damaged(start + 1, at, &plain(&error));
            }
        };
        let essentials = match wire.essentials() {
            Ok(essentials) => essentials,
            Err(problem) if self.pass.lenient => {
                self.note(start, &problem);
                return Ok(NextMessage::Separator);
            }
            Err(problem) => return Err(ExportStop::Error(self.bad(start, problem))),
        };
        self.anchored |= essentials.kind == MessageKind::ThreadStarter;
        self.pass.participants.wrote(&essentials.author);
        for mention in &essentials.mentions {
            self.pass.participants.mentioned(mention);
        }
        self.entries.push(IndexEntry {
            id: essentials.id,
            offset: start,
            length: u32::try_from(self.value.len()).unwrap_or(u32::MAX),
            file: self.pass.file,
        });
        Ok(NextMessage::Separator)
    }

    /// The file is not valid JSON at `at`. Looks for the next message from `resume` on.
    fn damaged(&mut self, resume: u64, at: u64, problem: &str) -> Result<NextMessage, ExportStop> {
        if !self.pass.lenient {
            return Err(ExportStop::Error(self.bad(at, problem.to_owned())));
        }
        self.note(at, problem);
        let found = self.scanner.resync(resume)?;
        Ok(if found {
            NextMessage::Resynced
        } else {
            NextMessage::Nothing
        })
    }

    /// The file ends inside a message: it is cut off, unless a missing quote or
    /// bracket made the rest look like one message.
    fn ended_within(&mut self, start: u64) -> Result<NextMessage, ExportStop> {
        if !self.scanner.resync(start + 1)? {
            // Report the beginning of the last message as the place.
            self.scanner.rewind(start)?;
            return Err(ScanError::End.into());
        }
        self.damaged(start + 1, start, "a bracket or quote is never closed")
    }

    fn finish(self) -> Result<Export, ArchiveError> {
        let Some(wire) = self.channel else {
            let keys = match self.keys.as_slice() {
                [] => "an empty JSON object".to_owned(),
                keys => format!("JSON without a `channel`; it has `{}`", first(keys)),
            };
            return Err(not_an_export(self.pass.path, &keys));
        };
        if !self.has_messages {
            let found = "JSON with a `channel` and no `messages`";
            if !self.pass.lenient {
                return Err(not_an_export(self.pass.path, found));
            }
            self.pass.report.skipped += 1;
            self.pass
                .report
                .note(|| place(self.pass.path, 0, None), found);
        }
        Ok(Export {
            channel: wire.into_channel(self.guild.as_ref()),
            entries: self.entries,
            anchored: self.anchored,
        })
    }

    /// The file ends in the middle; `lenient` uses what is there, provided that
    /// the channel is known.
    fn cut_off(self) -> Result<Export, ArchiveError> {
        let offset = self.scanner.offset();
        let place = || place(self.pass.path, offset, opening_id(&self.value));
        if self.pass.lenient && self.channel.is_some() {
            self.pass.report.cut_off += 1;
            self.pass.report.note(place, "the file is cut off here");
            return self.finish();
        }
        Err(ArchiveError::CutOff {
            place: place(),
            messages: self.entries.len() as u64,
        })
    }

    fn damage(&self, error: ScanError) -> ArchiveError {
        match error {
            ScanError::Io(error) => ArchiveError::read(self.pass.path, error),
            ScanError::Syntax(at, what) => self.bad(at, what.to_owned()),
            ScanError::End => self.bad(self.scanner.offset(), "the file ends here".to_owned()),
        }
    }

    fn bad(&self, offset: u64, problem: String) -> ArchiveError {
        ArchiveError::Bad {
            place: place(self.pass.path, offset, opening_id(&self.value)),
            problem,
        }
    }

    fn note(&mut self, offset: u64, problem: &str) {
        let id = opening_id(&self.value);
        self.pass.report.skipped += 1;
        self.pass
            .report
            .note(|| place(self.pass.path, offset, id), problem);
    }

    fn tell_progress(&mut self, offset: u64) {
        if offset >= self.reported + PROGRESS_STEP {
            self.reported = offset;
            (self.pass.progress)(offset);
        }
    }
}

/// Where to continue reading messages.
enum NextMessage {
    /// A comma or the end of the list has to follow.
    Separator,
    /// At the beginning of a message.
    Resynced,
    /// Nowhere: there are no more messages.
    Nothing,
}

fn not_an_export(path: &Path, found: &str) -> ArchiveError {
    ArchiveError::NotAnExport {
        path: path.to_owned(),
        found: found.to_owned(),
    }
}

/// The first few keys, for an error.
fn first(keys: &[String]) -> String {
    let shown: Vec<&str> = keys.iter().take(4).map(String::as_str).collect();
    shown.join("`, `")
}

/// The offset that a parser's error refers to.
pub(super) fn position(bytes: &[u8], error: &serde_json::Error) -> u64 {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    (before + error.column().saturating_sub(1)) as u64
}
