//! How often something happens within a minute: questions and refusals of a person,
//! refusals in a channel, searches of a server.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Payer, Spender};
use clew_context::model::GuildId;

/// The span that rates are counted over.
const MINUTE: Duration = Duration::from_mins(1);
/// How many are remembered before those without recent activity are removed.
const MANY: usize = 1_024;

/// Counts events within the last minute, by person, channel or server.
#[derive(Debug)]
pub struct RateLimiter<K> {
    most: usize,
    times: HashMap<K, VecDeque<Instant>>,
    /// From how many on those without recent activity are removed.
    tidy_at: usize,
}

impl<K: Eq + Hash> RateLimiter<K> {
    /// Allows at most `most` per minute.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            times: HashMap::new(),
            tidy_at: MANY,
        }
    }

    /// Counts one more and returns true, unless that would be too many.
    pub fn take(&mut self, key: K, now: Instant) -> bool {
        self.take_within(key, self.most, now)
    }

    /// The same with another limit.
    fn take_within(&mut self, key: K, most: usize, now: Instant) -> bool {
        if self.times.len() >= self.tidy_at {
            self.times
                .retain(|_, times| times.back().is_some_and(|last| now - *last < MINUTE));
            self.tidy_at = MANY.max(2 * self.times.len());
        }
        let times = self.times.entry(key).or_default();
        while times.front().is_some_and(|first| now - *first >= MINUTE) {
            times.pop_front();
        }
        let allowed = times.len() < most;
        if allowed {
            times.push_back(now);
        }
        allowed
    }

    /// How many were counted within the last minute.
    pub fn counted(&self, key: &K, now: Instant) -> usize {
        let times = self.times.get(key).into_iter().flatten();
        times.filter(|time| now - **time < MINUTE).count()
    }
}

/// Counts people's questions against the operator's limit and that of their roles.
#[derive(Debug)]
pub struct QuestionRate {
    /// None without a limit.
    everywhere: Option<RateLimiter<Spender>>,
    /// Of members whose roles have a limit.
    members: RateLimiter<(Option<GuildId>, Spender)>,
}

impl QuestionRate {
    /// Allows at most `most` per person and minute.
    pub fn new(most: Option<usize>) -> Self {
        Self {
            everywhere: most.map(RateLimiter::new),
            members: RateLimiter::new(usize::MAX),
        }
    }

    /// Counts one more and returns true, unless that would be too many.
    pub fn take(&mut self, payer: Payer, now: Instant) -> bool {
        let member = (payer.guild, payer.spender);
        let of_roles = payer.limits.questions.map(|most| most as usize);
        // What the operator's limit refuses does not count towards the roles'.
        let everywhere = self.everywhere.as_ref();
        let is_free = everywhere.is_none_or(|rate| rate.counted(&payer.spender, now) < rate.most);
        is_free
            && of_roles.is_none_or(|most| self.members.take_within(member, most, now))
            && (self.everywhere.as_mut()).is_none_or(|rate| rate.take(payer.spender, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clew_context::model::UserId;
    use clew_store::model::RoleLimits;

    /// And never above the operator's.
    #[test]
    fn a_roles_rate_counts_in_its_server() {
        let (mut rate, now) = (QuestionRate::new(Some(3)), Instant::now());
        let payer = |guild, questions| Payer {
            spender: UserId::new(1).into(),
            guild: Some(GuildId::new(guild)),
            limits: RoleLimits {
                questions,
                tokens: None,
            },
        };
        assert!(rate.take(payer(1, Some(1)), now));
        assert!(!rate.take(payer(1, Some(1)), now));
        assert!(rate.take(payer(2, Some(9)), now) && rate.take(payer(2, Some(9)), now));
        assert!(!rate.take(payer(2, Some(9)), now));
        assert!(!rate.take(payer(3, None), now));
    }

    /// However many come, no more are remembered than were active within a minute or two.
    #[test]
    fn who_is_long_gone_is_forgotten() {
        let (mut rate, start) = (RateLimiter::new(2), Instant::now());
        for minute in 0..20 {
            for n in 0..2 * MANY {
                rate.take((minute, n), start + MINUTE * minute);
            }
        }
        assert!(rate.times.len() <= 8 * MANY, "{}", rate.times.len());
    }

    /// Nobody who was active within the minute is forgotten for those who come.
    #[test]
    fn who_was_there_lately_is_remembered_however_many_come() {
        let (mut rate, start) = (RateLimiter::new(1), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(rate.take(0, at(0)));
        for n in 1..3 * MANY {
            assert!(rate.take(n, at(1)));
        }
        assert!(!rate.take(0, at(2)) && !rate.take(1, at(2)));
    }

    #[test]
    fn a_minute_slides() {
        let (mut rate, start) = (RateLimiter::new(2), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let user = Spender::User(UserId::new(1));
        assert!(rate.take(user, at(0)) && rate.take(user, at(30)));
        assert!(!rate.take(user, at(59)));
        assert!(
            rate.take(Spender::User(UserId::new(2)), at(59)),
            "others have their own"
        );
        assert!(rate.take(user, at(60)));
        assert!(!rate.take(user, at(61)));
        assert_eq!(rate.counted(&user, at(89)), 2);
        assert_eq!(rate.counted(&user, at(90)), 1);
    }
}
