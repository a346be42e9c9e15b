//! Facts remembered about users and servers.

use std::fmt;
use std::str::FromStr;

use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};

/// The longest text that is read as a fact: 300 characters in any script. An import may bring
/// longer ones.
pub const MAX_FACT_BYTES: usize = 1_200;

/// A remembered fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its id.
    pub id: FactId,
    /// Who or what it is about.
    pub subject: Subject,
    /// The fact, in one line.
    pub text: String,
    /// Where it was learnt, which decides where it may be used.
    pub origin: Origin,
    /// Who said it.
    pub by: UserId,
    /// When it was stated: for a learnt one, when the message got its words.
    pub at: UnixMillis,
    /// The message it was learnt from; deleting that deletes the fact.
    pub link: Option<(ChannelId, MessageId)>,
    /// Someone requested it by command, so it is dropped last when space runs
    /// out.
    pub pinned: bool,
    /// How often it was learnt; repetition counts in its favour.
    pub seen: u32,
    /// When a prompt last included it.
    pub last_used: UnixMillis,
}

impl Fact {
    /// Greater for what is dropped later: asked for, used lately, learnt often, new.
    pub fn usefulness(&self) -> impl Ord + use<> {
        (self.pinned, self.last_used, self.seen, self.at, self.id)
    }

    /// The most useful of these that are not too long, oldest first.
    pub(crate) fn most_useful(mut facts: Vec<Self>, most: usize) -> Vec<Self> {
        facts.retain(|fact| fact.text.len() <= MAX_FACT_BYTES);
        if facts.len() > most {
            facts.sort_unstable_by_key(|fact| std::cmp::Reverse(fact.usefulness()));
            facts.truncate(most);
        }
        facts.sort_by_key(|fact| (fact.at, fact.id));
        facts
    }

    /// Whether it is about a user, or stated by them.
    pub fn is_of(&self, user: UserId) -> bool {
        self.subject == Subject::User(user) || self.by == user
    }

    /// Whether it was learnt in a server, or is about it.
    pub fn is_from(&self, guild: GuildId) -> bool {
        self.guilds().any(|of| of == guild)
    }

    /// The servers that it was learnt in or is about.
    pub(crate) fn guilds(&self) -> impl Iterator<Item = GuildId> + use<> {
        let about = match self.subject {
            Subject::Server(guild) => Some(guild),
            Subject::User(_) => None,
        };
        about.into_iter().chain(self.origin.guild())
    }
}

/// A fact's id, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FactId(pub u64);

/// The text is not a fact's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a fact")]
pub struct FactIdError(pub String);

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for FactId {
    type Err = FactIdError;

    fn from_str(text: &str) -> Result<Self, FactIdError> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        id.map(Self).ok_or_else(|| FactIdError(text.to_owned()))
    }
}

/// Who or what a fact is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A user.
    User(UserId),
    /// A server.
    Server(GuildId),
}

/// Where a fact was learnt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// In direct messages, for use there only.
    Direct,
    /// In a server, for use there and in the user's direct messages.
    Guild(GuildId),
    /// For use everywhere: `/memory remember everywhere:true`.
    Everywhere,
}

impl Origin {
    /// Its word in stores and exports.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Guild(_) => "guild",
            Self::Everywhere => "everywhere",
        }
    }

    /// The server of which it is; none if it is of none.
    pub const fn guild(self) -> Option<GuildId> {
        match self {
            Self::Guild(guild) => Some(guild),
            Self::Direct | Self::Everywhere => None,
        }
    }

    /// Whether a fact of this origin may be used in `guild`; `None` means
    /// direct messages.
    pub fn serves(self, guild: Option<GuildId>) -> bool {
        match (self, guild) {
            (Self::Everywhere, _) | (_, None) => true,
            (Self::Guild(origin), Some(guild)) => origin == guild,
            (Self::Direct, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_used_where_its_origin_allows() {
        let (here, there) = (GuildId::new(1), GuildId::new(2));
        for (origin, guild, expected) in [
            (Origin::Direct, None, true),
            (Origin::Direct, Some(here), false),
            (Origin::Guild(here), Some(here), true),
            (Origin::Guild(here), Some(there), false),
            (Origin::Guild(here), None, true),
            (Origin::Everywhere, Some(there), true),
            (Origin::Everywhere, None, true),
        ] {
            assert_eq!(origin.serves(guild), expected, "{origin:?} in {guild:?}");
        }
    }

    #[test]
    fn an_id_is_sixteen_digits() {
        let id = FactId(0xab);
        assert_eq!(id.to_string(), "00000000000000ab");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("ab".parse::<FactId>().is_err());
    }
}
