//! One line: its keys in their fixed order, and the ids.

use std::fmt;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use serde::Serialize;

use super::event::{Event, Subsys};
use clew_context::model::{
    ChannelId, GuildId, Interaction, MessageId, TurnId, TurnRequest, UnixMillis, UserId,
};
#[cfg(feature = "otel")]
use clew_store::model::Scope;

/// What an event belongs to; whatever does not apply is `null` on the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ids {
    pub guild: Option<GuildId>,
    pub channel: Option<ChannelId>,
    pub user: Option<UserId>,
    pub message: Option<MessageId>,
    pub turn: Option<TurnId>,
}

impl From<&Interaction> for Ids {
    /// Of what a command is about.
    fn from(call: &Interaction) -> Self {
        Self {
            guild: call.guild,
            channel: Some(call.channel),
            user: Some(call.user),
            ..Self::default()
        }
    }
}

/// How users and direct conversations are named (`TELEMETRY_IDS`). All other
/// ids are written unchanged.
#[derive(Clone, PartialEq, Eq)]
pub enum IdStyle {
    /// By their ids.
    Plain,
    /// By pseudonyms made with this key.
    Keyed(Arc<[u8]>),
}

impl IdStyle {
    /// Pseudonyms with a key of at least 16 bytes.
    pub fn keyed(key: Vec<u8>) -> Self {
        Self::Keyed(key.into())
    }

    /// Applies the style. A channel outside of any server is a direct conversation.
    pub(super) fn style(&self, ids: &Ids) -> Ids {
        let Self::Keyed(key) = self else {
            return *ids;
        };
        let user = |id: UserId| UserId::new(pseudonym(key, b"user", id.get()));
        let direct = |id: ChannelId| ChannelId::new(pseudonym(key, b"channel", id.get()));
        Ids {
            user: ids.user.map(user),
            channel: match ids.guild {
                Some(_) => ids.channel,
                None => ids.channel.map(direct),
            },
            ..*ids
        }
    }
}

/// Traces name conversations.
#[cfg(feature = "otel")]
impl IdStyle {
    /// The same conversation with its ids in this style; a server's channels keep theirs.
    pub(super) fn style_scope(&self, scope: Scope) -> Scope {
        let styled = |user| {
            let ids = Ids {
                user: Some(user),
                ..Ids::default()
            };
            self.style(&ids).user.unwrap_or(user)
        };
        match scope {
            Scope::Thread { .. } => scope,
            Scope::Member {
                guild,
                channel,
                user,
            } => Scope::Member {
                guild,
                channel,
                user: styled(user),
            },
            Scope::User(user) => Scope::User(styled(user)),
            Scope::Direct(user) => Scope::Direct(styled(user)),
        }
    }
}

/// Keeps the key out of the log.
impl fmt::Debug for IdStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "Plain",
            Self::Keyed(_) => "Keyed",
        })
    }
}

/// A pseudonym in the form of an id, so that tools that read ids can read it.
fn pseudonym(key: &[u8], kind: &[u8], id: u64) -> u64 {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes any key");
    mac.update(kind);
    mac.update(&id.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let first = digest.iter().take(8);
    first
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
        .max(1)
}

/// The line with its line break, or none if it cannot be written as JSON.
pub(super) fn render(
    time: UnixMillis,
    log_subsys: &str,
    ids: &Ids,
    event: &Event,
) -> Option<String> {
    let subsys = match event.subsys() {
        Subsys::MemCtx => log_subsys,
        other => other.as_str(),
    };
    let line = EventLine {
        ts: &time.rfc3339(),
        level: event.level(),
        subsys,
        event: event.name(),
        guild_id: ids.guild,
        channel_id: ids.channel,
        user_id: ids.user,
        msg_id: ids.message,
        turn_id: ids.turn,
        detail: event,
    };
    let mut text = serde_json::to_string(&line).ok()?;
    text.push('\n');
    Some(text)
}

/// The keys, in the order in which they are written.
#[derive(Serialize)]
struct EventLine<'a> {
    ts: &'a str,
    level: &'static str,
    subsys: &'a str,
    event: &'static str,
    guild_id: Option<GuildId>,
    channel_id: Option<ChannelId>,
    user_id: Option<UserId>,
    msg_id: Option<MessageId>,
    turn_id: Option<TurnId>,
    detail: &'a Event,
}

impl Ids {
    /// The ids of a turn; the server only if the trigger names it.
    pub fn of(request: &TurnRequest) -> Self {
        Self {
            guild: request.trigger.guild,
            channel: Some(request.trigger.channel),
            user: Some(request.asker()),
            message: Some(request.trigger.id),
            turn: Some(request.turn()),
        }
    }
}
