//! What happened on Discord, as memory is told.

use std::collections::BTreeSet;

use crate::memory::history::stored_words;
use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
use clew_store::Purge;

/// Something that happened on Discord and must be carried over to every store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiscordChange {
    /// `MESSAGE_DELETE`, `MESSAGE_DELETE_BULK`.
    Deleted {
        /// The server; none in direct messages.
        guild: Option<GuildId>,
        /// The channel that they were in.
        channel: ChannelId,
        ids: Vec<MessageId>,
    },
    /// Discord was asked for these messages and knows none of them (10008).
    Unknown {
        /// The channel that they were in.
        channel: ChannelId,
        ids: Vec<MessageId>,
    },
    /// `MESSAGE_UPDATE`.
    Edited {
        /// The server; none in direct messages.
        guild: Option<GuildId>,
        channel: ChannelId,
        /// Its new words.
        edit: Edit,
    },
    /// `CHANNEL_DELETE` or `THREAD_DELETE`.
    ChannelDeleted {
        /// The server; none of a direct conversation.
        guild: Option<GuildId>,
        channel: ChannelId,
    },
    /// `GUILD_DELETE`, not for an outage.
    GuildLeft(GuildId),
    /// We are in this server.
    GuildJoined(GuildId),
    /// A shard has a new session, and these are its servers: we have left any other
    /// server that belongs to it by id.
    Connected {
        shard: u32,
        /// The total number of shards.
        shards: u32,
        /// The shard's servers.
        guilds: Vec<GuildId>,
    },
    /// A member left a server.
    MemberLeft {
        guild: GuildId,
        /// The user who left.
        user: UserId,
    },
    /// A page was fetched.
    Fetched(Fetched),
    /// Whether a channel's messages from some id on still exist is in doubt.
    Recheck {
        /// The server; none of a direct conversation, or if it is not known.
        guild: Option<GuildId>,
        channel: ChannelId,
        /// The first message in doubt.
        from: MessageId,
    },
}

/// A message that was edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub message: MessageId,
    /// What it says now, as a turn would store it; none for an application's.
    pub words: Option<String>,
    /// When a person edited it; none if Discord only added a preview.
    pub at: Option<UnixMillis>,
}

impl Edit {
    pub(in crate::memory) fn stored_words(&self) -> Option<&str> {
        self.words.as_deref().map(stored_words)
    }

    /// Removes what was made from its former words; none if nobody edited them.
    pub(in crate::memory) fn withdraws(&self, channel: ChannelId) -> Option<Purge> {
        let message = self.message;
        self.at.map(|at| Purge::Edited {
            channel,
            message,
            at,
        })
    }

    fn bytes(&self) -> usize {
        self.words.as_ref().map_or(0, String::len)
    }
}

impl DiscordChange {
    /// The memory that it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        let texts = |edits: &[Edit]| -> usize {
            let one = |edit: &Edit| size_of::<Edit>() + edit.bytes();
            edits.iter().map(one).sum()
        };
        size_of::<Self>()
            + match self {
                Self::Deleted { ids, .. } | Self::Unknown { ids, .. } => size_of_val(&**ids),
                Self::Edited { edit, .. } => edit.bytes(),
                Self::Connected { guilds, .. } => size_of_val(&**guilds),
                Self::Fetched(page) => {
                    // A set takes about twice the size of its elements.
                    2 * page.present.len() * size_of::<MessageId>() + texts(&page.edited)
                }
                Self::ChannelDeleted { .. }
                | Self::GuildLeft(_)
                | Self::GuildJoined(_)
                | Self::MemberLeft { .. }
                | Self::Recheck { .. } => 0,
            }
    }

    /// Whether it says all that an earlier one still has to say, of the same server or
    /// shard.
    pub(super) fn replaces(&self, earlier: &Self) -> bool {
        match (self, earlier) {
            (
                Self::GuildLeft(guild) | Self::GuildJoined(guild),
                Self::GuildLeft(same) | Self::GuildJoined(same),
            ) => guild == same,
            (Self::Connected { shard, .. }, Self::Connected { shard: same, .. }) => shard == same,
            _ => false,
        }
    }
}

/// What a fetched page shows: which messages were edited and, within its range,
/// which are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// When it was fetched, by our clock.
    pub at: UnixMillis,
    /// The server; none in direct messages.
    pub guild: Option<GuildId>,
    pub channel: ChannelId,
    /// The first id of the page's range...
    pub from: MessageId,
    /// ...and the last, both included.
    pub to: MessageId,
    /// The messages on the page.
    pub present: BTreeSet<MessageId>,
    pub edited: Vec<Edit>,
}

impl Fetched {
    /// A page of one message, which exists.
    pub(in crate::memory) fn one(at: UnixMillis, channel: ChannelId, edit: Edit) -> Self {
        let id = edit.message;
        Self {
            at,
            guild: None,
            channel,
            from: id,
            to: id,
            present: BTreeSet::from([id]),
            edited: vec![edit],
        }
    }
}

/// Merges consecutive deletions in one channel, and drops edits of a message that
/// a later edit by a person replaces.
pub(super) fn together(changes: Vec<DiscordChange>) -> Vec<DiscordChange> {
    let mut edited = BTreeSet::new();
    let mut is_latest: Vec<bool> = changes
        .iter()
        .rev()
        .map(|change| match change {
            DiscordChange::Edited { edit, .. } if edited.contains(&edit.message) => false,
            DiscordChange::Edited { edit, .. } if edit.at.is_some() => edited.insert(edit.message),
            _ => true,
        })
        .collect();
    is_latest.reverse();
    let latest = changes.into_iter().zip(is_latest);
    let latest = latest.filter_map(|(change, is_latest)| is_latest.then_some(change));
    let mut all: Vec<DiscordChange> = Vec::new();
    for change in latest {
        match (all.last_mut(), change) {
            (
                Some(DiscordChange::Deleted { channel, ids, .. }),
                DiscordChange::Deleted {
                    channel: same,
                    ids: more,
                    ..
                },
            ) if *channel == same => ids.extend(more),
            (_, change) => all.push(change),
        }
    }
    all
}
