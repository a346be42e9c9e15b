//! What the gateway tells the bot, in our own types.

use serde::Deserialize;

use super::session::Mark;
use crate::lenient::lenient;
use crate::model::{CallerRights, InteractionData};
use clew_context::discord::convert::Incoming;
use clew_context::model::{
    ApplicationId, Author, ChannelId, ChannelKind, GuildId, Interaction, MessageId, RoleId, UserId,
};
use clew_context::words;

/// One event, with its position in its shard's session.
///
/// Each counts as open until the receiver passes its mark to
/// [`ShardProgress::finished`](super::session::ShardProgress::finished): at once, or when
/// the turn it started is over.
#[derive(Debug)]
pub struct ShardEvent {
    /// Position in its shard's session.
    pub mark: Mark,
    /// What happened.
    pub event: Event,
}

/// Everything from Discord that wakes the bot.
#[derive(Debug)]
pub enum Event {
    /// A shard connected with a fresh session.
    Ready(Box<Ready>),
    /// A shard resumed its session; missed events have been replayed.
    Resumed,
    /// A shard's session could not be resumed, so events since its last one are
    /// lost. Comes before any event of the new session.
    SessionLost,
    /// A shard's connection ended; it reconnects by itself.
    Disconnected(Disconnect),
    /// `MESSAGE_CREATE`.
    Message(Box<Incoming>),
    /// `MESSAGE_UPDATE`; see [`Incoming`] for whether it is complete.
    MessageEdited(Box<Incoming>),
    /// `MESSAGE_DELETE` or `MESSAGE_DELETE_BULK`.
    MessagesDeleted {
        /// The channel they were in.
        channel: ChannelId,
        /// The deleted messages.
        ids: Vec<MessageId>,
    },
    /// `CHANNEL_PINS_UPDATE`: a message was pinned or unpinned. None tells that a pinned message
    /// was deleted.
    PinsChanged(ChannelId),
    /// A message event, a READY or a whole frame could not be read, so messages may
    /// have been missed. The channel's window now has a gap; if the channel is
    /// unknown too, every window has one.
    MessagesMissed(UnreadableEvent),
    /// A channel was deleted, with its threads. Discord does not list those.
    ChannelDeleted {
        /// Its server, if it is known.
        guild: Option<GuildId>,
        /// The channel.
        channel: ChannelId,
        /// Its threads, as far as we knew them.
        threads: Vec<ChannelId>,
    },
    /// A thread was created, or we were added to one.
    ThreadCreated {
        /// The thread.
        channel: ChannelId,
        /// Just created, so the gateway has shown every message in it.
        newly_created: bool,
    },
    /// A thread was deleted.
    ThreadDeleted {
        /// Its server, if it is known.
        guild: Option<GuildId>,
        /// The thread.
        thread: ChannelId,
    },
    /// An outage at Discord: events of this server may be lost.
    GuildUnavailable(GuildId),
    /// We are no longer in this server.
    GuildRemoved(GuildId),
    /// A member left a server, or was removed (only with the server members
    /// intent).
    MemberLeft {
        /// The server.
        guild: GuildId,
        /// The member.
        user: UserId,
    },
    /// A server's channels and roles are now known.
    GuildAvailable {
        /// The server.
        guild: GuildId,
        /// The newest message of each channel and active thread.
        newest: Vec<(ChannelId, MessageId)>,
    },
    /// `GUILD_CREATE` came, but parts of it could not be read; fetch them over
    /// REST (`GuildState::fill`).
    GuildIncomplete {
        /// The server.
        guild: GuildId,
        /// The missing parts, by Discord's field names.
        parts: Vec<&'static str>,
    },
    /// Any other event could not be read; the guild state stays as it was.
    Unreadable(UnreadableEvent),
    /// Roles, overwrites, owner, our own roles or our private-thread membership
    /// changed: check again who may read what.
    PermissionsChanged {
        /// The server.
        guild: GuildId,
        /// Channels we may not view as of this event. The guild state may
        /// already be newer by the time it is handled.
        hidden: Vec<ChannelId>,
    },
    /// `INTERACTION_CREATE`: a command was called, a button pressed, or an option is being typed.
    Interaction(Box<IncomingInteraction>),
}

/// An event that could not be read, with the parts that could.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnreadableEvent {
    /// Event type in lower case, such as `message_create`; `frame` if not even
    /// the type is known.
    pub event: String,
    /// The server.
    pub guild: Option<GuildId>,
    /// The channel.
    pub channel: Option<ChannelId>,
    /// The message.
    pub message: Option<MessageId>,
    /// The missing parts, by Discord's field names; empty if unknown.
    pub parts: Vec<&'static str>,
}

impl UnreadableEvent {
    /// Reads the ids of an event that is otherwise unreadable.
    pub(crate) fn new(event_type: &str, data: &str, parts: Vec<&'static str>) -> Self {
        let EventIds {
            id,
            guild_id,
            channel_id,
        } = serde_json::from_str(data).unwrap_or_default();
        let of = |prefixes: &[&str]| {
            let is_of = |prefix: &&str| event_type.starts_with(*prefix);
            id.filter(|_| prefixes.iter().any(is_of))
        };
        let guild = of(&["GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE"]);
        let channel = of(&["CHANNEL_", "THREAD_"]);
        let message = of(&["MESSAGE_"]);
        Self {
            event: event_type.to_ascii_lowercase(),
            guild: guild_id.or(guild.map(|id| GuildId::new(id.get()))),
            channel: channel_id.or(channel.map(|id| ChannelId::new(id.get()))),
            message,
            parts,
        }
    }
}

#[derive(Deserialize, Default)]
struct EventIds {
    /// Of the event's object: a server, a channel or a message.
    #[serde(default, deserialize_with = "lenient")]
    id: Option<MessageId>,
    #[serde(default, deserialize_with = "lenient")]
    guild_id: Option<GuildId>,
    #[serde(default, deserialize_with = "lenient")]
    channel_id: Option<ChannelId>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnect {
    /// Why.
    pub reason: DisconnectReason,
    /// Discord's close code, if it closed the connection.
    pub code: Option<u16>,
}

words! {
    /// Why a connection ended.
    DisconnectReason {
        /// It broke, or could not be established.
        Network = "network",
        /// A heartbeat went unanswered.
        Heartbeat = "heartbeat",
        /// Discord asked us to reconnect (opcode 7).
        Reconnect = "reconnect",
        /// Discord invalidated the session (opcode 9).
        InvalidSession = "invalid_session",
        /// Discord closed the connection.
        Closed = "closed",
    }
}

/// The parts of READY we use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Our user.
    pub user: UserId,
    /// Our name.
    pub name: String,
    /// Our application.
    pub application: ApplicationId,
    /// Its flags allow the message content intent.
    pub content_granted: bool,
    /// The servers on this shard.
    pub guilds: Vec<GuildId>,
    /// How many shards there are.
    pub shards: u32,
}

/// The call of a command, the press of a button, or an option being typed.
#[derive(Debug)]
pub struct IncomingInteraction {
    /// What the reply needs.
    pub interaction: Interaction,
    /// What was called.
    pub data: InteractionData,
    /// The caller, under the name shown in that server.
    pub asker: Author,
    /// The caller's roles in the server.
    pub roles: Vec<RoleId>,
    /// What the caller may do there.
    pub rights: CallerRights,
    /// The channel's type, if the event gave it.
    pub channel_kind: Option<ChannelKind>,
    /// The target of a message command, or the message with the button.
    pub message: Option<Box<Incoming>>,
    /// The message with the button.
    pub pressed_on: Option<MessageId>,
}

/// Why the connection cannot continue without human help; `Display` says what
/// to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FatalReason {
    /// REST 401 or close code 4004.
    #[error(
        "Discord refused the token: copy a fresh one from the developer portal (your application, \
         Bot, Reset Token) into DISCORD_TOKEN"
    )]
    TokenRefused,
    /// Close code 4014.
    #[error("Discord refused a privileged intent: {}", remedy(*.message_content, *.members))]
    IntentsRefused {
        /// The message content intent was requested.
        message_content: bool,
        /// The server members intent was requested.
        members: bool,
    },
    /// Close code 4013.
    #[error("Discord does not know the intents of this version (close code 4013): update the bot")]
    IntentsInvalid,
    /// Close codes 4010 and 4011.
    #[error(
        "Discord refused the number of shards (close code {0}): restart, the number is asked for \
         at the start"
    )]
    ShardingRefused(u16),
    /// READY names another user than the one we are.
    #[error(
        "Discord says that this connection is of user {says}, and it was of {was} before: a \
         DISCORD_TOKEN is one user's for ever, so look at what DISCORD_GATEWAY_URL leads to, and \
         reset the token if it changed hands"
    )]
    AnotherUser {
        /// Who we are.
        was: UserId,
        /// Whom READY names.
        says: UserId,
    },
    /// One of our own tasks failed.
    #[error(
        "the connection to Discord ended by a fault of this program, of which the log tells: \
         start it again"
    )]
    Broken,
    /// Any other close code that forbids reconnecting.
    #[error("Discord closed the connection for good (close code {0}): update the bot")]
    Closed(u16),
}

/// What to do about close code 4014.
fn remedy(message_content: bool, members: bool) -> String {
    let mut ways = Vec::new();
    if message_content {
        ways.push(
            "switch on MESSAGE CONTENT INTENT in the developer portal (your application, Bot, \
             Privileged Gateway Intents), or set DISCORD_MESSAGE_CONTENT=off",
        );
    }
    if members {
        ways.push(
            "switch on SERVER MEMBERS INTENT in the same place, or set DISCORD_MEMBERS_INTENT=false",
        );
    }
    ways.join("; ")
}
