//! A channel or thread, and who may do what in it.

use super::{ChannelId, GuildId, UserId};

/// A channel of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its id.
    pub id: ChannelId,
    /// Its server; absent for direct messages.
    pub guild: Option<GuildId>,
    /// Discord's channel type.
    pub kind: ChannelKind,
    /// Its name; a thread's is its title. Empty for direct messages.
    pub name: String,
    /// A thread's channel, a channel's category.
    pub parent: Option<ChannelId>,
    /// Of the parent, where it is known: tells a forum post from a thread.
    pub parent_kind: Option<ChannelKind>,
    /// Name of the parent, where it is known.
    pub parent_name: Option<String>,
    /// Names of the tags applied to a forum or media post.
    pub tags: Vec<String>,
    /// What only threads have.
    pub thread: Option<ThreadState>,
}

/// What only threads have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadState {
    /// Who opened it.
    pub owner: Option<UserId>,
    /// Archived: sending to it opens it again, unless locked.
    pub archived: bool,
    /// Locked: only moderators may write or open it.
    pub locked: bool,
    /// Messages in it as Discord counts them (without the starter and deleted
    /// ones), when the object was last seen.
    pub message_count: Option<u32>,
}

/// Discord's channel types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// Type 0.
    Text,
    /// Type 1.
    Dm,
    /// Type 2, which has text too.
    Voice,
    /// Type 3.
    GroupDm,
    /// Type 4.
    Category,
    /// Type 5.
    Announcement,
    /// Type 10.
    AnnouncementThread,
    /// Type 11; also forum and media posts.
    PublicThread,
    /// Type 12.
    PrivateThread,
    /// Type 13, which has text too.
    Stage,
    /// Type 15.
    Forum,
    /// Type 16.
    Media,
    /// A type this version does not know.
    Other(u8),
}

impl ChannelKind {
    /// From Discord's number.
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Text,
            1 => Self::Dm,
            2 => Self::Voice,
            3 => Self::GroupDm,
            4 => Self::Category,
            5 => Self::Announcement,
            10 => Self::AnnouncementThread,
            11 => Self::PublicThread,
            12 => Self::PrivateThread,
            13 => Self::Stage,
            15 => Self::Forum,
            16 => Self::Media,
            other => Self::Other(other),
        }
    }

    /// Discord's number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Dm => 1,
            Self::Voice => 2,
            Self::GroupDm => 3,
            Self::Category => 4,
            Self::Announcement => 5,
            Self::AnnouncementThread => 10,
            Self::PublicThread => 11,
            Self::PrivateThread => 12,
            Self::Stage => 13,
            Self::Forum => 15,
            Self::Media => 16,
            Self::Other(other) => other,
        }
    }

    /// Threads of every kind, forum and media posts among them.
    pub const fn is_thread(self) -> bool {
        matches!(
            self,
            Self::AnnouncementThread | Self::PublicThread | Self::PrivateThread
        )
    }

    /// A direct message, alone or in a group.
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::Dm | Self::GroupDm)
    }

    /// Channels whose threads are posts: the starter stands in the thread.
    pub const fn is_forum(self) -> bool {
        matches!(self, Self::Forum | Self::Media)
    }
}

/// What somebody may do in one channel, as far as a turn asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one permission of Discord's"
)]
pub struct Access {
    /// View Channel (and, for a private thread, membership or Manage Threads).
    pub view: bool,
    /// Read Message History.
    pub read_history: bool,
    /// Send Messages, in threads Send Messages in Threads.
    pub send: bool,
    /// Add Reactions.
    pub react: bool,
    /// Attach Files.
    pub attach: bool,
    /// Manage Server.
    pub manage_guild: bool,
}

impl Access {
    /// Everything, as in a direct message.
    pub const FULL: Self = Self {
        view: true,
        read_history: true,
        send: true,
        react: true,
        attach: true,
        manage_guild: true,
    };

    /// Nothing.
    pub const NONE: Self = Self {
        view: false,
        read_history: false,
        send: false,
        react: false,
        attach: false,
        manage_guild: false,
    };
}
