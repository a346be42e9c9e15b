//! A log's lines and files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::ser::SerializeMap;

use super::super::Error;
use super::super::json::{
    self, Fields, Form, FormError, Object, ROLE, TEXT, TIME, TURN, Time, id, ids,
};
use crate::model::{StoredMessage, StoredRole};
use clew_context::model::{ChannelId, MessageId, TurnId, UnixMillis, UserId};

/// One line of a log.
pub(super) struct LogLine {
    pub(super) at: UnixMillis,
    pub(super) role: StoredRole,
    pub(super) user: UserId,
    pub(super) channel: ChannelId,
    pub(super) turn: TurnId,
    pub(super) message: Option<MessageId>,
    pub(super) parts: Vec<MessageId>,
    pub(super) text: String,
}

impl Form for LogLine {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        object.field("ts", Time(self.at))?;
        object.field("role", self.role.as_str())?;
        object.field("user", self.user)?;
        object.field("channel", self.channel)?;
        object.field("turn", self.turn.to_string())?;
        object.maybe("message", self.message)?;
        object.list("parts", &self.parts)?;
        object.field("text", &self.text)
    }
}

impl LogLine {
    pub(super) fn of(row: &StoredMessage) -> Self {
        Self {
            at: row.timestamp,
            role: row.role,
            user: row.owner,
            channel: row.channel,
            turn: row.turn,
            message: row.message,
            parts: row.parts.clone(),
            text: row.content.clone(),
        }
    }

    pub(super) fn read(text: &str) -> Result<Self, FormError> {
        let fields = Fields::parse(text.as_bytes())?;
        Ok(Self {
            at: fields.need("ts", TIME)?,
            role: fields.need("role", ROLE)?,
            user: fields.need("user", id())?,
            channel: fields.need("channel", id())?,
            turn: fields.need("turn", TURN)?,
            message: fields.maybe("message", id())?,
            parts: fields.maybe("parts", ids())?.unwrap_or_default(),
            text: fields.need("text", TEXT)?,
        })
    }

    /// Encodes it, with a line break.
    pub(super) fn to_text(&self) -> String {
        json::line(self) + "\n"
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = MessageId> {
        self.message.into_iter().chain(self.parts.iter().copied())
    }
}

/// A file's lines as bytes, since a kill may split a character. `None` if there
/// is no file.
pub(super) fn lines_of(
    path: &Path,
) -> Result<Option<impl Iterator<Item = io::Result<Vec<u8>>> + use<>>, Error> {
    match File::open(path) {
        Ok(file) => Ok(Some(BufReader::new(file).split(b'\n'))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// Appends text, starting a new line if the last one is torn.
pub(super) fn add(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.create(true).read(true).append(true).mode(0o600);
    let mut file = options.open(path)?;
    let mut whole = String::new();
    let length = file.metadata()?.len();
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            whole.push('\n');
        }
    }
    whole.push_str(text);
    let written = file
        .write_all(whole.as_bytes())
        .and_then(|()| file.sync_all());
    if written.is_err() {
        // Log the turn whole or not at all, even on a full disk.
        file.set_len(length)?;
    }
    written
}
