//! A channel or thread, and who may do what in it.

use super::number::numbered;
use super::{ChannelId, GuildId, RoleId, TagId, UserId};

/// A channel of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its id.
    pub id: ChannelId,
    /// Its server; `None` for direct messages.
    pub guild: Option<GuildId>,
    /// Discord's channel type.
    pub kind: ChannelKind,
    /// Its name; a thread's is its title. Empty for direct messages.
    pub name: String,
    /// Its topic, of a forum its guidelines; a thread's is its parent's. Empty if there is none
    /// or it is not known; at most [`Channel::TOPIC_CHARS`].
    pub topic: String,
    /// A thread's channel, or a channel's category.
    pub parent: Option<ChannelId>,
    /// The parent's type, if known: tells a forum post from a thread.
    pub parent_kind: Option<ChannelKind>,
    /// The parent's name, if known.
    pub parent_name: Option<String>,
    /// Names of the tags applied to a post; empty if the parent is unknown.
    pub tags: Vec<String>,
    /// Its permission overwrites; `None` if they were not sent or cannot be read.
    /// Threads have none of their own: the parent's apply.
    pub overwrites: Option<Vec<Overwrite>>,
    /// Fields that only threads have.
    pub thread: Option<ThreadState>,
}

/// One permission overwrite of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwrite {
    /// Whom it applies to.
    pub target: OverwriteTarget,
    /// Permissions granted, as Discord's bits.
    pub allow: u64,
    /// Permissions denied, as Discord's bits.
    pub deny: u64,
}

/// Whom an overwrite applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverwriteTarget {
    /// Everybody with this role.
    Role(RoleId),
    /// One person.
    Member(UserId),
}

/// The parts of a server that permissions are computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guild {
    /// Its id, which is also the id of its @everyone role.
    pub id: GuildId,
    /// Its owner; `None` if that could not be read.
    pub owner: Option<UserId>,
    /// All of its roles, with their permissions as Discord's bits.
    pub roles: Vec<(RoleId, u64)>,
}

/// Fields that only threads have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadState {
    /// Who opened it.
    pub owner: Option<UserId>,
    /// Archived: a new message reopens it, unless it is locked.
    pub archived: bool,
    /// Locked: only moderators may write in it or reopen it.
    pub locked: bool,
    /// Discord's count of its messages when the object was last seen, without the
    /// starter and deleted messages.
    pub message_count: Option<u32>,
    /// Tags applied to a post.
    pub applied_tags: Vec<TagId>,
}

/// Facts about a thread's parent that the thread object does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    /// Discord's channel type.
    pub kind: ChannelKind,
    /// Its name.
    pub name: String,
    /// Its topic, as a channel's.
    pub topic: String,
    /// A forum's or media channel's tags, by name.
    pub tags: Vec<(TagId, String)>,
}

impl Channel {
    /// Most Unicode scalars of a topic that are kept and shown. Discord allows 1,024, and 4,096
    /// of a forum's guidelines.
    pub const TOPIC_CHARS: usize = 500;

    /// A channel of which nothing else is known.
    pub const fn new(id: ChannelId, kind: ChannelKind) -> Self {
        Self {
            id,
            guild: None,
            kind,
            name: String::new(),
            topic: String::new(),
            parent: None,
            parent_kind: None,
            parent_name: None,
            tags: Vec::new(),
            overwrites: None,
            thread: None,
        }
    }

    /// Returns the channel with the details of its parent filled in: a thread's
    /// channel, or a channel's category.
    #[must_use]
    pub fn under(mut self, parent: Parent) -> Self {
        let applied = self.thread.iter().flat_map(|thread| &thread.applied_tags);
        let name = |id| parent.tags.iter().find(|(known, _)| known == id);
        self.tags = applied
            .filter_map(name)
            .map(|(_, name)| name.clone())
            .collect();
        if self.kind.is_thread() {
            self.topic = parent.topic;
        }
        self.parent_kind = Some(parent.kind);
        self.parent_name = Some(parent.name);
        self
    }
}

numbered! {
    /// Discord's channel types.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    ChannelKind: u8 {
        /// A type this version does not know.
        Other,
        /// A server's text channel.
        Text = 0,
        /// A direct message.
        Dm = 1,
        /// It can hold messages too.
        Voice = 2,
        /// A direct message among several people.
        GroupDm = 3,
        /// It holds channels.
        Category = 4,
        /// Its messages can be followed elsewhere.
        Announcement = 5,
        /// A thread of an announcement channel.
        AnnouncementThread = 10,
        /// Also forum and media posts.
        PublicThread = 11,
        /// A thread for those who are added to it.
        PrivateThread = 12,
        /// It can hold messages too.
        Stage = 13,
        /// It holds posts.
        Forum = 15,
        /// It holds posts with media.
        Media = 16,
    }
}

impl ChannelKind {
    /// Whether it is a thread of any kind, forum and media posts included.
    pub const fn is_thread(self) -> bool {
        matches!(
            self,
            Self::AnnouncementThread | Self::PublicThread | Self::PrivateThread
        )
    }

    /// Whether it is a direct message, with one person or a group.
    pub const fn is_direct(self) -> bool {
        matches!(self, Self::Dm | Self::GroupDm)
    }

    /// Whether its threads are posts, whose starter is inside the thread.
    pub const fn is_forum(self) -> bool {
        matches!(self, Self::Forum | Self::Media)
    }
}

/// What somebody may do in one channel, as far as we know. Unknown counts as no:
/// it has to be looked up first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// May view the channel and has these rights.
    Allowed(Rights),
    /// May not even view it.
    Denied,
    /// Not known yet.
    Unknown(Missing),
}

/// The information needed to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The channel, its overwrites, the server's roles or the person's.
    Facts,
    /// Whether the person is a member of the private thread. Members have these
    /// rights, others none.
    Membership(Rights),
}

/// What somebody who may view a channel may do in it; only the rights a turn needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one permission of Discord's"
)]
pub struct Rights {
    /// Read Message History.
    pub read_history: bool,
    /// Send Messages, or Send Messages in Threads.
    pub send: bool,
    /// Add Reactions.
    pub react: bool,
    /// Attach Files.
    pub attach: bool,
    /// Create Public Threads, and Send Messages in Threads.
    pub open_threads: bool,
}

impl Access {
    /// Every right, as in a direct message.
    pub const FULL: Self = Self::Allowed(Rights {
        read_history: true,
        send: true,
        react: true,
        attach: true,
        open_threads: true,
    });

    /// Whether View Channel is granted (in a private thread, also membership or
    /// Manage Threads).
    pub const fn may_view(self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Whether earlier messages may be read: View Channel and Read Message History.
    /// Without it, the asker gets only the trigger and the message it includes.
    pub const fn may_read(self) -> bool {
        matches!(self, Self::Allowed(rights) if rights.read_history)
    }

    /// Whether public threads may be opened there and written in.
    pub const fn may_open_threads(self) -> bool {
        matches!(self, Self::Allowed(rights) if rights.open_threads)
    }

    /// Whether a right is known to be denied. For our own actions: what is unknown
    /// we try, since Discord refuses it if it must.
    pub fn forbids(self, right: impl Fn(Rights) -> bool) -> bool {
        match self {
            Self::Allowed(rights) => !right(rights),
            Self::Denied => true,
            Self::Unknown(_) => false,
        }
    }

    /// The same for somebody known to be a member of the thread, if it is one.
    #[must_use]
    pub const fn as_member(self) -> Self {
        match self {
            Self::Unknown(Missing::Membership(rights)) => Self::Allowed(rights),
            known => known,
        }
    }

    /// The same for somebody who cannot be a member of the thread, if it is one.
    #[must_use]
    pub const fn as_stranger(self) -> Self {
        match self {
            Self::Unknown(Missing::Membership(_)) => Self::Denied,
            known => known,
        }
    }
}
