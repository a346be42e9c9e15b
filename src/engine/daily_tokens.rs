//! How many of the model's tokens each user, each server and the whole bot have used today,
//! against the operator's limits. A day is one of UTC.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::model::{Payer, Spender, TokenLimits};
use clew_context::model::{GuildId, UnixMillis};

/// The most users, and the most servers, that are counted in a day. Beyond, the half
/// that has used least is forgotten: each of them may use that little once more.
const MANY: usize = 50_000;

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpentBy {
    /// The user's, or that of their roles.
    User,
    /// The server's.
    Guild,
    /// The whole bot's.
    Total,
}

/// What has been used of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Tokens.
    pub used: u64,
    /// Of so many.
    pub limit: u64,
}

impl Share {
    /// What may still be used.
    pub const fn left(self) -> u64 {
        self.limit.saturating_sub(self.used)
    }
}

/// What has been used of each limit that there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// Of the user's.
    pub user: Option<Share>,
    /// Of what their roles allow them in the server.
    pub member: Option<Share>,
    /// Of the server's.
    pub guild: Option<Share>,
    /// Of the whole bot's.
    pub total: Option<Share>,
}

impl Shares {
    /// Which limit is reached, if one is.
    pub fn spent(self) -> Option<SpentBy> {
        let of = [
            (self.user, SpentBy::User),
            (self.member, SpentBy::User),
            (self.guild, SpentBy::Guild),
            (self.total, SpentBy::Total),
        ];
        let mut reached = of
            .into_iter()
            .filter(|(share, _)| share.is_some_and(|share| share.left() == 0));
        reached.next().map(|(_, by)| by)
    }
}

/// What has been used today.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyTokens {
    limits: TokenLimits,
    used: UsedTokens,
}

/// The tokens used on one day, as they are kept over a restart. Of a limit that is not
/// set nothing is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedTokens {
    /// Days since 1970-01-01.
    day: i64,
    /// Apps through which people write are counted among them, by channel.
    users: HashMap<Spender, u64>,
    guilds: HashMap<GuildId, u64>,
    #[serde(default)]
    total: u64,
    /// Members whose roles have a limit, each in their server.
    #[serde(default, with = "pairs")]
    members: HashMap<(GuildId, Spender), u64>,
}

impl UsedTokens {
    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        let Self {
            users,
            guilds,
            total,
            members,
            ..
        } = self;
        users.is_empty() && guilds.is_empty() && *total == 0 && members.is_empty()
    }
}

impl DailyTokens {
    /// Counts on from what was kept, if it is of today.
    pub fn new(limits: TokenLimits, kept: UsedTokens, now: UnixMillis) -> Self {
        let mut tokens = Self { limits, used: kept };
        // Kept by a clock that was ahead: of which day is unknown, so they count.
        tokens.used.day = tokens.used.day.min(now.day());
        tokens.begin_day(now);
        tokens
    }

    /// Counts the tokens of a request.
    pub fn add(&mut self, payer: Payer, tokens: u64, now: UnixMillis) {
        self.begin_day(now);
        if tokens == 0 {
            return;
        }
        if self.limits.per_user.is_some() {
            add(&mut self.used.users, payer.spender, tokens);
        }
        if let Some(guild) = payer.guild
            && payer.limits.tokens.is_some()
        {
            add(&mut self.used.members, (guild, payer.spender), tokens);
        }
        if let Some(guild) = payer.guild
            && self.limits.per_guild.is_some()
        {
            add(&mut self.used.guilds, guild, tokens);
        }
        if self.limits.total.is_some() {
            self.used.total = self.used.total.saturating_add(tokens);
        }
    }

    /// What has been used of the limits that count for somebody.
    pub fn shares(&mut self, payer: Payer, now: UnixMillis) -> Shares {
        let total = self.total(now);
        let share = |used: Option<u64>, limit: Option<u64>| {
            let used = used.unwrap_or(0);
            limit.map(|limit| Share { used, limit })
        };
        let (used, limits) = (&self.used, &self.limits);
        let user = used.users.get(&payer.spender).copied();
        let of_guild = |guild| share(used.guilds.get(&guild).copied(), limits.per_guild);
        let of_member = |guild| {
            let used = used.members.get(&(guild, payer.spender));
            share(used.copied(), payer.limits.tokens)
        };
        Shares {
            member: payer.guild.and_then(of_member),
            user: share(user, limits.per_user),
            guild: payer.guild.and_then(of_guild),
            total,
        }
    }

    /// What everybody has used together; none without a limit.
    pub fn total(&mut self, now: UnixMillis) -> Option<Share> {
        self.begin_day(now);
        let used = self.used.total;
        self.limits.total.map(|limit| Share { used, limit })
    }

    /// What is kept over a restart.
    pub const fn used(&self) -> &UsedTokens {
        &self.used
    }

    /// A clock that is set back, by less than two days, ends no day. What one counted that was days
    /// ahead is over with tomorrow.
    fn begin_day(&mut self, now: UnixMillis) {
        self.used.day = self.used.day.min(now.day() + 1);
        if now.day() > self.used.day {
            self.used = UsedTokens {
                day: now.day(),
                ..UsedTokens::default()
            };
        }
    }
}

/// A map whose keys are no texts, as a list.
mod pairs {
    use std::collections::HashMap;
    use std::hash::Hash;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, S: Serializer>(
        map: &HashMap<K, u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, K, D>(deserializer: D) -> Result<HashMap<K, u64>, D::Error>
    where
        K: Deserialize<'de> + Eq + Hash,
        D: Deserializer<'de>,
    {
        let pairs = Vec::<(K, u64)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().collect())
    }
}

/// When the day of `now` is over, in Unix seconds.
pub const fn day_ends(now: UnixMillis) -> i64 {
    (now.day() + 1) * SECONDS_A_DAY
}

const SECONDS_A_DAY: i64 = 24 * 60 * 60;

fn add<Id: Copy + Eq + Hash>(used: &mut HashMap<Id, u64>, id: Id, tokens: u64) {
    if used.len() >= MANY && !used.contains_key(&id) {
        forget_least(used);
    }
    let all = used.entry(id).or_default();
    *all = all.saturating_add(tokens);
}

/// Forgets the half that has used least.
fn forget_least<Id: Copy + Eq + Hash>(used: &mut HashMap<Id, u64>) {
    let mut order: Vec<(Id, u64)> = used.drain().collect();
    let half = order.len() / 2;
    order.select_nth_unstable_by(half, |(_, one), (_, other)| other.cmp(one));
    order.truncate(half);
    used.extend(order);
}

#[cfg(test)]
mod tests {
    use clew_context::model::{ChannelId, ProxyId, UserId};
    use clew_store::model::RoleLimits;

    use super::*;

    const NOON: UnixMillis = UnixMillis(20_000 * SECONDS_A_DAY * 1_000 + 43_200_000);
    const TOMORROW: UnixMillis = UnixMillis(NOON.0 + SECONDS_A_DAY * 1_000);
    const LIMITS: TokenLimits = TokenLimits {
        per_user: Some(100),
        per_guild: Some(150),
        total: None,
    };

    impl DailyTokens {
        fn spent(&mut self, payer: Payer, now: UnixMillis) -> Option<SpentBy> {
            self.shares(payer, now).spent()
        }
    }

    fn payer(user: u64, guild: u64) -> Payer {
        Payer {
            spender: UserId::new(user).into(),
            guild: (guild > 0).then(|| GuildId::new(guild)),
            limits: RoleLimits::default(),
        }
    }

    fn none_used(limits: TokenLimits) -> DailyTokens {
        DailyTokens::new(limits, UsedTokens::default(), NOON)
    }

    #[test]
    fn a_user_and_a_server_each_have_a_limit() {
        let mut tokens = none_used(LIMITS);
        tokens.add(payer(1, 7), 99, NOON);
        assert_eq!(tokens.spent(payer(1, 7), NOON), None);
        tokens.add(payer(1, 8), 1, NOON);
        for guild in [7, 8, 0] {
            let spent = tokens.spent(payer(1, guild), NOON);
            assert_eq!(spent, Some(SpentBy::User), "everywhere, in {guild} too");
        }
        assert_eq!(tokens.spent(payer(2, 7), NOON), None);
        tokens.add(payer(2, 7), 51, NOON);
        assert_eq!(tokens.spent(payer(3, 7), NOON), Some(SpentBy::Guild));
        assert_eq!(tokens.spent(payer(3, 8), NOON), None);
        assert_eq!(tokens.spent(payer(3, 0), NOON), None);
    }

    #[test]
    fn everybody_together_has_a_limit_and_each_sees_what_is_left() {
        let total = Some(200);
        let mut tokens = none_used(TokenLimits { total, ..LIMITS });
        tokens.add(payer(1, 7), 99, NOON);
        tokens.add(payer(2, 0), 100, NOON);
        let shares = tokens.shares(payer(1, 7), NOON);
        let left = [shares.user, shares.guild, shares.total];
        assert_eq!(left.map(|one| one.map(Share::left)), [1, 51, 1].map(Some));
        assert_eq!(tokens.shares(payer(1, 0), NOON).guild, None);
        tokens.add(payer(3, 8), 5, NOON);
        assert_eq!(tokens.spent(payer(4, 9), NOON), Some(SpentBy::Total));
        assert_eq!(tokens.spent(payer(4, 9), TOMORROW), None);
    }

    /// Without any limit of the operator's, too, and over a restart.
    #[test]
    fn a_roles_limit_holds_its_member_in_that_server() {
        let limited = |user, guild| Payer {
            limits: RoleLimits {
                questions: None,
                tokens: Some(50),
            },
            ..payer(user, guild)
        };
        let mut tokens = none_used(TokenLimits::default());
        assert!(tokens.used().is_empty());
        tokens.add(limited(1, 7), 50, NOON);
        let kept = serde_json::to_string(tokens.used()).unwrap();
        let kept: UsedTokens = serde_json::from_str(&kept).unwrap();
        assert!(!kept.is_empty());
        let mut tokens = DailyTokens::new(TokenLimits::default(), kept, NOON);
        assert_eq!(tokens.spent(limited(1, 7), NOON), Some(SpentBy::User));
        for other in [limited(2, 7), limited(1, 8), limited(1, 0), payer(1, 7)] {
            assert_eq!(tokens.spent(other, NOON), None, "{other:?}");
        }
        assert_eq!(tokens.spent(limited(1, 7), TOMORROW), None);
    }

    /// An earlier version kept no count of everybody's.
    #[test]
    fn what_an_earlier_version_kept_is_read() {
        let kept = r#"{"day":20000,"users":{},"guilds":{"7":150}}"#;
        let mut tokens = DailyTokens::new(LIMITS, serde_json::from_str(kept).unwrap(), NOON);
        assert_eq!(tokens.spent(payer(1, 7), NOON), Some(SpentBy::Guild));
    }

    #[test]
    fn without_limits_nothing_is_counted() {
        let mut tokens = none_used(TokenLimits::default());
        tokens.add(payer(1, 7), u64::MAX, NOON);
        assert_eq!(tokens.spent(payer(1, 7), NOON), None);
        assert_eq!(tokens, none_used(TokenLimits::default()));
    }

    #[test]
    fn a_day_ends_at_midnight_in_utc_and_never_by_a_clock_that_is_set_back() {
        let mut tokens = none_used(LIMITS);
        tokens.add(payer(1, 7), u64::MAX, NOON);
        tokens.add(payer(1, 7), u64::MAX, NOON);
        let midnight = UnixMillis(day_ends(NOON) * 1_000);
        let before = UnixMillis(midnight.0 - 1);
        let yesterday = UnixMillis(NOON.0 - SECONDS_A_DAY * 1_000);
        assert_eq!(tokens.spent(payer(1, 7), yesterday), Some(SpentBy::User));
        assert_eq!(tokens.spent(payer(1, 7), before), Some(SpentBy::User));
        assert_eq!(tokens.spent(payer(1, 7), midnight), None);
        assert_eq!(tokens.spent(payer(2, 7), midnight), None);
    }

    #[test]
    fn what_was_kept_counts_on_the_same_day() {
        let mut tokens = none_used(LIMITS);
        tokens.add(payer(1, 7), 200, NOON);
        let proxy = Payer {
            spender: Spender::Proxy(ProxyId::new(5), ChannelId::new(6)),
            guild: None,
            limits: RoleLimits::default(),
        };
        tokens.add(proxy, 300, NOON);
        let kept = serde_json::to_string(tokens.used()).unwrap();
        let restored = |now| {
            let kept = serde_json::from_str(&kept).unwrap();
            DailyTokens::new(LIMITS, kept, now)
        };
        assert_eq!(restored(NOON), tokens);
        assert_eq!(restored(TOMORROW).spent(payer(1, 7), TOMORROW), None);
        // Kept by a clock that was ahead.
        let yesterday = UnixMillis(NOON.0 - SECONDS_A_DAY * 1_000);
        let mut behind = restored(yesterday);
        assert_eq!(behind.spent(payer(1, 7), yesterday), Some(SpentBy::User));
        assert_eq!(behind.spent(payer(1, 7), NOON), None);
    }

    /// What was used while it was ahead counts until tomorrow is over, not that day.
    #[test]
    fn a_clock_that_was_ahead_keeps_no_limit_for_days() {
        let mut tokens = none_used(LIMITS);
        let ahead = UnixMillis(NOON.0 + 9 * SECONDS_A_DAY * 1_000);
        tokens.add(payer(1, 7), 200, ahead);
        assert_eq!(tokens.spent(payer(1, 7), NOON), Some(SpentBy::User));
        let in_two_days = UnixMillis(TOMORROW.0 + SECONDS_A_DAY * 1_000);
        assert_eq!(tokens.spent(payer(1, 7), in_two_days), None);
    }

    #[test]
    fn so_many_are_counted_and_who_used_most_is_never_forgotten() {
        let mut tokens = none_used(LIMITS);
        tokens.add(payer(1, 1), 100, NOON);
        for id in 2..=2 * MANY as u64 {
            tokens.add(payer(id, id), 1, NOON);
        }
        let used = tokens.used();
        assert!(used.users.len() <= MANY && used.guilds.len() <= MANY);
        assert_eq!(tokens.spent(payer(1, 0), NOON), Some(SpentBy::User));
    }
}
