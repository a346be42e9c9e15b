//! Limits of the model's tokens, and whom limits hold.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use clew_context::model::{ChannelId, GuildId, ParseIdError, ProxyId, UserId};
use clew_store::model::RoleLimits;

/// The most tokens that may be used in a day; none if there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenLimits {
    /// By one user, wherever they ask.
    pub per_user: Option<u64>,
    /// By all users of a server together.
    pub per_guild: Option<u64>,
    /// By everybody together, direct messages included.
    pub total: Option<u64>,
}

/// Whose limits a request to the model counts towards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payer {
    pub spender: Spender,
    /// The server in which they asked; none in direct messages.
    pub guild: Option<GuildId>,
    /// What the roles that they have there allow (`/settings limits`).
    pub limits: RoleLimits,
}

/// Whom limits count as one. People who write through an app cannot be told apart for
/// sure: anybody can choose any name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Spender {
    /// A user or a bot.
    User(UserId),
    /// Everybody who writes through this app in this channel or its threads.
    Proxy(ProxyId, ChannelId),
}

impl From<UserId> for Spender {
    fn from(user: UserId) -> Self {
        Self::User(user)
    }
}

/// A user's id, or `app/channel`.
impl fmt::Display for Spender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(user) => write!(f, "{user}"),
            Self::Proxy(app, channel) => write!(f, "{app}/{channel}"),
        }
    }
}

impl FromStr for Spender {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        Ok(match text.split_once('/') {
            None => Self::User(text.parse()?),
            Some((app, channel)) => Self::Proxy(app.parse()?, channel.parse()?),
        })
    }
}

impl Serialize for Spender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Spender {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}
