//! Which channels somebody may read at the moment.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::CommandServices;
use super::call::Call;
use clew_context::model::{
    Access, ChannelId, ChannelKind, GuildId, Missing, Rights, RoleId, UserId,
};
use clew_discord::guild_state::GuildState;
use clew_discord::rest::Rest;

/// For all requests of one call together.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// The most archived and private threads that Discord is asked about for one call;
/// any others count as unreadable.
const MOST_LOOKS: usize = 40;

/// Somebody who wants to read.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub guild_state: &'a GuildState,
    pub rest: &'a Rest,
    pub user: UserId,
    /// None in direct messages, which are always theirs.
    pub guild: Option<GuildId>,
    /// Where they ask; they are there themselves.
    pub here: ChannelId,
    pub roles: &'a [RoleId],
}

impl<'a> Reader<'a> {
    /// The caller, with these roles: usually those in the call.
    pub(super) fn of(services: &CommandServices<'a>, call: &Call, roles: &'a [RoleId]) -> Self {
        Self {
            guild_state: services.guild_state,
            rest: services.rest,
            user: call.caller(),
            guild: call.guild(),
            here: call.channel_id(),
            roles,
        }
    }
}

/// The channels that somebody may read.
pub(super) async fn among(
    reader: &Reader<'_>,
    channels: BTreeSet<ChannelId>,
) -> BTreeSet<ChannelId> {
    if reader.guild.is_none() {
        return channels;
    }
    let mut looks = Looks {
        reader,
        left: MOST_LOOKS,
        deadline: Instant::now() + TIMEOUT,
    };
    let mut readable = BTreeSet::new();
    for channel in channels {
        if looks.may_read(channel).await.unwrap_or(false) {
            readable.insert(channel);
        }
    }
    readable
}

struct Looks<'a> {
    reader: &'a Reader<'a>,
    left: usize,
    deadline: Instant,
}

impl Looks<'_> {
    /// None if it cannot be found out.
    async fn may_read(&mut self, channel: ChannelId) -> Option<bool> {
        match self.access(channel) {
            Access::Unknown(Missing::Membership(rights)) => self.as_member(channel, rights).await,
            Access::Unknown(Missing::Facts) => self.archived(channel).await,
            known => Some(known.may_read()),
        }
    }

    fn access(&self, channel: ChannelId) -> Access {
        let Reader {
            guild_state, user, ..
        } = self.reader;
        guild_state.access(*user, Some(self.reader.roles), channel)
    }

    /// A private thread is for its members; calling a command in it proves membership.
    async fn as_member(&mut self, thread: ChannelId, member: Rights) -> Option<bool> {
        if thread == self.reader.here || !member.read_history {
            return Some(member.read_history);
        }
        self.look()?;
        let (rest, user) = (self.reader.rest.reader(), self.reader.user);
        let is_member = rest.thread_member(thread, user, self.deadline);
        is_member.await.ok()
    }

    /// Archived threads are not in the guild state: the rights in the thread's parent
    /// channel apply to them.
    async fn archived(&mut self, thread: ChannelId) -> Option<bool> {
        self.look()?;
        let rest = self.reader.rest.reader();
        let found = rest.channel(thread, self.deadline).await.ok()?;
        if !found.kind.is_thread() || found.guild != self.reader.guild {
            return None;
        }
        let Access::Allowed(rights) = self.access(found.parent?) else {
            return None;
        };
        match found.kind {
            ChannelKind::PrivateThread => self.as_member(thread, rights).await,
            _ => Some(rights.read_history),
        }
    }

    /// Counts one more request to Discord; none if there are too many.
    fn look(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }
}
