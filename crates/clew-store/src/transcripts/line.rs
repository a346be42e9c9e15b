//! A log's lines and files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::super::Error;
use super::super::json::{self, Field as _, Fields, FormError, Object};
use crate::model::{AgentName, Scope, StoredMessage};

/// A row as a line of a log.
struct LogLine<'a>(&'a StoredMessage);

impl Serialize for LogLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Self(row), mut object) = (self, Object::new(serializer)?);
        row.timestamp.put("ts", &mut object)?;
        row.role.put("role", &mut object)?;
        row.owner.put("user", &mut object)?;
        row.channel.put("channel", &mut object)?;
        row.turn.put("turn", &mut object)?;
        row.message.put("message", &mut object)?;
        object.list("parts", &row.parts)?;
        row.content.put("text", &mut object)?;
        object.end()
    }
}

/// Encodes a row's line, with a line break.
pub(super) fn to_line(row: &StoredMessage) -> String {
    json::line(&LogLine(row)) + "\n"
}

/// The row of a line, as far as a log holds it.
pub(super) fn read_line(text: &str) -> Result<StoredMessage, FormError> {
    let fields = Fields::parse(text.as_bytes())?;
    let timestamp = fields.need("ts")?;
    let owner = fields.need("user")?;
    Ok(StoredMessage {
        scope: Scope::Direct(owner),
        agent: AgentName::default_agent(),
        turn: fields.need("turn")?,
        ordinal: 0,
        role: fields.need("role")?,
        guild: None,
        channel: fields.need("channel")?,
        owner,
        author_name: None,
        content: fields.need("text")?,
        tool_calls: None,
        tool_call_id: None,
        timestamp,
        message: fields.maybe("message")?,
        parts: fields.maybe("parts")?.unwrap_or_default(),
        target: None,
        restored_from: None,
        sources: Vec::new(),
    })
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
