//! The JSON of stored data, lossless in both directions: ids as text, times as
//! RFC 3339. Unknown fields are ignored; errors name the field and hold none of
//! the file's text.

mod facts;
mod fields;
mod receipts;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use facts::{FactForm, SettingsForm, read_fact_fields, read_settings_fields};
pub use fields::FormError;
use fields::parsed;
pub(super) use fields::{Fields, NUMBER, TEXT, TIME, Time, id, ids};
use receipts::{ReceiptForm, read_receipt_fields};

use super::Record;
use crate::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, GuildSettings, SnapshotId,
    StoredMessage, StoredRole,
};
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, TurnId, UserId};

impl Record {
    /// Encodes a single line of JSON without a line break, `kind` first.
    pub fn to_line(&self) -> String {
        let agent_name = AgentName::as_str;
        line(&match self {
            Self::Message(message) => RecordForm::Message(MessageForm::of(message)),
            Self::Marker(key, at) => RecordForm::Marker {
                agent: agent_name(&key.agent),
                guild: key.guild,
                user: key.user,
                at: Time(*at),
            },
            Self::Snapshot(snapshot) => RecordForm::Snapshot(SnapshotForm::of(snapshot)),
            Self::Receipt(receipt) => RecordForm::Receipt(ReceiptForm::of(receipt)),
            Self::Fact(fact) => RecordForm::Fact(FactForm::of(fact)),
            Self::OptOut(user, since) => RecordForm::OptOut {
                user: *user,
                since: Time(*since),
            },
            Self::Settings(guild, settings) => RecordForm::Settings {
                guild: *guild,
                settings: SettingsForm::of(settings),
            },
            Self::Agent(agent, created) => RecordForm::Agent {
                agent: agent_name(agent),
                created: Time(*created),
            },
            Self::Departure(guild, at) => RecordForm::Departure {
                guild: *guild,
                at: Time(*at),
            },
        })
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
    line(&SettingsForm::of(settings))
}

/// Parses what [`write_settings`] wrote.
pub(super) fn read_settings(text: &str) -> Result<GuildSettings, FormError> {
    read_settings_fields(&Fields::parse(text.as_bytes())?)
}

/// A snapshot as a human-readable file that can be restored without loss.
pub(super) fn write_snapshot(snapshot: &ContextSnapshot) -> String {
    indented(&SnapshotForm::of(snapshot))
}

/// Parses what [`write_snapshot`] wrote.
pub(super) fn read_snapshot(text: &[u8]) -> Result<ContextSnapshot, FormError> {
    read_snapshot_fields(&mut Fields::parse(text)?)
}

/// Human-readable JSON, ending in a line break.
pub(super) fn indented(form: &impl Serialize) -> String {
    // Cannot fail: our forms only have text keys.
    let mut text = serde_json::to_string_pretty(form).unwrap_or_default();
    text.push('\n');
    text
}

fn line(form: &impl Serialize) -> String {
    serde_json::to_string(form).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum RecordForm<'a> {
    Message(MessageForm<'a>),
    Marker {
        agent: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        guild: Option<GuildId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        user: Option<UserId>,
        at: Time,
    },
    Snapshot(SnapshotForm<'a>),
    Receipt(ReceiptForm<'a>),
    Fact(FactForm<'a>),
    OptOut {
        user: UserId,
        since: Time,
    },
    Settings {
        guild: GuildId,
        #[serde(flatten)]
        settings: SettingsForm<'a>,
    },
    Agent {
        agent: &'a str,
        created: Time,
    },
    Departure {
        guild: GuildId,
        at: Time,
    },
}

#[derive(Serialize)]
struct MessageForm<'a> {
    role: &'static str,
    content: &'a str,
    timestamp: Time,
    scope: String,
    agent: &'a str,
    turn: String,
    ordinal: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    guild: Option<GuildId>,
    channel: ChannelId,
    owner: UserId,
    #[serde(skip_serializing_if = "Option::is_none")]
    author_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
    #[serde(skip_serializing_if = "<[MessageId]>::is_empty")]
    parts: &'a [MessageId],
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<MessageId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    restored_from: Option<&'a str>,
    #[serde(skip_serializing_if = "<[ContentSource]>::is_empty")]
    sources: &'a [ContentSource],
}

impl<'a> MessageForm<'a> {
    fn of(message: &'a StoredMessage) -> Self {
        Self {
            role: message.role.as_str(),
            content: &message.content,
            timestamp: Time(message.timestamp),
            scope: message.scope.to_string(),
            agent: message.agent.as_str(),
            turn: message.turn.to_string(),
            ordinal: message.ordinal,
            guild: message.guild,
            channel: message.channel,
            owner: message.owner,
            author_name: message.author_name.as_deref(),
            tool_calls: message.tool_calls.as_deref(),
            tool_call_id: message.tool_call_id.as_deref(),
            message: message.message,
            parts: &message.parts,
            target: message.target,
            restored_from: message.restored_from.as_ref().map(SnapshotId::as_str),
            sources: &message.sources,
        }
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

#[derive(Serialize)]
struct SnapshotForm<'a> {
    session_id: &'a str,
    timestamp: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    summary: &'a str,
    message_count: usize,
    window_start: Time,
    window_end: Time,
    agent: &'a str,
    owner: UserId,
    #[serde(skip_serializing_if = "Option::is_none")]
    guild: Option<GuildId>,
    messages: Vec<MessageForm<'a>>,
}

impl<'a> SnapshotForm<'a> {
    fn of(snapshot: &'a ContextSnapshot) -> Self {
        let info = &snapshot.info;
        Self {
            session_id: info.id.as_str(),
            timestamp: Time(info.timestamp),
            description: info.description.as_deref(),
            summary: &info.summary,
            message_count: info.message_count,
            window_start: Time(info.window_start),
            window_end: Time(info.window_end),
            agent: info.agent.as_str(),
            owner: info.owner,
            guild: info.guild,
            messages: snapshot.messages.iter().map(MessageForm::of).collect(),
        }
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
