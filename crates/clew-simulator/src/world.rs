//! Everything the fake Discord knows: users, guilds, roles, channels, threads,
//! messages, commands, interactions. Building it is silent; the same actions
//! on a running [`super::Simulator`] are dispatched as events.

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
    /// The bot's user id, which is its application's id as well.
    pub bot: Id,
    /// The only token that is accepted.
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
    pub(super) clock: Clock,
    pub(super) base_url: String,
    /// The first of them: what follows often follows from it.
    pub(super) mistake: Option<ScriptError>,
}

/// How the server behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Milliseconds between heartbeats, as HELLO says; Discord says 41,250.
    pub heartbeat_interval_ms: u64,
    /// Identifies left today, as `/gateway/bot` says.
    pub session_starts_remaining: u64,
    /// Identifies allowed a day.
    pub session_starts_total: u64,
    /// Milliseconds until the identifies are counted anew.
    pub session_starts_reset_ms: u64,
    /// Identifies allowed every five seconds.
    pub max_concurrency: u64,
    /// The recommended number of shards.
    pub shards: u64,
    /// Privileged intents that the developer portal does not allow, a mask:
    /// asking for them closes with 4014, and with message content among them
    /// REST blanks contents too.
    pub disallowed_intents: u64,
    /// Scheme and host of attachment addresses; absent: the simulator's own.
    pub cdn_base: Option<String>,
    /// Events a session keeps for replay after a resume.
    pub replay_limit: usize,
    /// Users who refuse direct messages (50007).
    pub closed_to_dms: BTreeSet<Id>,
    /// How long the first answer to an interaction is taken (10062 after).
    pub callback_window: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat_interval_ms: 41_250,
            session_starts_remaining: 1_000,
            session_starts_total: 1_000,
            session_starts_reset_ms: 86_400_000,
            max_concurrency: 1,
            shards: 1,
            disallowed_intents: 0,
            cdn_base: None,
            replay_limit: 10_000,
            closed_to_dms: BTreeSet::new(),
            callback_window: Duration::from_secs(3),
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
    /// Id, which is the id of its `@everyone` role too.
    pub id: Id,
    /// Name.
    pub name: String,
    /// Owner.
    pub owner: Id,
    /// Roles by id, `@everyone` among them.
    pub roles: BTreeMap<Id, Role>,
    /// Members by user id.
    pub members: BTreeMap<Id, Member>,
    /// An outage: no events until it is over.
    pub unavailable: bool,
}

/// A role.
#[derive(Clone, Debug)]
pub struct Role {
    /// Id.
    pub id: Id,
    /// Name.
    pub name: String,
    /// What it allows in the whole guild.
    pub permissions: Permissions,
    /// Order, 0 is `@everyone`'s.
    pub position: i64,
    /// The bot whose integration manages it.
    pub managed_by: Option<Id>,
}

/// A member of a guild.
#[derive(Clone, Debug)]
pub struct Member {
    /// The user.
    pub user: Id,
    /// Name in this guild.
    pub nick: Option<String>,
    /// Roles without `@everyone`.
    pub roles: Vec<Id>,
    /// When they joined, in Unix milliseconds.
    pub joined_ms: i64,
}

/// What a channel is, with the API's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the API's own")]
pub enum ChannelKind {
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

    /// Whether it holds posts and no messages of its own.
    pub fn is_forum(self) -> bool {
        matches!(self, Self::Forum | Self::Media)
    }
}

/// A channel, a thread or a direct message.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Id.
    pub id: Id,
    /// What it is.
    pub kind: ChannelKind,
    /// Its guild; absent in a direct message.
    pub guild: Option<Id>,
    /// Category of a channel, parent of a thread.
    pub parent: Option<Id>,
    /// Name or title.
    pub name: String,
    /// Topic.
    pub topic: Option<String>,
    /// Permission overwrites, in effect for its threads as well.
    pub overwrites: Vec<Overwrite>,
    /// Tags that posts of a forum can be given.
    pub tags: Vec<Tag>,
    /// What only threads have.
    pub thread: Option<Thread>,
    /// The person of a direct message.
    pub recipients: Vec<Id>,
    /// Messages by id.
    pub messages: BTreeMap<Id, Message>,
    /// The newest message ever posted, deleted or not.
    pub last_message: Option<Id>,
}

/// What only threads have.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Who opened it.
    pub owner: Id,
    /// Whether it is archived.
    pub archived: bool,
    /// Whether it is locked.
    pub locked: bool,
    /// Tags applied to a forum post.
    pub applied_tags: Vec<Id>,
    /// Members with the Unix milliseconds of their joining.
    pub members: BTreeMap<Id, i64>,
    /// When it was archived or unarchived last, in Unix milliseconds.
    pub archive_ms: i64,
    /// Messages ever sent in it, without the starter.
    pub total_sent: u64,
    /// Those of them that were not deleted.
    pub message_count: u64,
    /// Minutes without a message until it is archived.
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

/// A permission overwrite.
#[derive(Clone, Copy, Debug)]
pub struct Overwrite {
    /// Whom it binds.
    pub of: OverwriteOf,
    /// Bits it allows.
    pub allow: Permissions,
    /// Bits it denies.
    pub deny: Permissions,
}

/// Whom an overwrite binds; the guild's id as role is `@everyone`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum OverwriteOf {
    Role(Id),
    Member(Id),
}

/// A stored message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Id.
    pub id: Id,
    /// Its channel.
    pub channel: Id,
    /// Author: a user, or the webhook's id.
    pub author: Id,
    /// The webhook's name, if one wrote it.
    pub webhook: Option<String>,
    /// Text.
    pub content: String,
    /// The API's message type.
    pub kind: u8,
    /// When it was edited, in Unix milliseconds.
    pub edited_ms: Option<i64>,
    /// What it refers to.
    pub reference: Option<Reference>,
    /// What is sent as `referenced_message`.
    pub referenced: super::draft::Referenced,
    /// Users mentioned, a pinged reply's author among them.
    pub mentions: Vec<Id>,
    /// Roles mentioned.
    pub mention_roles: Vec<Id>,
    /// Whether everyone is mentioned.
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
    /// Whether it is pinned.
    pub pinned: bool,
    /// The nonce it was sent with.
    pub nonce: Option<Value>,
    /// Emoji (as in the address of the reaction routes) and who reacted.
    pub reactions: Vec<(String, Vec<Id>)>,
    /// The interaction it answers.
    pub interaction: Option<Id>,
    /// `allowed_mentions` as the bot sent it.
    pub allowed_mentions: Option<Value>,
    /// How many messages its thread had before it.
    pub position: u64,
    /// Texts it had before its edits, oldest first.
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

/// An interaction that was given to the bot.
#[derive(Clone, Debug)]
pub struct Interaction {
    /// Id.
    pub id: Id,
    /// The token that answers need.
    pub token: String,
    /// 2 command, 3 component, 4 autocomplete, 5 modal.
    pub kind: u8,
    /// Name of the command, or the component's custom id.
    pub name: String,
    /// Who used it.
    pub user: Id,
    /// Where.
    pub channel: Id,
    /// The message of a component.
    pub message: Option<Id>,
    /// The first answer's body; absent: not acknowledged yet.
    pub callback: Option<Value>,
    /// The message of the first answer; the component's own after an update.
    pub original: Option<Id>,
    /// Whether that message was edited after the first answer.
    pub edited: bool,
    /// When it was used, after the server's start.
    pub at: Duration,
    /// Messages that followed.
    pub followups: Vec<Id>,
}
