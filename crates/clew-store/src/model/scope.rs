//! Scopes: the isolation keys of stored history.

use std::fmt;
use std::str::FromStr;

use clew_context::model::{ChannelId, GuildId, UserId};

/// `CONTEXT_SCOPE`: who shares a conversation's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScopeKind {
    /// One user in one channel of one server.
    #[default]
    Member,
    /// Everybody in one thread; outside of threads as `Member`.
    Thread,
    /// One user everywhere.
    User,
}

/// The isolation key of one conversation. No read crosses it.
///
/// Its text is the key in stores: `member/GUILD/CHANNEL/USER`,
/// `thread/GUILD/CHANNEL`, `discord_conv:USER`, `dm/USER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One user in one channel of a server.
    Member {
        /// The server.
        guild: GuildId,
        /// The channel or thread.
        channel: ChannelId,
        /// The user.
        user: UserId,
    },
    /// Everybody in one thread.
    Thread {
        /// The server.
        guild: GuildId,
        /// The thread.
        channel: ChannelId,
    },
    /// One user everywhere, direct messages included.
    User(UserId),
    /// One user's direct messages.
    Direct(UserId),
}

impl Scope {
    /// The scope of a conversation under `kind`. Outside of servers it is the
    /// user's own.
    pub const fn of(
        kind: ScopeKind,
        guild: Option<GuildId>,
        channel: ChannelId,
        is_thread: bool,
        user: UserId,
    ) -> Self {
        match (kind, guild) {
            (ScopeKind::User, _) => Self::User(user),
            (_, None) => Self::Direct(user),
            (ScopeKind::Thread, Some(guild)) if is_thread => Self::Thread { guild, channel },
            (_, Some(guild)) => Self::Member {
                guild,
                channel,
                user,
            },
        }
    }

    /// The one user it belongs to; `None` for a shared thread.
    pub const fn owner(self) -> Option<UserId> {
        match self {
            Self::Member { user, .. } | Self::User(user) | Self::Direct(user) => Some(user),
            Self::Thread { .. } => None,
        }
    }

    /// The server it belongs to; `None` for a user's own.
    pub const fn guild(self) -> Option<GuildId> {
        match self {
            Self::Member { guild, .. } | Self::Thread { guild, .. } => Some(guild),
            Self::User(_) | Self::Direct(_) => None,
        }
    }

    /// The one channel or thread it belongs to; `None` for a user's own.
    pub const fn channel(self) -> Option<ChannelId> {
        match self {
            Self::Member { channel, .. } | Self::Thread { channel, .. } => Some(channel),
            Self::User(_) | Self::Direct(_) => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member {
                guild,
                channel,
                user,
            } => write!(f, "member/{guild}/{channel}/{user}"),
            Self::Thread { guild, channel } => write!(f, "thread/{guild}/{channel}"),
            Self::User(user) => write!(f, "discord_conv:{user}"),
            Self::Direct(user) => write!(f, "dm/{user}"),
        }
    }
}

/// The text is not a scope's key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the key of a conversation")]
pub struct ParseScopeError(pub String);

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Self, ParseScopeError> {
        read(text).ok_or_else(|| ParseScopeError(text.to_owned()))
    }
}

fn read(text: &str) -> Option<Scope> {
    if let Some(user) = text.strip_prefix("discord_conv:") {
        return Some(Scope::User(user.parse().ok()?));
    }
    let mut parts = text.split('/');
    let scope = match parts.next()? {
        "member" => Scope::Member {
            guild: parts.next()?.parse().ok()?,
            channel: parts.next()?.parse().ok()?,
            user: parts.next()?.parse().ok()?,
        },
        "thread" => Scope::Thread {
            guild: parts.next()?.parse().ok()?,
            channel: parts.next()?.parse().ok()?,
        },
        "dm" => Scope::Direct(parts.next()?.parse().ok()?),
        _ => return None,
    };
    parts.next().is_none().then_some(scope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kind: ScopeKind, guild: Option<u64>, is_thread: bool, expected: &str) {
        let guild = guild.map(GuildId::new);
        let scope = Scope::of(kind, guild, ChannelId::new(2), is_thread, UserId::new(3));
        assert_eq!(scope.to_string(), expected);
        assert_eq!(expected.parse(), Ok(scope));
    }

    #[test]
    fn a_conversation_has_one_key() {
        check(ScopeKind::Member, Some(1), false, "member/1/2/3");
        check(ScopeKind::Member, Some(1), true, "member/1/2/3");
        check(ScopeKind::Thread, Some(1), true, "thread/1/2");
        check(ScopeKind::Thread, Some(1), false, "member/1/2/3");
        check(ScopeKind::User, Some(1), true, "discord_conv:3");
        check(ScopeKind::User, None, false, "discord_conv:3");
        check(ScopeKind::Member, None, false, "dm/3");
        check(ScopeKind::Thread, None, false, "dm/3");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "dm/", "dm/0", "dm/1/2", "member/1/2", "../etc", "dm/x"] {
            assert!(text.parse::<Scope>().is_err(), "{text:?}");
        }
    }
}
