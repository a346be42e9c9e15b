//! The JSON of stored data, lossless in both directions: ids as text, times as
//! RFC 3339. Unknown fields are ignored; errors name the field and hold none of
//! the file's text.

mod facts;
mod fields;

use serde::Serialize;
use serde::ser::SerializeMap;

pub use fields::FormError;
use fields::form;
pub(super) use fields::{Field, Fields, Form, Object, Written};

use super::Record;
use crate::model::{
    ClearKey, ContextSnapshot, ContextSnapshotInfo, GuildSettings, StoredMessage, StoredReceipt,
};

impl Record {
    /// Encodes a single line of JSON without a line break, `kind` first.
    pub fn to_line(&self) -> String {
        line(&Written(self))
    }

    /// Parses such a line.
    ///
    /// # Errors
    ///
    /// Names the field that is missing or invalid.
    pub fn from_line(text: &str) -> Result<Self, FormError> {
        Self::read(&mut Fields::parse(text.as_bytes())?)
    }
}

/// A server's settings as an object.
pub(super) fn write_settings(settings: &GuildSettings) -> String {
    line(&Written(settings))
}

/// Parses what [`write_settings`] wrote.
pub(super) fn read_settings(text: &str) -> Result<GuildSettings, FormError> {
    GuildSettings::read(&mut Fields::parse(text.as_bytes())?)
}

/// A snapshot as a human-readable file that can be restored without loss.
pub(super) fn write_snapshot(snapshot: &ContextSnapshot) -> String {
    indented(&Written(snapshot))
}

/// Parses what [`write_snapshot`] wrote.
pub(super) fn read_snapshot(text: &[u8]) -> Result<ContextSnapshot, FormError> {
    ContextSnapshot::read(&mut Fields::parse(text)?)
}

/// Human-readable JSON, ending in a line break.
pub(super) fn indented(object: &impl Serialize) -> String {
    // Cannot fail: our forms only have text keys.
    let mut text = serde_json::to_string_pretty(object).unwrap_or_default();
    text.push('\n');
    text
}

/// The same without line breaks.
pub(super) fn line(object: &impl Serialize) -> String {
    serde_json::to_string(object).unwrap_or_default()
}

impl Form for Record {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        let mut kind = |kind| object.field("kind", kind);
        match self {
            Self::Message(_) => kind("message"),
            Self::Marker(..) => kind("marker"),
            Self::Snapshot(_) => kind("snapshot"),
            Self::Receipt(_) => kind("receipt"),
            Self::Fact(_) => kind("fact"),
            Self::OptOut(..) => kind("opt_out"),
            Self::Settings(..) => kind("settings"),
            Self::Agent(..) => kind("agent"),
            Self::Departure(..) => kind("departure"),
        }?;
        match self {
            Self::Message(message) => message.write(object),
            Self::Marker(key, at) => {
                key.write(object)?;
                at.put("at", object)
            }
            Self::Snapshot(snapshot) => snapshot.write(object),
            Self::Receipt(receipt) => receipt.write(object),
            Self::Fact(fact) => fact.write(object),
            Self::OptOut(user, since) => {
                user.put("user", object)?;
                since.put("since", object)
            }
            Self::Settings(guild, settings) => {
                guild.put("guild", object)?;
                settings.write(object)
            }
            Self::Agent(agent, created) => {
                agent.put("agent", object)?;
                created.put("created", object)
            }
            Self::Departure(guild, at) => {
                guild.put("guild", object)?;
                at.put("at", object)
            }
        }
    }

    fn read(fields: &mut Fields) -> Result<Self, FormError> {
        Ok(match fields.need::<String>("kind")?.as_str() {
            "message" => Self::Message(Form::read(fields)?),
            "marker" => Self::Marker(Form::read(fields)?, fields.need("at")?),
            "snapshot" => Self::Snapshot(Form::read(fields)?),
            "receipt" => Self::Receipt(Form::read(fields)?),
            "fact" => Self::Fact(Form::read(fields)?),
            "opt_out" => Self::OptOut(fields.need("user")?, fields.need("since")?),
            "settings" => Self::Settings(fields.need("guild")?, Form::read(fields)?),
            "agent" => Self::Agent(fields.need("agent")?, fields.need("created")?),
            "departure" => Self::Departure(fields.need("guild")?, fields.need("at")?),
            _ => return Err(fields.unfit("kind", "a kind of entry")),
        })
    }
}

form! {
    ClearKey { agent, guild, user }
    StoredMessage {
        role,
        content,
        timestamp,
        scope,
        agent,
        turn,
        ordinal,
        guild,
        channel,
        owner,
        author_name,
        tool_calls,
        tool_call_id,
        message,
        parts: list,
        target,
        restored_from,
        sources: list,
    }
    ContextSnapshot { info: flat, messages: objects }
    ContextSnapshotInfo {
        id = "session_id",
        timestamp,
        description,
        summary,
        message_count,
        window_start,
        window_end,
        agent,
        owner,
        guild,
    }
    StoredReceipt {
        turn,
        scope,
        guild,
        channel,
        owner,
        is_private,
        trigger,
        messages: whole,
        at,
        people = "sources": list,
        body,
    }
}
