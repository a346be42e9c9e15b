//! Who may do what in a channel: Discord's permission arithmetic, and what a
//! turn asks of it.

use crate::model::{Access, GuildId, RoleId, UserId};

/// Discord's permission bits, those that a rule of ours reads (Discord's
/// reference, "Permissions").
pub mod bits {
    /// Everything, past every overwrite.
    pub const ADMINISTRATOR: u64 = 1 << 3;
    /// Manage Server.
    pub const MANAGE_GUILD: u64 = 1 << 5;
    /// Add Reactions.
    pub const ADD_REACTIONS: u64 = 1 << 6;
    /// View Channel.
    pub const VIEW_CHANNEL: u64 = 1 << 10;
    /// Send Messages, which does not count in threads.
    pub const SEND_MESSAGES: u64 = 1 << 11;
    /// Manage Messages.
    pub const MANAGE_MESSAGES: u64 = 1 << 13;
    /// Attach Files.
    pub const ATTACH_FILES: u64 = 1 << 15;
    /// Read Message History.
    pub const READ_MESSAGE_HISTORY: u64 = 1 << 16;
    /// Connect; without it a voice channel's text is closed as well.
    pub const CONNECT: u64 = 1 << 20;
    /// Manage Threads, which opens private threads.
    pub const MANAGE_THREADS: u64 = 1 << 34;
    /// Send Messages in Threads.
    pub const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;
}

/// What somebody may do, from the facts.
pub fn access(facts: &AccessFacts) -> Access {
    let has = |bit: u64| facts.permissions & (bit | bits::ADMINISTRATOR) != 0;
    let entered = match facts.place {
        Place::Channel | Place::OpenThread => true,
        Place::Voice => has(bits::CONNECT),
        Place::PrivateThread { member } => member || has(bits::MANAGE_THREADS),
    };
    let view = has(bits::VIEW_CHANNEL) && entered;
    let send = match facts.place {
        Place::Channel | Place::Voice => bits::SEND_MESSAGES,
        Place::OpenThread | Place::PrivateThread { .. } => bits::SEND_MESSAGES_IN_THREADS,
    };
    Access {
        view,
        read_history: view && has(bits::READ_MESSAGE_HISTORY),
        send: view && has(send),
        react: view && has(bits::ADD_REACTIONS),
        attach: view && has(send) && has(bits::ATTACH_FILES),
        manage_guild: has(bits::MANAGE_GUILD),
    }
}

/// Whether somebody may read what was written before: View Channel and Read
/// Message History. The asker who may not gets the trigger and the message it
/// carries, nothing else.
pub const fn may_read(access: &Access) -> bool {
    access.view && access.read_history
}

/// What [`access`] judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessFacts {
    /// Permissions in the channel, in a thread those in its parent.
    pub permissions: u64,
    /// What kind of place it is.
    pub place: Place,
}

/// What the place asks of somebody beside permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A channel that is no thread.
    Channel,
    /// The text of a voice or stage channel.
    Voice,
    /// A public or announcement thread, forum and media posts.
    OpenThread,
    /// A private thread: for its members and for Manage Threads.
    PrivateThread {
        /// The person was added to it.
        member: bool,
    },
}

/// Permissions in a channel: the owner and administrators have all; else the
/// base of everyone and the roles, then the overwrite of everyone, then those
/// of all roles together, then the person's own (Discord's reference,
/// "Permission Overwrites").
pub fn permissions_in(standing: &Standing<'_>, overwrites: &[Overwrite]) -> u64 {
    let root = base(standing);
    if root & bits::ADMINISTRATOR != 0 {
        return root;
    }
    let everyone = RoleId::new(standing.guild.get());
    let mut role_allow = 0;
    let mut role_deny = 0;
    let mut own = (0, 0);
    let mut permissions = root;
    for overwrite in overwrites {
        match overwrite.target {
            Target::Role(role) if role == everyone => {
                permissions = permissions & !overwrite.deny | overwrite.allow;
            }
            Target::Role(role) if standing.roles.iter().any(|(id, _)| *id == role) => {
                role_allow |= overwrite.allow;
                role_deny |= overwrite.deny;
            }
            Target::Member(user) if user == standing.user => {
                own = (overwrite.allow, overwrite.deny);
            }
            Target::Role(_) | Target::Member(_) => {}
        }
    }
    permissions = permissions & !role_deny | role_allow;
    permissions = permissions & !own.1 | own.0;
    // Not a channel's to give or take.
    let server_wide = bits::ADMINISTRATOR | bits::MANAGE_GUILD;
    permissions & !server_wide | root & server_wide
}

/// Permissions in the whole server; all bits for owner and administrators.
fn base(standing: &Standing<'_>) -> u64 {
    let roles = standing.roles.iter().fold(0, |all, (_, role)| all | role);
    let root = standing.everyone | roles;
    if standing.owner || root & bits::ADMINISTRATOR != 0 {
        u64::MAX
    } else {
        root
    }
}

/// Who somebody is in a server.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The server; its everyone role has the same id.
    pub guild: GuildId,
    /// The person.
    pub user: UserId,
    /// Owns the server.
    pub owner: bool,
    /// Permissions of the everyone role.
    pub everyone: u64,
    /// The person's roles, with their permissions.
    pub roles: &'a [(RoleId, u64)],
}

/// One permission overwrite of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overwrite {
    /// Whom it concerns.
    pub target: Target,
    /// Permissions given.
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

#[cfg(test)]
mod tests {
    use super::bits::{
        ADMINISTRATOR, CONNECT, MANAGE_GUILD, MANAGE_THREADS, READ_MESSAGE_HISTORY, SEND_MESSAGES,
        SEND_MESSAGES_IN_THREADS, VIEW_CHANNEL,
    };
    use super::*;

    const GUILD: GuildId = GuildId::new(1);
    const EVERYONE: Target = Target::Role(RoleId::new(1));
    const HELPER: Target = Target::Role(RoleId::new(2));
    const GUEST: Target = Target::Role(RoleId::new(3));
    const USER: UserId = UserId::new(9);
    const READ: u64 = VIEW_CHANNEL | READ_MESSAGE_HISTORY;

    fn overwrite(target: Target, allow: u64, deny: u64) -> Overwrite {
        Overwrite {
            target,
            allow,
            deny,
        }
    }

    /// A person with the roles helper (`helper` bits) and guest (no bits).
    fn permissions(everyone: u64, helper: u64, overwrites: &[Overwrite]) -> u64 {
        let roles = [(RoleId::new(2), helper), (RoleId::new(3), 0)];
        let standing = Standing {
            guild: GUILD,
            user: USER,
            owner: false,
            everyone,
            roles: &roles,
        };
        permissions_in(&standing, overwrites)
    }

    #[track_caller]
    fn check(everyone: u64, helper: u64, overwrites: &[Overwrite], expected: u64) {
        assert_eq!(permissions(everyone, helper, overwrites), expected);
    }

    #[test]
    fn overwrites_apply_in_discords_order() {
        let hide = overwrite(EVERYONE, 0, READ);
        let show = overwrite(HELPER, READ, 0);
        let guests_out = overwrite(GUEST, 0, READ);
        let mine = overwrite(Target::Member(USER), READ, 0);
        let not_me = overwrite(Target::Member(USER), 0, READ);
        let stranger = overwrite(Target::Member(UserId::new(8)), READ, 0);
        check(READ, 0, &[], READ);
        check(0, READ, &[], READ);
        check(READ, 0, &[hide], 0);
        check(READ, READ, &[hide], 0);
        check(READ, 0, &[show, hide], READ);
        check(READ, 0, &[guests_out], 0);
        check(READ, 0, &[guests_out, show], READ);
        check(READ, 0, &[mine, guests_out, hide], READ);
        check(READ, 0, &[show, not_me], 0);
        check(READ, 0, &[hide, stranger], 0);
        check(READ, ADMINISTRATOR, &[hide, not_me], u64::MAX);
        check(
            READ | MANAGE_GUILD,
            0,
            &[overwrite(EVERYONE, 0, MANAGE_GUILD)],
            READ | MANAGE_GUILD,
        );
        check(
            READ,
            0,
            &[overwrite(EVERYONE, ADMINISTRATOR | MANAGE_GUILD, 0)],
            READ,
        );
    }

    #[test]
    fn the_owner_may_everything() {
        let standing = Standing {
            guild: GUILD,
            user: USER,
            owner: true,
            everyone: 0,
            roles: &[],
        };
        assert_eq!(
            permissions_in(&standing, &[overwrite(EVERYONE, 0, READ)]),
            u64::MAX
        );
    }

    #[track_caller]
    fn check_access(permissions: u64, place: Place, view: bool, read: bool, send: bool) {
        let found = access(&AccessFacts { permissions, place });
        assert_eq!(
            (found.view, may_read(&found), found.send),
            (view, read, send)
        );
    }

    #[test]
    fn places_ask_for_different_permissions() {
        let private = |member| Place::PrivateThread { member };
        let both = SEND_MESSAGES | SEND_MESSAGES_IN_THREADS;
        check_access(READ | SEND_MESSAGES, Place::Channel, true, true, true);
        check_access(VIEW_CHANNEL, Place::Channel, true, false, false);
        check_access(
            READ_MESSAGE_HISTORY | both,
            Place::Channel,
            false,
            false,
            false,
        );
        check_access(READ | SEND_MESSAGES, Place::Voice, false, false, false);
        check_access(
            READ | SEND_MESSAGES | CONNECT,
            Place::Voice,
            true,
            true,
            true,
        );
        check_access(READ | SEND_MESSAGES, Place::OpenThread, true, true, false);
        check_access(
            READ | SEND_MESSAGES_IN_THREADS,
            Place::OpenThread,
            true,
            true,
            true,
        );
        check_access(READ | both, private(true), true, true, true);
        check_access(READ | both, private(false), false, false, false);
        check_access(READ | MANAGE_THREADS, private(false), true, true, false);
        check_access(MANAGE_THREADS, private(true), false, false, false);
        check_access(ADMINISTRATOR, private(false), true, true, true);
    }
}
