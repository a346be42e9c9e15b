//! Admission: checks one asker against the operator's allow and deny lists.

use std::collections::BTreeSet;

use crate::model::{AccessRules, AllowList, ChannelId, GuildId, IdList, RoleId, UserId};
use crate::words;

/// Who asks and where: the data that is checked against the lists.
#[derive(Debug, Clone, Copy)]
pub struct Admission<'a> {
    /// The server; `None` in a direct message.
    pub guild: Option<GuildId>,
    /// The channel or thread.
    pub channel: ChannelId,
    /// A thread's channel.
    pub parent: Option<ChannelId>,
    /// The asker.
    pub user: UserId,
    /// The asker's roles, if the event contained them.
    pub roles: Option<&'a [RoleId]>,
}

words! {
    /// Which list refused.
    Denied {
        /// Direct messages are not answered.
        DirectMessages = "direct_messages",
        /// The lists of servers.
        Guild = "guilds",
        /// The lists of channels.
        Channel = "channels",
        /// The lists of users, or those of roles.
        User = "people",
    }
}

/// Checks one asker against the lists.
///
/// The allow lists of servers and channels do not apply to direct messages;
/// their own switch does. In direct messages nobody has roles, so with
/// roles in `ALLOWED` only users in it are admitted.
///
/// # Errors
/// The list that refused.
pub fn admit(rules: &AccessRules, asked: Admission<'_>) -> Result<(), Denied> {
    let places: Vec<ChannelId> = [Some(asked.channel), asked.parent]
        .into_iter()
        .flatten()
        .collect();
    if let Some(guild) = asked.guild {
        if !admits(&rules.guilds, &[guild]) {
            return Err(Denied::Guild);
        }
        if !admits(&rules.channels, &places) {
            return Err(Denied::Channel);
        }
    } else if !rules.direct_messages {
        return Err(Denied::DirectMessages);
    }
    if holds_any(&rules.channels.denied, &places) {
        return Err(Denied::Channel);
    }
    let roles = asked.roles.or(asked.guild.is_none().then_some(&[]));
    if admits_person(rules, asked.user, roles) {
        Ok(())
    } else {
        Err(Denied::User)
    }
}

/// If allow lists for users and roles are both set, being on one of them is
/// enough. Somebody whose roles are unknown is refused if any role is denied.
fn admits_person(rules: &AccessRules, user: UserId, roles: Option<&[RoleId]>) -> bool {
    let Some(roles) = roles.or(rules.roles.denied.is_empty().then_some(&[])) else {
        return false;
    };
    if rules.users.denied.contains(&user) || holds_any(&rules.roles.denied, roles) {
        return false;
    }
    match (&rules.users.allowed, &rules.roles.allowed) {
        (AllowList::All, AllowList::All) => true,
        (AllowList::Only(users), AllowList::All) => users.contains(&user),
        (AllowList::All, AllowList::Only(allowed)) => holds_any(allowed, roles),
        (AllowList::Only(users), AllowList::Only(allowed)) => {
            users.contains(&user) || holds_any(allowed, roles)
        }
    }
}

/// Whether one of the ids is allowed and none is denied.
fn admits<T: Ord>(list: &IdList<T>, ids: &[T]) -> bool {
    let allowed = match &list.allowed {
        AllowList::All => true,
        AllowList::Only(allowed) => holds_any(allowed, ids),
    };
    allowed && !holds_any(&list.denied, ids)
}

fn holds_any<T: Ord>(set: &BTreeSet<T>, ids: &[T]) -> bool {
    ids.iter().any(|id| set.contains(id))
}
