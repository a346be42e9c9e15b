//! Permission bits, and how roles and overwrites combine (Discord's reference, "Permissions").

use std::ops::BitOr;

use super::ids::Id;
use super::world::{ChannelKind, Guild, OverwriteOf, World};

/// A set of permission bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(pub u64);

impl Permissions {
    /// No permission.
    pub const NONE: Self = Self(0);
    /// Every permission, regardless of overwrites.
    pub const ADMINISTRATOR: Self = Self(1 << 3);
    /// Edit and delete channels.
    pub const MANAGE_CHANNELS: Self = Self(1 << 4);
    /// Change the server's settings.
    pub const MANAGE_GUILD: Self = Self(1 << 5);
    /// Add a reaction that nobody has used on the message yet.
    pub const ADD_REACTIONS: Self = Self(1 << 6);
    /// See the channel at all.
    pub const VIEW_CHANNEL: Self = Self(1 << 10);
    /// Send messages outside threads.
    pub const SEND_MESSAGES: Self = Self(1 << 11);
    /// Delete and pin other people's messages.
    pub const MANAGE_MESSAGES: Self = Self(1 << 13);
    /// Show embeds for links.
    pub const EMBED_LINKS: Self = Self(1 << 14);
    /// Send files.
    pub const ATTACH_FILES: Self = Self(1 << 15);
    /// Read earlier messages.
    pub const READ_MESSAGE_HISTORY: Self = Self(1 << 16);
    /// Mention everyone.
    pub const MENTION_EVERYONE: Self = Self(1 << 17);
    /// Connect to a voice channel; without it its messages are inaccessible too.
    pub const CONNECT: Self = Self(1 << 20);
    /// Edit roles and overwrites.
    pub const MANAGE_ROLES: Self = Self(1 << 28);
    /// Time members out.
    pub const MODERATE_MEMBERS: Self = Self(1 << 40);
    /// Use commands.
    pub const USE_APPLICATION_COMMANDS: Self = Self(1 << 31);
    /// Archive, lock and delete threads, and see all private ones.
    pub const MANAGE_THREADS: Self = Self(1 << 34);
    /// Open public threads.
    pub const CREATE_PUBLIC_THREADS: Self = Self(1 << 35);
    /// Open private threads.
    pub const CREATE_PRIVATE_THREADS: Self = Self(1 << 36);
    /// Send messages in threads.
    pub const SEND_MESSAGES_IN_THREADS: Self = Self(1 << 38);
    /// Everything.
    pub const ALL: Self = Self((1 << 53) - 1);
    /// The permissions of `@everyone` in a new guild of the simulator.
    pub const EVERYONE: Self = Self(
        Self::ADD_REACTIONS.0
            | Self::VIEW_CHANNEL.0
            | Self::SEND_MESSAGES.0
            | Self::EMBED_LINKS.0
            | Self::ATTACH_FILES.0
            | Self::READ_MESSAGE_HISTORY.0
            | Self::CONNECT.0
            | Self::USE_APPLICATION_COMMANDS.0
            | Self::CREATE_PUBLIC_THREADS.0
            | Self::CREATE_PRIVATE_THREADS.0
            | Self::SEND_MESSAGES_IN_THREADS.0,
    );

    /// What a timeout leaves to those who are no administrators.
    const IN_TIMEOUT: Self = Self(Self::VIEW_CHANNEL.0 | Self::READ_MESSAGE_HISTORY.0);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These bits without those of `other`.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for Permissions {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl World {
    /// What a user may do in a channel; a thread follows its parent. Everything in
    /// a direct message, nothing for somebody who is not a member.
    pub fn permissions(&self, user: Id, channel: Id) -> Permissions {
        let Some(channel) = self.channels.get(&channel) else {
            return Permissions::NONE;
        };
        let Some(guild) = channel.guild.and_then(|guild| self.guilds.get(&guild)) else {
            return Permissions::ALL;
        };
        let base = guild.permissions(user);
        if base.contains(Permissions::ADMINISTRATOR) {
            return Permissions::ALL;
        }
        let ruling = match (channel.kind.is_thread(), channel.parent) {
            (true, Some(parent)) => self.channels.get(&parent).unwrap_or(channel),
            _ => channel,
        };
        let held = apply_overwrites(base, guild, user, &ruling.overwrites);
        let until = guild
            .members
            .get(&user)
            .and_then(|one| one.timed_out_until_ms);
        let held = if until.is_some_and(|until| self.now_ms() < until) {
            Permissions(held.0 & Permissions::IN_TIMEOUT.0)
        } else {
            held
        };
        if held.contains(Permissions::VIEW_CHANNEL) {
            held
        } else {
            Permissions::NONE
        }
    }

    /// Whether a user sees a channel: View Channel and, for a private thread, also
    /// membership or Manage Threads.
    pub fn sees(&self, user: Id, channel: Id) -> bool {
        let Some(found) = self.channels.get(&channel) else {
            return false;
        };
        if found.guild.is_none() {
            return found.recipients.contains(&user) || user == self.bot;
        }
        let held = self.permissions(user, channel);
        let joined = found.kind != ChannelKind::PrivateThread
            || held.contains(Permissions::MANAGE_THREADS)
            || found
                .thread
                .as_ref()
                .is_some_and(|thread| thread.members.contains_key(&user));
        held.contains(Permissions::VIEW_CHANNEL) && joined
    }

    /// Whether the bot holds these permissions in a channel.
    pub(super) fn bot_may(&self, channel: Id, wanted: Permissions) -> bool {
        self.permissions(self.bot, channel).contains(wanted)
    }
}

impl Guild {
    /// A member's permissions in the guild, before overwrites.
    pub(super) fn permissions(&self, user: Id) -> Permissions {
        let Some(member) = self.members.get(&user) else {
            return Permissions::NONE;
        };
        if self.owner == user {
            return Permissions::ALL;
        }
        let everyone = self
            .roles
            .get(&self.id)
            .map_or(0, |role| role.permissions.0);
        let held = member
            .roles
            .iter()
            .filter_map(|role| self.roles.get(role))
            .fold(everyone, |held, role| held | role.permissions.0);
        Permissions(held)
    }
}

/// Applies `@everyone`'s overwrite, then those of all roles together, then the member's own.
fn apply_overwrites(
    base: Permissions,
    guild: &Guild,
    user: Id,
    overwrites: &[super::world::Overwrite],
) -> Permissions {
    let roles = guild.members.get(&user).map_or(&[][..], |m| &m.roles[..]);
    let stage = |held: u64, applies: &dyn Fn(OverwriteOf) -> bool| {
        let (allow, deny) = overwrites
            .iter()
            .filter(|overwrite| applies(overwrite.of))
            .fold((0, 0), |(allow, deny), overwrite| {
                (allow | overwrite.allow.0, deny | overwrite.deny.0)
            });
        (held & !deny) | allow
    };
    let held = stage(base.0, &|of| of == OverwriteOf::Role(guild.id));
    let held = stage(
        held,
        &|of| matches!(of, OverwriteOf::Role(role) if role != guild.id && roles.contains(&role)),
    );
    Permissions(stage(held, &|of| of == OverwriteOf::Member(user)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: Permissions = Permissions::VIEW_CHANNEL;
    const SEND: Permissions = Permissions::SEND_MESSAGES;
    const NONE: Permissions = Permissions::NONE;

    /// Whether a member with the roles 0 and 1 may send, with these overwrites (for
    /// 9 `@everyone`, 0 or 1 a role, 5 the member; allow; deny).
    #[track_caller]
    fn check(overwrites: &[(u8, Permissions, Permissions)], expected: bool) {
        let mut world = World::new();
        let guild = world.guild("Guild");
        let channel = world.channel(guild, ChannelKind::Text, "general");
        let user = world.member(guild, "alice");
        let roles = [0, 1].map(|_| world.role(guild, "role", NONE));
        for role in roles {
            world.give_role(guild, user, role);
        }
        for &(of, allow, deny) in overwrites {
            let of = match of {
                9 => OverwriteOf::Role(guild),
                5 => OverwriteOf::Member(user),
                role => OverwriteOf::Role(roles[usize::from(role)]),
            };
            world.overwrite(channel, of, allow, deny);
        }
        assert_eq!(world.permissions(user, channel).contains(SEND), expected);
    }

    #[test]
    fn overwrites_apply_in_their_order() {
        check(&[], true);
        check(&[(9, NONE, SEND)], false);
        check(&[(9, NONE, SEND), (0, SEND, NONE)], true);
        check(&[(0, NONE, SEND), (1, SEND, NONE)], true);
        check(&[(0, SEND, NONE), (5, NONE, SEND)], false);
        check(&[(0, NONE, SEND), (5, SEND, NONE)], true);
        check(&[(9, NONE, VIEW)], false);
        check(&[(9, NONE, VIEW), (5, VIEW, NONE)], true);
    }
}
