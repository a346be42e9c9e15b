//! Discord's ids (snowflakes), a type for each kind, and our turn ids.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::UnixMillis;

/// Discord's epoch, the first second of 2015, in Unix milliseconds
/// (Discord's reference, "Snowflakes").
const DISCORD_EPOCH_MS: i64 = 1_420_070_400_000;
/// The low 22 bits hold worker, process and increment.
const TIMESTAMP_SHIFT: u32 = 22;

/// The text is not a Discord id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a Discord id: 1 to 20 digits, not zero")]
pub struct ParseIdError(pub String);

macro_rules! snowflake {
    ($($(#[$doc:meta])+ $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// Wraps the number unchecked.
            pub const fn new(id: u64) -> Self {
                Self(id)
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// When Discord created the id.
            pub const fn created(self) -> UnixMillis {
                UnixMillis((self.0 >> TIMESTAMP_SHIFT).cast_signed() + DISCORD_EPOCH_MS)
            }

            /// The smallest possible id at this time.
            pub const fn first_at(time: UnixMillis) -> Self {
                let since = time.0.saturating_sub(DISCORD_EPOCH_MS);
                let since = if since < 0 { 0 } else { since };
                Self(since.cast_unsigned() << TIMESTAMP_SHIFT)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                match number(text) {
                    Some(id) => Ok(Self(id)),
                    None => Err(ParseIdError(text.to_owned())),
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(IdVisitor).map(Self)
            }
        }
    )+};
}

snowflake! {
    /// A server.
    GuildId;
    /// A channel of any kind, threads and direct messages included.
    ChannelId;
    /// A message. Ids grow with time, so sorting by id sorts by time.
    MessageId;
    /// A user, a bot or a webhook's author.
    UserId;
    /// A role.
    RoleId;
    /// A tag of a forum or media channel.
    TagId;
    /// An application: ours, or the owner of a webhook.
    ApplicationId;
    /// An application, or a single webhook, through which people write.
    ProxyId;
    /// One interaction: a command, button or autocomplete call.
    InteractionId;
}

impl MessageId {
    /// The next possible id. Passing it as `before` asks Discord for the page that
    /// ends at this message.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl ChannelId {
    /// The id of the starter: a message that a thread was started from and the
    /// first message of a forum post both have the thread's id.
    pub const fn starter(self) -> MessageId {
        MessageId(self.0)
    }
}

/// Accepts digits only, without a sign; no id is zero.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|id| digits && *id != 0)
}

/// Discord sends ids as strings; numbers are accepted too.
struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Discord id as a string of digits, not zero")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        number(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    fn visit_u64<E: de::Error>(self, id: u64) -> Result<u64, E> {
        let id = Some(id).filter(|id| *id != 0);
        id.ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(0), &self))
    }
}

/// One turn: the trigger's id, unique within a process and across restarts.
///
/// A trigger is claimed only once, so its id identifies its turn. A turn that
/// restarts because the trigger was edited keeps its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(pub u64);

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{:x}", self.0)
    }
}

impl Serialize for TurnId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snowflake_carries_its_time() {
        let id: MessageId = "175928847299117063".parse().unwrap();
        assert_eq!(id.created(), UnixMillis(1_462_015_105_796));
        assert_eq!(MessageId::first_at(id.created()).created(), id.created());
    }

    #[test]
    fn text_that_is_no_id_is_refused() {
        for text in ["", "0", "-1", "+1", "1x", " 1", "99999999999999999999999"] {
            assert!(text.parse::<UserId>().is_err(), "{text:?}");
            let json = serde_json::Value::from(text);
            assert!(serde_json::from_value::<UserId>(json).is_err(), "{text:?}");
        }
        assert!(serde_json::from_str::<UserId>("0").is_err());
        assert_eq!(serde_json::from_str::<UserId>("7").unwrap(), UserId(7));
    }
}
