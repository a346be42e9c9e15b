//! One server with what is in it, and what people may do there.

use std::collections::BTreeMap;

use super::{PartialChannel, PartialGuild, PartialMember, PartialRole};
use clew_context::engine::access::{AccessFacts, ChannelClass, access, permissions_of};
use clew_context::model::{Access, ChannelId, GuildId, RoleId, UserId};

#[derive(Debug, Default)]
pub(super) struct KnownGuild {
    pub(super) name: String,
    /// The owner, if known.
    pub(super) owner_id: Option<UserId>,
    /// All roles, including @everyone.
    pub(super) roles: BTreeMap<RoleId, PartialRole>,
    /// Channels and threads. [`Guilds`](super::guilds::Guilds) alone adds and
    /// removes them, since it has the index.
    pub(super) channels: BTreeMap<ChannelId, PartialChannel>,
    /// Our roles, once our member is known.
    pub(super) our_roles: Option<Vec<RoleId>>,
}

impl KnownGuild {
    pub(super) fn new(name: String, owner_id: Option<UserId>, roles: Vec<PartialRole>) -> Self {
        Self {
            name,
            owner_id,
            roles: by_id(roles),
            ..Self::default()
        }
    }

    /// Replaces all roles. Returns whether any changed.
    pub(super) fn replace_roles(&mut self, roles: Vec<PartialRole>) -> bool {
        let roles = by_id(roles);
        let changed = self.roles != roles;
        self.roles = roles;
        changed
    }

    /// The threads of these channels, or all threads for `None`.
    pub(super) fn threads(&self, parents: Option<&[ChannelId]>) -> Vec<ChannelId> {
        let is_listed = |thread: &&PartialChannel| {
            let inside = |parents: &[ChannelId]| {
                let parent = thread.parent_id;
                parent.is_some_and(|parent| parents.contains(&parent))
            };
            thread.kind().is_thread() && parents.is_none_or(inside)
        };
        let threads = self.channels.values().filter(is_listed);
        threads.map(|thread| thread.id).collect()
    }

    /// Whether a channel is age-restricted, if that is known; a thread is with its parent.
    pub(super) fn is_age_restricted(&self, channel: ChannelId) -> Option<bool> {
        let known = self.channels.get(&channel);
        let judged = known.and_then(|known| match known.parent_id {
            Some(parent) if known.kind().is_thread() => self.channels.get(&parent),
            _ => Some(known),
        });
        Some(judged?.nsfw)
    }

    /// The oldest archived thread, or the oldest of all if none is archived.
    pub(super) fn oldest_thread(&self) -> Option<ChannelId> {
        let threads = self.channels.values().filter(|one| one.kind().is_thread());
        let oldest = threads.min_by_key(|one| (!one.thread_metadata.archived, one.id));
        oldest.map(|thread| thread.id)
    }

    /// As the session file holds it: threads among the channels, and of the
    /// members only ourselves.
    pub(super) fn to_partial(&self, id: GuildId, ourselves: Option<PartialMember>) -> PartialGuild {
        PartialGuild {
            id,
            name: self.name.clone(),
            owner_id: self.owner_id,
            roles: self.roles.values().cloned().collect(),
            channels: self.channels.values().cloned().collect(),
            threads: Vec::new(),
            members: ourselves.into_iter().collect(),
        }
    }

    /// What a user with these roles may do in a channel; `member` says whether
    /// they are in the private thread, if known. `None` if a role, the parent
    /// of a thread or an overwrite is not known.
    ///
    /// Computed by `clew-context`, not by twilight's calculator, which takes
    /// roles from cached members while the asker's come with the event; knows
    /// no private-thread membership; takes Attach Files away where Send
    /// Messages is denied, which means nothing in threads; and grants neither
    /// Manage Server nor Send Messages in the chat of voice and stage channels.
    pub(super) fn access(
        &self,
        id: GuildId,
        user: UserId,
        roles: &[RoleId],
        channel: &PartialChannel,
        member: Option<bool>,
    ) -> Option<Access> {
        // The overwrites of a thread are its parent's.
        let judged = if channel.kind().is_thread() {
            self.channels.get(&channel.parent_id?)?
        } else {
            channel
        };
        let bits = |role: RoleId| Some(self.roles.get(&role)?.permissions.0);
        let (place, overwrites) = ((id, self.owner_id), judged.overwrites());
        let permissions = permissions_of(place, user, roles, bits, overwrites.as_deref())?;
        let class = ChannelClass::of(channel.kind(), member);
        Some(access(&AccessFacts { permissions, class }))
    }
}

fn by_id(roles: Vec<PartialRole>) -> BTreeMap<RoleId, PartialRole> {
    roles.into_iter().map(|role| (role.id, role)).collect()
}
