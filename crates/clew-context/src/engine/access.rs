//! Who may do what in a channel: Discord's permission arithmetic, reduced to what a turn needs.

use crate::model::{
    Access, Channel, ChannelKind, Guild, GuildId, Missing, Overwrite, OverwriteTarget, Rights,
    RoleId, UserId,
};

/// Discord's permission bits, those that our rules read (Discord's reference, "Permissions").
pub mod bits {
    /// Everything, regardless of overwrites.
    pub const ADMINISTRATOR: u64 = 1 << 3;
    /// Manage Server.
    pub const MANAGE_GUILD: u64 = 1 << 5;
    /// Add Reactions.
    pub const ADD_REACTIONS: u64 = 1 << 6;
    /// View Channel.
    pub const VIEW_CHANNEL: u64 = 1 << 10;
    /// Send Messages; does not apply in threads.
    pub const SEND_MESSAGES: u64 = 1 << 11;
    /// Manage Messages.
    pub const MANAGE_MESSAGES: u64 = 1 << 13;
    /// Time members out.
    pub const MODERATE_MEMBERS: u64 = 1 << 40;
    /// Attach Files.
    pub const ATTACH_FILES: u64 = 1 << 15;
    /// Read Message History.
    pub const READ_MESSAGE_HISTORY: u64 = 1 << 16;
    /// Connect; without it a voice channel's messages are inaccessible too.
    pub const CONNECT: u64 = 1 << 20;
    /// Manage Threads; gives access to private threads.
    pub const MANAGE_THREADS: u64 = 1 << 34;
    /// Create Public Threads.
    pub const CREATE_PUBLIC_THREADS: u64 = 1 << 35;
    /// Send Messages in Threads.
    pub const SEND_MESSAGES_IN_THREADS: u64 = 1 << 38;
}

/// Computes what somebody may do.
pub fn access(facts: &AccessFacts) -> Access {
    let has = |bit: u64| facts.permissions & (bit | bits::ADMINISTRATOR) != 0;
    let send = match facts.class {
        ChannelClass::Channel | ChannelClass::Voice => bits::SEND_MESSAGES,
        ChannelClass::OpenThread | ChannelClass::PrivateThread { .. } => {
            bits::SEND_MESSAGES_IN_THREADS
        }
    };
    let rights = Rights {
        read_history: has(bits::READ_MESSAGE_HISTORY),
        send: has(send),
        react: has(bits::ADD_REACTIONS),
        attach: has(send) && has(bits::ATTACH_FILES),
        open_threads: has(bits::CREATE_PUBLIC_THREADS) && has(bits::SEND_MESSAGES_IN_THREADS),
    };
    let member = match facts.class {
        ChannelClass::Channel | ChannelClass::OpenThread => Some(true),
        ChannelClass::Voice => Some(has(bits::CONNECT)),
        ChannelClass::PrivateThread { .. } if has(bits::MANAGE_THREADS) => Some(true),
        ChannelClass::PrivateThread { member } => member,
    };
    match (has(bits::VIEW_CHANNEL), member) {
        (false, _) | (_, Some(false)) => Access::Denied,
        (true, Some(true)) => Access::Allowed(rights),
        (true, None) => Access::Unknown(Missing::Membership(rights)),
    }
}

/// What a person with these roles may do in a channel, as far as these facts
/// tell. `judged` is the channel whose overwrites apply (a thread's parent). The
/// result is unknown if the overwrites are absent or the server does not list a
/// role.
pub fn judge(
    guild: &Guild,
    user: UserId,
    roles: &[RoleId],
    channel: &Channel,
    judged: &Channel,
) -> Access {
    let class = ChannelClass::of(channel.kind, None);
    let bits = |role: RoleId| {
        let known = guild.roles.iter().find(|(id, _)| *id == role);
        known.map(|(_, bits)| *bits)
    };
    let (place, overwrites) = ((guild.id, guild.owner), judged.overwrites.as_deref());
    let permissions = permissions_of(place, user, roles, bits, overwrites);
    permissions.map_or(Access::Unknown(Missing::Facts), |permissions| {
        access(&AccessFacts { permissions, class })
    })
}

/// The permissions in a channel of somebody in a server with that owner; `bits` tells those of
/// a role. `None` if it does not know one of the roles, or as for [`permissions_in`].
pub fn permissions_of(
    (guild, owner): (GuildId, Option<UserId>),
    user: UserId,
    roles: &[RoleId],
    bits: impl Fn(RoleId) -> Option<u64>,
    overwrites: Option<&[Overwrite]>,
) -> Option<u64> {
    let with_bits = roles.iter().map(|role| Some((*role, bits(*role)?)));
    let standing = Standing {
        guild,
        user,
        owner: owner == Some(user),
        everyone: bits(RoleId::new(guild.get()))?,
        roles: &with_bits.collect::<Option<Vec<_>>>()?,
    };
    permissions_in(&standing, overwrites)
}

/// The input of [`access`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessFacts {
    /// Permissions in the channel; for a thread, those in its parent.
    pub permissions: u64,
    /// What else counts in this kind of channel.
    pub class: ChannelClass,
}

/// Kinds of channels by what they require besides permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelClass {
    /// A channel other than a thread.
    Channel,
    /// The text chat of a voice or stage channel.
    Voice,
    /// A public or announcement thread, or a forum or media post.
    OpenThread,
    /// A private thread: open to its members and to Manage Threads.
    PrivateThread {
        /// Whether the person is a member; `None` if unknown.
        member: Option<bool>,
    },
}

impl ChannelClass {
    /// The class for a channel of this kind. `member` matters in private threads only.
    pub const fn of(kind: ChannelKind, member: Option<bool>) -> Self {
        match kind {
            ChannelKind::PrivateThread => Self::PrivateThread { member },
            ChannelKind::PublicThread | ChannelKind::AnnouncementThread => Self::OpenThread,
            ChannelKind::Voice | ChannelKind::Stage => Self::Voice,
            _ => Self::Channel,
        }
    }
}

/// Permissions in a channel. Owner and administrators have all. For others: the
/// base permissions of @everyone and the roles, then the overwrite of @everyone,
/// then those of all roles together, then the member's own (Discord's reference,
/// "Permission Overwrites"). Without overwrites, only owner and administrators
/// are known.
pub fn permissions_in(standing: &Standing<'_>, overwrites: Option<&[Overwrite]>) -> Option<u64> {
    let root = base(standing);
    if root & bits::ADMINISTRATOR != 0 {
        return Some(root);
    }
    let overwrites = overwrites?;
    let everyone = RoleId::new(standing.guild.get());
    let mut role_allow = 0;
    let mut role_deny = 0;
    let mut own = (0, 0);
    let mut permissions = root;
    for overwrite in overwrites {
        match overwrite.target {
            OverwriteTarget::Role(role) if role == everyone => {
                permissions = permissions & !overwrite.deny | overwrite.allow;
            }
            OverwriteTarget::Role(role) if standing.roles.iter().any(|(id, _)| *id == role) => {
                role_allow |= overwrite.allow;
                role_deny |= overwrite.deny;
            }
            OverwriteTarget::Member(user) if user == standing.user => {
                own = (overwrite.allow, overwrite.deny);
            }
            OverwriteTarget::Role(_) | OverwriteTarget::Member(_) => {}
        }
    }
    permissions = permissions & !role_deny | role_allow;
    permissions = permissions & !own.1 | own.0;
    // A channel can neither grant nor deny these.
    let server_wide = bits::ADMINISTRATOR | bits::MANAGE_GUILD;
    Some(permissions & !server_wide | root & server_wide)
}

/// Permissions in the whole server; all bits for the owner and administrators.
fn base(standing: &Standing<'_>) -> u64 {
    let roles = standing.roles.iter().fold(0, |all, (_, role)| all | role);
    let root = standing.everyone | roles;
    if standing.owner || root & bits::ADMINISTRATOR != 0 {
        u64::MAX
    } else {
        root
    }
}

/// Somebody's standing in a server.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// The server; its @everyone role has the same id.
    pub guild: GuildId,
    /// The person.
    pub user: UserId,
    /// Whether the person owns the server.
    pub owner: bool,
    /// Permissions of the @everyone role.
    pub everyone: u64,
    /// The person's roles, with their permissions.
    pub roles: &'a [(RoleId, u64)],
}

#[cfg(test)]
mod tests {
    use super::bits::{
        ADMINISTRATOR, ATTACH_FILES, CONNECT, CREATE_PUBLIC_THREADS, MANAGE_GUILD, MANAGE_THREADS,
        READ_MESSAGE_HISTORY, SEND_MESSAGES, SEND_MESSAGES_IN_THREADS, VIEW_CHANNEL,
    };
    use super::*;
    use crate::model::ChannelId;

    const GUILD: GuildId = GuildId::new(1);
    const EVERYONE: OverwriteTarget = OverwriteTarget::Role(RoleId::new(1));
    const HELPER: OverwriteTarget = OverwriteTarget::Role(RoleId::new(2));
    const GUEST: OverwriteTarget = OverwriteTarget::Role(RoleId::new(3));
    const USER: UserId = UserId::new(9);
    const READ: u64 = VIEW_CHANNEL | READ_MESSAGE_HISTORY;

    fn overwrite(target: OverwriteTarget, allow: u64, deny: u64) -> Overwrite {
        Overwrite {
            target,
            allow,
            deny,
        }
    }

    /// Permissions of a person with the roles helper (bits `helper`) and guest (no bits).
    fn permissions(everyone: u64, helper: u64, overwrites: &[Overwrite]) -> u64 {
        let roles = [(RoleId::new(2), helper), (RoleId::new(3), 0)];
        let standing = Standing {
            guild: GUILD,
            user: USER,
            owner: false,
            everyone,
            roles: &roles,
        };
        permissions_in(&standing, Some(overwrites)).unwrap()
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
        let mine = overwrite(OverwriteTarget::Member(USER), READ, 0);
        let not_me = overwrite(OverwriteTarget::Member(USER), 0, READ);
        let stranger = overwrite(OverwriteTarget::Member(UserId::new(8)), READ, 0);
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

    /// Two grants of the same bit do not cancel out.
    #[test]
    fn what_is_granted_twice_is_granted() {
        let everyone = overwrite(EVERYONE, READ, 0);
        let helpers = overwrite(HELPER, READ, 0);
        let mine = overwrite(OverwriteTarget::Member(USER), READ, 0);
        check(READ, READ, &[], READ);
        for given in [everyone, helpers, mine] {
            check(READ, 0, &[given], READ);
            check(0, 0, &[given], READ);
        }
        let roles = [(RoleId::new(2), READ), (RoleId::new(3), READ)];
        let standing = Standing {
            guild: GUILD,
            user: USER,
            owner: false,
            everyone: 0,
            roles: &roles,
        };
        assert_eq!(permissions_in(&standing, Some(&[])), Some(READ));
    }

    #[test]
    fn files_need_both_permissions() {
        for (permissions, expected) in [
            (READ | SEND_MESSAGES | ATTACH_FILES, true),
            (READ | SEND_MESSAGES, false),
            (READ | ATTACH_FILES, false),
        ] {
            let class = ChannelClass::Channel;
            let found = access(&AccessFacts { permissions, class });
            assert_eq!(!found.forbids(|rights| rights.attach), expected);
        }
    }

    #[test]
    fn a_thread_is_opened_by_who_may_also_write_in_it() {
        for (permissions, expected) in [
            (
                READ | CREATE_PUBLIC_THREADS | SEND_MESSAGES_IN_THREADS,
                true,
            ),
            (READ | CREATE_PUBLIC_THREADS, false),
            (READ | SEND_MESSAGES_IN_THREADS, false),
            (CREATE_PUBLIC_THREADS | SEND_MESSAGES_IN_THREADS, false),
            (ADMINISTRATOR, true),
        ] {
            let class = ChannelClass::Channel;
            let found = access(&AccessFacts { permissions, class });
            assert_eq!(found.may_open_threads(), expected, "{permissions:b}");
        }
        assert!(!Access::Unknown(Missing::Facts).may_open_threads());
    }

    #[test]
    fn a_channels_kind_says_what_it_asks_for() {
        let asks = |kind| {
            let may = |permissions| {
                let class = ChannelClass::of(kind, Some(false));
                let found = access(&AccessFacts { permissions, class });
                found.may_view() && !found.forbids(|rights| rights.send)
            };
            let in_threads = READ | SEND_MESSAGES_IN_THREADS;
            [
                may(READ | SEND_MESSAGES),
                may(READ | SEND_MESSAGES | CONNECT),
                may(in_threads),
                may(in_threads | MANAGE_THREADS),
            ]
        };
        for (kind, expected) in [
            (ChannelKind::Text, [true, true, false, false]),
            (ChannelKind::Voice, [false, true, false, false]),
            (ChannelKind::Stage, [false, true, false, false]),
            (ChannelKind::PublicThread, [false, false, true, true]),
            (ChannelKind::AnnouncementThread, [false, false, true, true]),
            (ChannelKind::PrivateThread, [false, false, false, true]),
        ] {
            assert_eq!(asks(kind), expected, "{kind:?}");
        }
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
        let hidden = [overwrite(EVERYONE, 0, READ)];
        assert_eq!(permissions_in(&standing, Some(&hidden)), Some(u64::MAX));
        assert_eq!(permissions_in(&standing, None), Some(u64::MAX));
    }

    #[track_caller]
    fn check_access(permissions: u64, class: ChannelClass, view: bool, read: bool, send: bool) {
        let found = access(&AccessFacts { permissions, class });
        let may_send = !found.forbids(|rights| rights.send);
        assert_eq!(
            (found.may_view(), found.may_read(), may_send),
            (view, read, send)
        );
    }

    #[test]
    fn places_ask_for_different_permissions() {
        let private = |member| ChannelClass::PrivateThread {
            member: Some(member),
        };
        let both = SEND_MESSAGES | SEND_MESSAGES_IN_THREADS;
        check_access(
            READ | SEND_MESSAGES,
            ChannelClass::Channel,
            true,
            true,
            true,
        );
        check_access(VIEW_CHANNEL, ChannelClass::Channel, true, false, false);
        check_access(
            READ_MESSAGE_HISTORY | both,
            ChannelClass::Channel,
            false,
            false,
            false,
        );
        check_access(
            READ | SEND_MESSAGES,
            ChannelClass::Voice,
            false,
            false,
            false,
        );
        check_access(
            READ | SEND_MESSAGES | CONNECT,
            ChannelClass::Voice,
            true,
            true,
            true,
        );
        check_access(
            READ | SEND_MESSAGES,
            ChannelClass::OpenThread,
            true,
            true,
            false,
        );
        check_access(
            READ | SEND_MESSAGES_IN_THREADS,
            ChannelClass::OpenThread,
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

    /// A channel of this kind with these overwrites.
    fn channel(kind: ChannelKind, overwrites: Option<Vec<Overwrite>>) -> Channel {
        Channel {
            guild: Some(GUILD),
            overwrites,
            ..Channel::new(ChannelId::new(5), kind)
        }
    }

    fn judged(roles: &[u64], kind: ChannelKind, overwrites: Option<Vec<Overwrite>>) -> Access {
        let guild = Guild {
            id: GUILD,
            owner: Some(UserId::new(8)),
            roles: vec![(RoleId::new(1), READ), (RoleId::new(2), ADMINISTRATOR)],
        };
        let roles: Vec<RoleId> = roles.iter().copied().map(RoleId::new).collect();
        let here = channel(kind, None);
        judge(
            &guild,
            USER,
            &roles,
            &here,
            &channel(ChannelKind::Text, overwrites),
        )
    }

    #[test]
    fn what_is_not_told_is_unknown() {
        let unknown = Access::Unknown(Missing::Facts);
        let (text, private) = (ChannelKind::Text, ChannelKind::PrivateThread);
        assert!(judged(&[], text, Some(Vec::new())).may_read());
        assert_eq!(judged(&[], text, None), unknown, "overwrites");
        assert_eq!(judged(&[7], text, Some(Vec::new())), unknown, "a role");
        assert!(judged(&[2], text, None).may_read(), "none binds them");
        let thread = judged(&[], private, Some(Vec::new()));
        assert!(!thread.may_view() && thread.as_member().may_read());
        assert!(judged(&[2], private, Some(Vec::new())).may_read());
        let hidden = vec![overwrite(EVERYONE, 0, VIEW_CHANNEL)];
        assert_eq!(judged(&[], private, Some(hidden)), Access::Denied);
        let nobody = Guild {
            id: GUILD,
            owner: None,
            roles: Vec::new(),
        };
        let open = channel(text, Some(Vec::new()));
        assert_eq!(judge(&nobody, USER, &[], &open, &open), unknown, "everyone");
    }
}
