//! What the gateway tells the bot, in our own words.

use super::session::Mark;
use crate::model::{CallerRights, Command};
use clew_context::discord::convert::Incoming;
use clew_context::model::{
    ApplicationId, Author, ChannelId, ChannelKind, GuildId, Interaction, MessageId, RoleId, UserId,
};

/// One event, with its place in its shard's session.
///
/// Each delivery counts as begun until the receiver hands its mark to
/// [`Progress::finished`](super::session::Progress::finished): at once, or
/// when the turn that it started is over.
#[derive(Debug)]
pub struct Delivery {
    /// Its place in its shard's session.
    pub mark: Mark,
    /// What happened.
    pub event: Event,
}

/// Everything that wakes the bot from Discord's side.
#[derive(Debug)]
pub enum Event {
    /// A shard is connected under a fresh session.
    Ready(Box<Ready>),
    /// A shard's session goes on; what was missed has been replayed.
    Resumed,
    /// What happened since the last event of this shard is unknown: its session
    /// could not be resumed. Comes before anything of the new one.
    SessionLost,
    /// A shard's connection ended; the next is made without being asked.
    Disconnected(Disconnect),
    /// `MESSAGE_CREATE`.
    Message(Box<Incoming>),
    /// `MESSAGE_UPDATE`; see [`Incoming`] for whether it is complete.
    MessageEdited(Box<Incoming>),
    /// `MESSAGE_DELETE` or `MESSAGE_DELETE_BULK`.
    MessagesDeleted {
        /// Where they stood.
        channel: ChannelId,
        /// Which.
        ids: Vec<MessageId>,
    },
    /// An event of messages that could not be read: the channel's window has a
    /// hole, every window if even the channel is unknown.
    MessageUnreadable(Unreadable),
    /// A channel is gone, and its threads with it: Discord names none of them.
    ChannelDeleted {
        /// Which.
        channel: ChannelId,
        /// Those of its threads that were known.
        threads: Vec<ChannelId>,
    },
    /// A thread was opened, or we were added to it.
    ThreadCreated {
        /// The thread.
        channel: ChannelId,
        /// Just opened: nothing stands in it that the gateway did not show.
        newly_created: bool,
    },
    /// A thread is gone.
    ThreadDeleted(ChannelId),
    /// An outage at Discord: events of this server may be missing.
    GuildUnavailable(GuildId),
    /// We are no longer in it.
    GuildRemoved(GuildId),
    /// Somebody is no longer in a server (with the members intent only).
    MemberLeft {
        /// The server.
        guild: GuildId,
        /// Who.
        user: UserId,
    },
    /// A server's channels and roles are known now.
    GuildAvailable(GuildId),
    /// `GUILD_CREATE` came, but parts of it could not be read at all: fill
    /// them over REST (`Facts::fill`).
    GuildIncomplete {
        /// The server.
        guild: GuildId,
        /// What is missing, as Discord names it.
        parts: Vec<&'static str>,
    },
    /// Another event that could not be read; what is known is as it was.
    OtherUnreadable(Unreadable),
    /// Roles, overwrites, owner, our own roles or our membership of private
    /// threads changed: who may read what has to be asked anew.
    PermissionsChanged {
        /// The server.
        guild: GuildId,
        /// Its channels that we may not view from here on, until another
        /// such event: by the time this one is dealt with the facts may be
        /// of later.
        hidden: Vec<ChannelId>,
    },
    /// One of our commands was called.
    Called(Box<Called>),
}

/// An event that could not be read, and what could be read of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unreadable {
    /// Its type in lower case, such as `message_create`; `frame` if even that
    /// is unknown.
    pub event: String,
    /// The server.
    pub guild: Option<GuildId>,
    /// The channel.
    pub channel: Option<ChannelId>,
    /// The message.
    pub message: Option<MessageId>,
    /// What is missing, as Discord names it; none where that is unknown.
    pub parts: Vec<&'static str>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disconnect {
    /// Why.
    pub by: LostBy,
    /// Discord's close code, if it closed the connection.
    pub code: Option<u16>,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostBy {
    /// It broke off, or could not be made.
    Network,
    /// A heartbeat went unanswered.
    Heartbeat,
    /// Discord asked for another one.
    Reconnect,
    /// Discord no longer knows the session.
    InvalidSession,
    /// Discord closed it.
    Closed,
}

/// What READY says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// Our user.
    pub user: UserId,
    /// Our name.
    pub name: String,
    /// Our application.
    pub application: ApplicationId,
    /// The application may have the message content intent (its flags).
    pub content_granted: bool,
    /// The servers that the shard will tell about.
    pub guilds: Vec<GuildId>,
    /// How many shards there are.
    pub shards: u32,
}

/// A call of one of our commands.
#[derive(Debug)]
pub struct Called {
    /// What is needed to answer.
    pub interaction: Interaction,
    /// What was called.
    pub command: Command,
    /// Who called, under the name people see there.
    pub asker: Author,
    /// The caller's roles in the server.
    pub roles: Vec<RoleId>,
    /// What the caller may do there.
    pub rights: CallerRights,
    /// Type of the channel, where the event said it.
    pub channel_kind: Option<ChannelKind>,
    /// The message that a message command was called on.
    pub message: Option<Box<Incoming>>,
}

/// Why the connection to Discord cannot go on without a person; `Display`
/// says what to do.
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
        /// Message content was asked for.
        message_content: bool,
        /// Server members were asked for.
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
    /// A task of ours broke.
    #[error(
        "the connection to Discord ended by a fault of this program, of which the log tells: \
         start it again"
    )]
    Broken,
    /// Any other close code after which Discord forbids a reconnect.
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
