//! Everything the fake Discord knows: users, guilds, roles, channels, threads,
//! messages, commands, interactions. Building a world sends no events; the same
//! actions on a running [`super::Simulator`] do.

mod build;
mod post;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::draft::Reference;
use super::ids::{Clock, Id};
use super::permissions::Permissions;
use super::script::ScriptError;

pub(super) use post::{excerpt_ids, numbered};

/// The state of the fake Discord.
#[derive(Debug)]
pub struct World {
    /// The bot's user id, which is also its application's id.
    pub bot: Id,
    /// The only token accepted.
    pub token: String,
    /// How the server behaves.
    pub settings: Settings,
    pub(super) users: BTreeMap<Id, User>,
    pub(super) guilds: BTreeMap<Id, Guild>,
    pub(super) channels: BTreeMap<Id, Channel>,
    pub(super) ephemeral: BTreeMap<Id, Message>,
    pub(super) interactions: BTreeMap<Id, Interaction>,
    pub(super) commands: Vec<Command>,
    pub(super) overrides: BTreeMap<Id, Value>,
    /// What a search finds while its index lags behind; none: what is there now.
    pub(super) search_index: Option<Vec<Message>>,
    pub(super) clock: Clock,
    pub(super) base_url: String,
    /// The first mistake: later ones are often consequences of it.
    pub(super) mistake: Option<ScriptError>,
}

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Milliseconds between heartbeats, sent in HELLO; Discord's value is 41,250.
    pub heartbeat_interval_ms: u64,
    /// Identifies left today, as in `/gateway/bot`.
    pub session_starts_remaining: u64,
    /// Identifies allowed per day.
    pub session_starts_total: u64,
    /// Milliseconds until the count of identifies is reset.
    pub session_starts_reset_ms: u64,
    /// Identifies allowed every five seconds.
    pub max_concurrency: u64,
    /// An IDENTIFY sooner after another one of its bucket (`shard % max_concurrency`) is refused. Zero: none
    /// is, so that a test need not wait for Discord's five seconds.
    pub identify_interval: Duration,
    /// The recommended number of shards.
    pub shards: u64,
    /// Mask of privileged intents that the developer portal does not allow:
    /// requesting them closes with 4014. If message content is among them, REST
    /// blanks contents too.
    pub disallowed_intents: u64,
    /// Scheme and host of attachment URLs; `None`: the simulator's own.
    pub cdn_base: Option<String>,
    /// Events that a session keeps for replay after a resume.
    pub replay_limit: usize,
    /// Users who do not accept direct messages (50007).
    pub closed_to_dms: BTreeSet<Id>,
    /// How long the first response to an interaction is accepted (10062 afterwards).
    pub callback_window: Duration,
    /// Whether a search of a channel covers its threads, which Discord does not document.
    pub search_covers_threads: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat_interval_ms: 41_250,
            session_starts_remaining: 1_000,
            session_starts_total: 1_000,
            session_starts_reset_ms: 86_400_000,
            max_concurrency: 1,
            identify_interval: Duration::ZERO,
            shards: 1,
            disallowed_intents: 0,
            cdn_base: None,
            replay_limit: 10_000,
            closed_to_dms: BTreeSet::new(),
            callback_window: Duration::from_secs(3),
            search_covers_threads: true,
        }
    }
}

/// A person or a bot.
#[derive(Clone, Debug)]
pub struct User {
    /// Id.
    pub id: Id,
    /// Unique name.
    pub name: String,
    /// Display name.
    pub global_name: Option<String>,
    /// Whether it is a bot.
    pub bot: bool,
}

/// A guild.
#[derive(Clone, Debug)]
pub struct Guild {
    /// Id, which is also the id of its `@everyone` role.
    pub id: Id,
    /// Name.
    pub name: String,
    /// Owner.
    pub owner: Id,
    /// Roles by id, including `@everyone`.
    pub roles: BTreeMap<Id, Role>,
    /// Members by user id.
    pub members: BTreeMap<Id, Member>,
    /// Whether there is an outage: no events until it is over.
    pub unavailable: bool,
}

/// A role.
#[derive(Clone, Debug)]
pub struct Role {
    /// Id.
    pub id: Id,
    /// Name.
    pub name: String,
    /// Its permissions in the whole guild.
    pub permissions: Permissions,
    /// Its position; `@everyone` has 0.
    pub position: i64,
    /// The bot whose integration manages it.
    pub managed_by: Option<Id>,
}

/// A member of a guild.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// The user.
    pub user: Id,
    /// Nickname in this guild.
    pub nick: Option<String>,
    /// Roles without `@everyone`.
    pub roles: Vec<Id>,
    /// When they joined, in Unix milliseconds.
    pub joined_ms: i64,
    /// Until when they are in a timeout, in Unix milliseconds.
    pub timed_out_until_ms: Option<i64>,
}

/// Channel types, with the API's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the API's own")]
pub enum ChannelKind {
    #[default]
    Text = 0,
    Direct = 1,
    Voice = 2,
    Category = 4,
    Announcement = 5,
    AnnouncementThread = 10,
    PublicThread = 11,
    PrivateThread = 12,
    Forum = 15,
    Media = 16,
}

impl ChannelKind {
    /// Whether it is one of the three thread kinds.
    pub fn is_thread(self) -> bool {
        matches!(
            self,
            Self::AnnouncementThread | Self::PublicThread | Self::PrivateThread
        )
    }

    /// Whether it contains posts and no messages of its own.
    pub fn is_forum(self) -> bool {
        matches!(self, Self::Forum | Self::Media)
    }
}

/// A channel, a thread or a direct message.
#[derive(Clone, Debug, Default)]
pub struct Channel {
    /// Id.
    pub id: Id,
    /// Its type.
    pub kind: ChannelKind,
    /// Its guild; `None` for a direct message.
    pub guild: Option<Id>,
    /// A channel's category, or a thread's parent.
    pub parent: Option<Id>,
    /// Name or title.
    pub name: String,
    /// Topic.
    pub topic: Option<String>,
    /// Whether it is age-restricted; its threads are with it.
    pub nsfw: bool,
    /// Permission overwrites; they apply to its threads too.
    pub overwrites: Vec<Overwrite>,
    /// Tags available for posts in a forum.
    pub tags: Vec<Tag>,
    /// Fields that only threads have.
    pub thread: Option<Thread>,
    /// The other person in a direct message.
    pub recipients: Vec<Id>,
    /// Messages by id.
    pub messages: BTreeMap<Id, Message>,
    /// The newest message ever posted, even if deleted.
    pub last_message: Option<Id>,
}

/// Fields that only threads have.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Who opened it.
    pub owner: Id,
    /// Whether it is archived.
    pub archived: bool,
    /// Whether it is locked.
    pub locked: bool,
    /// Tags applied to a forum post.
    pub applied_tags: Vec<Id>,
    /// Members, each with the time of joining in Unix milliseconds.
    pub members: BTreeMap<Id, i64>,
    /// When it was last archived or unarchived, in Unix milliseconds.
    pub archive_ms: i64,
    /// Messages ever sent in it, without the starter.
    pub total_sent: u64,
    /// How many of those were not deleted.
    pub message_count: u64,
    /// Minutes without messages after which it is archived.
    pub auto_archive_minutes: u64,
}

/// A tag of a forum.
#[derive(Clone, Debug)]
pub struct Tag {
    /// Id.
    pub id: Id,
    /// Name.
    pub name: String,
}

/// Message flags.
pub(super) mod flag {
    pub(crate) const SUPPRESS_EMBEDS: u64 = 1 << 2;
    pub(crate) const HAS_THREAD: u64 = 1 << 5;
    /// Visible to one user only.
    pub(crate) const EPHEMERAL: u64 = 1 << 6;
    /// The answer is still to come.
    pub(crate) const LOADING: u64 = 1 << 7;
    pub(crate) const SUPPRESS_NOTIFICATIONS: u64 = 1 << 12;
    pub(crate) const HAS_SNAPSHOT: u64 = 1 << 14;
    pub(crate) const COMPONENTS_V2: u64 = 1 << 15;
}

/// A permission overwrite.
#[derive(Clone, Copy, Debug)]
pub struct Overwrite {
    /// Whom it applies to.
    pub of: OverwriteOf,
    /// Bits it allows.
    pub allow: Permissions,
    /// Bits it denies.
    pub deny: Permissions,
}

/// Whom an overwrite applies to; the role with the guild's id is `@everyone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum OverwriteOf {
    Role(Id),
    Member(Id),
}

/// A stored message.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Id.
    pub id: Id,
    /// Its channel.
    pub channel: Id,
    /// Author: a user, or the webhook's id.
    pub author: Id,
    /// The webhook's name, if one posted it.
    pub webhook: Option<String>,
    /// The application that owns the webhook.
    pub application: Option<Id>,
    /// Text.
    pub content: String,
    /// The API's message type.
    pub kind: u8,
    /// When it was edited, in Unix milliseconds.
    pub edited_ms: Option<i64>,
    /// The message it refers to.
    pub reference: Option<Reference>,
    /// What is sent as `referenced_message`.
    pub referenced: super::draft::Referenced,
    /// Mentioned users, including the author pinged by a reply.
    pub mentions: Vec<Id>,
    /// Mentioned roles.
    pub mention_roles: Vec<Id>,
    /// Whether it mentions everyone.
    pub mention_everyone: bool,
    /// Embed objects.
    pub embeds: Vec<Value>,
    /// Files.
    pub attachments: Vec<Attachment>,
    /// Stickers: id and name.
    pub stickers: Vec<(Id, String)>,
    /// The poll object.
    pub poll: Option<Value>,
    /// Component objects.
    pub components: Vec<Value>,
    /// Snapshot objects of a forward.
    pub snapshots: Vec<Value>,
    /// Message flags.
    pub flags: u64,
    /// When it was pinned, in Unix milliseconds; `None`: it is not.
    pub pinned_ms: Option<i64>,
    /// The nonce it was sent with.
    pub nonce: Option<Value>,
    /// Emoji (as in the path of the reaction routes), and who reacted.
    pub reactions: Vec<(String, Vec<Id>)>,
    /// The interaction it answers.
    pub interaction: Option<Id>,
    /// `allowed_mentions` as the bot sent it.
    pub allowed_mentions: Option<Value>,
    /// How many messages its thread had before it.
    pub position: u64,
    /// Its texts before each edit, oldest first.
    pub earlier: Vec<String>,
}

/// A stored file.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Id.
    pub id: Id,
    /// Contents and metadata.
    pub file: super::draft::File,
}

/// A registered application command.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) id: Id,
    pub(super) guild: Option<Id>,
    pub(super) body: Value,
}

/// An interaction sent to the bot.
#[derive(Clone, Debug, Default)]
pub struct Interaction {
    /// Id.
    pub id: Id,
    /// The token needed to respond.
    pub token: String,
    /// 2 command, 3 component, 4 autocomplete, 5 modal.
    pub kind: u8,
    /// Name of the command, or the component's custom id.
    pub name: String,
    /// Who used it.
    pub user: Id,
    /// Where it was used.
    pub channel: Id,
    /// The message of a component or context-menu command.
    pub message: Option<Id>,
    /// The body of the first response; `None`: not acknowledged yet.
    pub callback: Option<Value>,
    /// The message of the first response; after an update, the component's message.
    pub original: Option<Id>,
    /// Whether that message was edited after the first response.
    pub edited: bool,
    /// When it was used, since the server's start.
    pub at: Duration,
    /// Follow-up messages.
    pub followups: Vec<Id>,
}

impl Interaction {
    /// The ids of the messages that answered it, the first answer first.
    pub(super) fn messages(&self) -> impl Iterator<Item = Id> {
        self.original.iter().chain(&self.followups).copied()
    }
}
