//! Who may use the bot, and where.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::Deserialize;

use super::check::Checker;
use super::{Variable, variable as var};
use crate::model::{ChannelId, GuildId, RoleId, UserId};

/// The allow and deny lists. Denied wins over allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessConfig {
    /// `ALLOWED_GUILDS`, `DENIED_GUILDS`.
    pub guilds: IdList<GuildId>,
    /// `ALLOWED_CHANNELS`, `DENIED_CHANNELS`; a thread counts as its parent.
    pub channels: IdList<ChannelId>,
    /// `ALLOWED_USERS`, `DENIED_USERS`.
    pub users: IdList<UserId>,
    /// `ALLOWED_ROLES`, `DENIED_ROLES`.
    pub roles: IdList<RoleId>,
    /// `DIRECT_MESSAGES`.
    pub direct_messages: bool,
}

/// What is allowed and what is denied of one kind of id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdList<T> {
    /// Who is let in.
    pub allowed: AllowList<T>,
    /// Who is not, even if allowed.
    pub denied: BTreeSet<T>,
}

/// Who is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowList<T> {
    /// `*`.
    All,
    /// These.
    Only(BTreeSet<T>),
}

/// Who asks, and where: what the lists are held against.
#[derive(Debug, Clone, Copy)]
pub struct Admission<'a> {
    /// The server; none in a direct message.
    pub guild: Option<GuildId>,
    /// The channel or thread.
    pub channel: ChannelId,
    /// A thread's channel.
    pub parent: Option<ChannelId>,
    /// The asker.
    pub user: UserId,
    /// The asker's roles as the event carried them.
    pub roles: &'a [RoleId],
}

/// Which list said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// `DIRECT_MESSAGES=false`.
    DirectMessages,
    /// The server's list.
    Guild,
    /// The channel's list.
    Channel,
    /// The user's list, or the role's.
    User,
}

impl Denied {
    /// The word used in telemetry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DirectMessages => "direct_messages",
            Self::Guild => "guild",
            Self::Channel => "channel",
            Self::User => "user",
        }
    }
}

impl AccessConfig {
    /// Holds the lists against one asker.
    ///
    /// The allow lists of servers and channels do not concern direct messages:
    /// `DIRECT_MESSAGES` rules there. Nobody has roles in a direct message, so
    /// with `ALLOWED_ROLES` set only users named in `ALLOWED_USERS` get in.
    ///
    /// # Errors
    /// The list that says no.
    pub fn admit(&self, asked: Admission<'_>) -> Result<(), Denied> {
        let places = [Some(asked.channel), asked.parent];
        let places = places.iter().flatten();
        if let Some(guild) = asked.guild {
            if !self.guilds.admits([&guild]) {
                return Err(Denied::Guild);
            }
            if !self.channels.admits(places.clone()) {
                return Err(Denied::Channel);
            }
        } else if !self.direct_messages {
            return Err(Denied::DirectMessages);
        }
        if self.channels.denies_any(places) {
            return Err(Denied::Channel);
        }
        if self.admits_person(asked.user, asked.roles) {
            Ok(())
        } else {
            Err(Denied::User)
        }
    }

    /// With both lists of users and roles given, one of them suffices.
    fn admits_person(&self, user: UserId, roles: &[RoleId]) -> bool {
        if self.users.denied.contains(&user) || self.roles.denies_any(roles) {
            return false;
        }
        match (&self.users.allowed, &self.roles.allowed) {
            (AllowList::All, AllowList::All) => true,
            (AllowList::Only(users), AllowList::All) => users.contains(&user),
            (AllowList::All, AllowList::Only(allowed)) => holds_any(allowed, roles),
            (AllowList::Only(users), AllowList::Only(allowed)) => {
                users.contains(&user) || holds_any(allowed, roles)
            }
        }
    }
}

impl<T: Ord> IdList<T> {
    /// One of the ids is allowed and none is denied.
    fn admits<'a>(&self, ids: impl IntoIterator<Item = &'a T> + Clone) -> bool
    where
        T: 'a,
    {
        let allowed = match &self.allowed {
            AllowList::All => true,
            AllowList::Only(allowed) => holds_any(allowed, ids.clone()),
        };
        allowed && !self.denies_any(ids)
    }

    fn denies_any<'a>(&self, ids: impl IntoIterator<Item = &'a T>) -> bool
    where
        T: 'a,
    {
        holds_any(&self.denied, ids)
    }
}

fn holds_any<'a, T: Ord + 'a>(set: &BTreeSet<T>, ids: impl IntoIterator<Item = &'a T>) -> bool {
    ids.into_iter().any(|id| set.contains(id))
}

#[derive(Default, Deserialize)]
struct Raw {
    allowed_guilds: Option<String>,
    denied_guilds: Option<String>,
    allowed_channels: Option<String>,
    denied_channels: Option<String>,
    allowed_users: Option<String>,
    denied_users: Option<String>,
    allowed_roles: Option<String>,
    denied_roles: Option<String>,
    direct_messages: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> AccessConfig {
    let raw: Raw = check.raw();
    AccessConfig {
        guilds: IdList {
            allowed: allowed(check, &var::ALLOWED_GUILDS, raw.allowed_guilds),
            denied: check.ids(&var::DENIED_GUILDS, raw.denied_guilds),
        },
        channels: IdList {
            allowed: allowed(check, &var::ALLOWED_CHANNELS, raw.allowed_channels),
            denied: check.ids(&var::DENIED_CHANNELS, raw.denied_channels),
        },
        users: IdList {
            allowed: allowed(check, &var::ALLOWED_USERS, raw.allowed_users),
            denied: check.ids(&var::DENIED_USERS, raw.denied_users),
        },
        roles: IdList {
            allowed: allowed(check, &var::ALLOWED_ROLES, raw.allowed_roles),
            denied: check.ids(&var::DENIED_ROLES, raw.denied_roles),
        },
        direct_messages: check.switch(&var::DIRECT_MESSAGES, raw.direct_messages),
    }
}

fn allowed<T: FromStr + Ord>(
    check: &mut Checker,
    variable: &Variable,
    raw: Option<String>,
) -> AllowList<T> {
    match raw.as_deref() {
        None | Some("*") => AllowList::All,
        Some(_) => AllowList::Only(check.ids(variable, raw)),
    }
}
