//! A channel or thread, and who may do what in it.

use super::{ChannelId, GuildId, RoleId, TagId, UserId};

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
    /// Names of the tags applied to a post, as far as the parent is known.
    pub tags: Vec<String>,
    /// Its permission overwrites; absent where they are not told or cannot be
    /// read. A thread has none: its parent's count.
    pub overwrites: Option<Vec<Overwrite>>,
    /// What only threads have.
    pub thread: Option<ThreadState>,
}

/// One permission overwrite of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwrite {
    /// Whom it concerns.
    pub target: Target,
    /// Permissions given, in Discord's bits.
    pub allow: u64,
    /// Permissions taken.
    pub deny: u64,
}

/// Whom an overwrite concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Who has this role.
    Role(RoleId),
    /// One person.
    Member(UserId),
}

/// What permissions in a server rest on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guild {
    /// Its id, which its everyone role bears as well.
    pub id: GuildId,
    /// Who owns it; nobody where that could not be read.
    pub owner: Option<UserId>,
    /// All of its roles, with their permissions in Discord's bits.
    pub roles: Vec<(RoleId, u64)>,
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
    /// Tags applied to a post.
    pub applied_tags: Vec<TagId>,
}

/// What a thread's object does not tell of the channel that it stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Discord's channel type.
    pub kind: ChannelKind,
    /// Its name.
    pub name: String,
    /// A forum's or media channel's tags, by name.
    pub tags: Vec<(TagId, String)>,
}

impl Channel {
    /// The same, its parent known.
    #[must_use]
    pub fn under(mut self, parent: Parent) -> Self {
        let applied = self.thread.iter().flat_map(|thread| &thread.applied_tags);
        let name = |id| parent.tags.iter().find(|(known, _)| known == id);
        self.tags = applied
            .filter_map(name)
            .map(|(_, name)| name.clone())
            .collect();
        self.parent_kind = Some(parent.kind);
        self.parent_name = Some(parent.name);
        self
    }
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

/// What somebody may do in one channel, as far as that is known. Unknown is no:
/// what is not certain has to be asked for, and until then is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// View it, and this.
    Allowed(Rights),
    /// Nothing, not even view it.
    Denied,
    /// Nobody knows yet.
    Unknown(Missing),
}

/// What would tell what somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The channel, its overwrites, the server's roles or the person's.
    Facts,
    /// Whether the person is a member of the private thread. Who is may do this,
    /// nobody else anything.
    Membership(Rights),
}

/// What somebody may do in a channel that he may view, as far as a turn asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one permission of Discord's"
)]
pub struct Rights {
    /// Read Message History.
    pub read_history: bool,
    /// Send Messages, in threads Send Messages in Threads.
    pub send: bool,
    /// Add Reactions.
    pub react: bool,
    /// Attach Files.
    pub attach: bool,
}

impl Access {
    /// Everything, as in a direct message.
    pub const FULL: Self = Self::Allowed(Rights {
        read_history: true,
        send: true,
        react: true,
        attach: true,
    });

    /// View Channel (and, for a private thread, membership or Manage Threads).
    pub const fn may_view(self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Read what was written before: View Channel and Read Message History. The
    /// asker who may not gets the trigger and the message it carries, nothing
    /// else.
    pub const fn may_read(self) -> bool {
        matches!(self, Self::Allowed(rights) if rights.read_history)
    }

    /// It is certain that this is not allowed. For what we do ourselves, which
    /// Discord refuses if need be: what is unknown is tried.
    pub fn forbids(self, right: impl Fn(Rights) -> bool) -> bool {
        match self {
            Self::Allowed(rights) => !right(rights),
            Self::Denied => true,
            Self::Unknown(_) => false,
        }
    }

    /// Of somebody who is known to be a member of the thread, if it is one.
    #[must_use]
    pub const fn as_member(self) -> Self {
        match self {
            Self::Unknown(Missing::Membership(rights)) => Self::Allowed(rights),
            known => known,
        }
    }
}
