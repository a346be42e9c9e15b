//! The JSON of stored data, lossless in both directions: ids as text, times as
//! RFC 3339. Unknown fields are ignored; errors name the field and hold none of
//! the file's text.

mod facts;
mod fields;
mod receipts;

use serde::Deserialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use facts::{read_fact_fields, read_settings_fields};
pub use fields::FormError;
use fields::parsed;
pub(super) use fields::{Fields, Form, NUMBER, Object, TEXT, TIME, Time, Written, id, ids};
use receipts::read_receipt_fields;

use super::Record;
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, GuildSettings, SnapshotId,
    StoredMessage, StoredRole,
};
use clew_context::model::{ContentSource, TurnId};

impl Record {
    /// Encodes a single line of JSON without a line break, `kind` first.
    pub fn to_line(&self) -> String {
        line(self)
    }

    /// Parses such a line.
    ///
    /// # Errors
    ///
    /// Names the field that is missing or invalid.
    pub fn from_line(text: &str) -> Result<Self, FormError> {
        Self::from_fields(&mut Fields::parse(text.as_bytes())?)
    }

    /// Parses the fields of such a line.
    pub(super) fn from_fields(fields: &mut Fields) -> Result<Self, FormError> {
        let kind = fields.need("kind", TEXT)?;
        Ok(match kind.as_str() {
            "message" => Self::Message(read_message_fields(fields)?),
            "marker" => Self::Marker(
                ClearKey {
                    agent: fields.need("agent", agent())?,
                    guild: fields.maybe("guild", id())?,
                    user: fields.maybe("user", id())?,
                },
                fields.need("at", TIME)?,
            ),
            "snapshot" => Self::Snapshot(read_snapshot_fields(fields)?),
            "receipt" => Self::Receipt(read_receipt_fields(fields)?),
            "fact" => Self::Fact(read_fact_fields(fields)?),
            "opt_out" => Self::OptOut(fields.need("user", id())?, fields.need("since", TIME)?),
            "settings" => {
                Self::Settings(fields.need("guild", id())?, read_settings_fields(fields)?)
            }
            "agent" => Self::Agent(
                fields.need("agent", agent())?,
                fields.need("created", TIME)?,
            ),
            "departure" => Self::Departure(fields.need("guild", id())?, fields.need("at", TIME)?),
            _ => {
                return Err(FormError::Unfit {
                    field: "kind".to_owned(),
                    expected: "a kind of entry",
                });
            }
        })
    }
}

/// A server's settings as an object.
pub(super) fn write_settings(settings: &GuildSettings) -> String {
    line(settings)
}

/// Parses what [`write_settings`] wrote.
pub(super) fn read_settings(text: &str) -> Result<GuildSettings, FormError> {
    read_settings_fields(&Fields::parse(text.as_bytes())?)
}

/// A snapshot as a human-readable file that can be restored without loss.
pub(super) fn write_snapshot(snapshot: &ContextSnapshot) -> String {
    indented(snapshot)
}

/// Parses what [`write_snapshot`] wrote.
pub(super) fn read_snapshot(text: &[u8]) -> Result<ContextSnapshot, FormError> {
    read_snapshot_fields(&mut Fields::parse(text)?)
}

/// Human-readable JSON, ending in a line break.
pub(super) fn indented(form: &impl Form) -> String {
    // Cannot fail: our forms only have text keys.
    let mut text = serde_json::to_string_pretty(&Written(form)).unwrap_or_default();
    text.push('\n');
    text
}

/// The same without line breaks.
pub(super) fn line(form: &impl Form) -> String {
    serde_json::to_string(&Written(form)).unwrap_or_default()
}

impl Form for Record {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        let kind = match self {
            Self::Message(_) => "message",
            Self::Marker(..) => "marker",
            Self::Snapshot(_) => "snapshot",
            Self::Receipt(_) => "receipt",
            Self::Fact(_) => "fact",
            Self::OptOut(..) => "opt_out",
            Self::Settings(..) => "settings",
            Self::Agent(..) => "agent",
            Self::Departure(..) => "departure",
        };
        object.field("kind", kind)?;
        match self {
            Self::Message(message) => message.write(object),
            Self::Marker(key, at) => {
                object.field("agent", key.agent.as_str())?;
                object.maybe("guild", key.guild)?;
                object.maybe("user", key.user)?;
                object.field("at", Time(*at))
            }
            Self::Snapshot(snapshot) => snapshot.write(object),
            Self::Receipt(receipt) => receipt.write(object),
            Self::Fact(fact) => fact.write(object),
            Self::OptOut(user, since) => {
                object.field("user", user)?;
                object.field("since", Time(*since))
            }
            Self::Settings(guild, settings) => {
                object.field("guild", guild)?;
                settings.write(object)
            }
            Self::Agent(agent, created) => {
                object.field("agent", agent.as_str())?;
                object.field("created", Time(*created))
            }
            Self::Departure(guild, at) => {
                object.field("guild", guild)?;
                object.field("at", Time(*at))
            }
        }
    }
}

impl Form for StoredMessage {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        object.field("role", self.role.as_str())?;
        object.field("content", &self.content)?;
        object.field("timestamp", Time(self.timestamp))?;
        object.field("scope", self.scope.to_string())?;
        object.field("agent", self.agent.as_str())?;
        object.field("turn", self.turn.to_string())?;
        object.field("ordinal", self.ordinal)?;
        object.maybe("guild", self.guild)?;
        object.field("channel", self.channel)?;
        object.field("owner", self.owner)?;
        object.maybe("author_name", self.author_name.as_ref())?;
        object.maybe("tool_calls", self.tool_calls.as_ref())?;
        object.maybe("tool_call_id", self.tool_call_id.as_ref())?;
        object.maybe("message", self.message)?;
        object.list("parts", &self.parts)?;
        object.maybe("target", self.target)?;
        object.maybe(
            "restored_from",
            self.restored_from.as_ref().map(SnapshotId::as_str),
        )?;
        object.list("sources", &self.sources)
    }
}

fn read_message_fields(fields: &Fields) -> Result<StoredMessage, FormError> {
    Ok(StoredMessage {
        role: fields.need("role", ROLE)?,
        content: fields.need("content", TEXT)?,
        timestamp: fields.need("timestamp", TIME)?,
        scope: fields.need("scope", parsed("the key of a conversation"))?,
        agent: fields.need("agent", agent())?,
        turn: fields.need("turn", TURN)?,
        ordinal: fields.need("ordinal", NUMBER)?,
        guild: fields.maybe("guild", id())?,
        channel: fields.need("channel", id())?,
        owner: fields.need("owner", id())?,
        author_name: fields.maybe("author_name", TEXT)?,
        tool_calls: fields.maybe("tool_calls", TEXT)?,
        tool_call_id: fields.maybe("tool_call_id", TEXT)?,
        message: fields.maybe("message", id())?,
        parts: fields.maybe("parts", ids())?.unwrap_or_default(),
        target: fields.maybe("target", id())?,
        restored_from: fields.maybe("restored_from", SNAPSHOT_ID)?,
        sources: fields.maybe("sources", SOURCES)?.unwrap_or_default(),
    })
}

impl Form for ContextSnapshot {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        let info = &self.info;
        object.field("session_id", info.id.as_str())?;
        object.field("timestamp", Time(info.timestamp))?;
        object.maybe("description", info.description.as_ref())?;
        object.field("summary", &info.summary)?;
        object.field("message_count", info.message_count)?;
        object.field("window_start", Time(info.window_start))?;
        object.field("window_end", Time(info.window_end))?;
        object.field("agent", info.agent.as_str())?;
        object.field("owner", info.owner)?;
        object.maybe("guild", info.guild)?;
        let messages: Vec<_> = self.messages.iter().map(Written).collect();
        object.field("messages", messages)
    }
}

fn read_snapshot_fields(fields: &mut Fields) -> Result<ContextSnapshot, FormError> {
    let messages = fields.objects("messages")?;
    Ok(ContextSnapshot {
        info: ContextSnapshotInfo {
            id: fields.need("session_id", SNAPSHOT_ID)?,
            agent: fields.need("agent", agent())?,
            owner: fields.need("owner", id())?,
            guild: fields.maybe("guild", id())?,
            timestamp: fields.need("timestamp", TIME)?,
            description: fields.maybe("description", TEXT)?,
            summary: fields.need("summary", TEXT)?,
            message_count: fields.need("message_count", COUNT)?,
            window_start: fields.need("window_start", TIME)?,
            window_end: fields.need("window_end", TIME)?,
        },
        messages: messages
            .iter()
            .map(read_message_fields)
            .collect::<Result<_, _>>()?,
    })
}

/// The words of roles.
pub(super) const ROLE: fields::Reader<StoredRole> = (
    |value| StoredRole::from_word(value.as_str()?),
    "`user`, `assistant`, `tool_use` or `tool_result`",
);
/// A turn's id: `t` and a hexadecimal number.
pub(super) const TURN: fields::Reader<TurnId> = (
    |value| {
        let digits = value.as_str()?.strip_prefix('t')?;
        let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(digits, 16).ok()?;
        valid.then_some(TurnId(number))
    },
    "the id of a turn",
);
/// A snapshot's id.
pub(super) const SNAPSHOT_ID: fields::Reader<SnapshotId> = parsed("the id of a snapshot");
/// What a row was made from.
pub(super) const SOURCES: fields::Reader<Vec<ContentSource>> = (
    |value| Vec::<ContentSource>::deserialize(value).ok(),
    "a list of messages and channels",
);
const COUNT: fields::Reader<usize> = (
    |value: &Value| usize::try_from(value.as_u64()?).ok(),
    "a whole number",
);

/// An agent's name.
pub(super) const fn agent() -> fields::Reader<AgentName> {
    parsed("the name of an agent")
}
