//! Which channels a caller may read at the moment.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::CommandServices;
use super::call::Call;
use clew_context::model::{Access, ChannelId, ChannelKind, Missing, Rights, RoleId};

/// For all requests of one call together.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// The most archived and private threads that Discord is asked about for one call;
/// any others count as unreadable.
const MOST_LOOKS: usize = 40;

/// The channels that the caller may read with these roles, usually those in the call.
/// Direct messages are always the caller's own.
pub(super) async fn among(
    services: &CommandServices<'_>,
    call: &Call,
    roles: &[RoleId],
    channels: BTreeSet<ChannelId>,
) -> BTreeSet<ChannelId> {
    if call.guild().is_none() {
        return channels;
    }
    let mut looks = Looks {
        services,
        call,
        roles,
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
    services: &'a CommandServices<'a>,
    call: &'a Call,
    roles: &'a [RoleId],
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
        let guild_state = self.services.guild_state;
        guild_state.access(self.call.caller(), Some(self.roles), channel)
    }

    /// A private thread is for its members; calling a command in it proves membership.
    async fn as_member(&mut self, thread: ChannelId, member: Rights) -> Option<bool> {
        if thread == self.call.channel_id() || !member.read_history {
            return Some(member.read_history);
        }
        self.look()?;
        let (reader, caller) = (self.services.rest.reader(), self.call.caller());
        let is_member = reader.thread_member(thread, caller, self.deadline);
        is_member.await.ok()
    }

    /// Archived threads are not in the guild state: the rights in the thread's parent
    /// channel apply to them.
    async fn archived(&mut self, thread: ChannelId) -> Option<bool> {
        self.look()?;
        let reader = self.services.rest.reader();
        let found = reader.channel(thread, self.deadline).await.ok()?;
        if !found.kind.is_thread() || found.guild != self.call.guild() {
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
