//! How often Discord's search is asked, and whether it may be.
//!
//! Invariant: of one turn and of one server only so many requests are sent, and none where
//! Discord said no, until the time that it told, or a while, is over.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::engine::rate_limit::RateLimiter;
use crate::telemetry::event::SearchedBy;
use clew_context::discord::error::RestError;
use clew_context::discord::rest::RestReader;
use clew_context::model::{Fallback, GuildId};

/// Requests of one turn.
const PER_TURN: usize = 4;
/// Requests within a minute for one server.
const PER_MINUTE: usize = 20;
/// How long a server that refused us (403) is not asked again: Discord counts refused
/// requests towards a ban.
const FORBIDDEN_FOR: Duration = Duration::from_mins(10);
/// How long one is not asked again after a 429 that does not tell it, and the longest.
const PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// Discord's search, as far as one turn may ask it.
#[derive(Debug, Clone, Copy)]
pub struct DiscordSearch<'a> {
    /// Sends the requests.
    pub rest: &'a RestReader,
    /// What holds for servers.
    pub servers: &'a SearchedServers,
    /// The requests that the turn has sent.
    pub sent: &'a AtomicUsize,
}

/// One for all turns of a process.
#[derive(Debug)]
pub struct SearchedServers(Mutex<Servers>);

#[derive(Debug)]
struct Servers {
    rate: RateLimiter<GuildId>,
    /// Those that are not asked until then, and why; some of the servers that we are in.
    closed: HashMap<GuildId, (Instant, SearchedBy)>,
}

impl Default for SearchedServers {
    fn default() -> Self {
        Self(Mutex::new(Servers {
            rate: RateLimiter::new(PER_MINUTE),
            closed: HashMap::new(),
        }))
    }
}

impl DiscordSearch<'_> {
    /// Counts one more request, or says why there may be none.
    pub(super) fn take(&self, guild: GuildId, now: Instant) -> Result<(), SearchedBy> {
        let mut servers = self.servers.0.lock();
        servers.closed.retain(|_, (until, _)| now < *until);
        if let Some((_, why)) = servers.closed.get(&guild) {
            return Err(*why);
        }
        let is_free = self.sent.load(Ordering::Relaxed) < PER_TURN;
        if !is_free || !servers.rate.take(guild, now) {
            return Err(SearchedBy::Limit);
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// What follows from a refusal.
    pub(super) fn refused(&self, guild: GuildId, error: &RestError, now: Instant) -> SearchedBy {
        let (span, why) = match error.reason {
            Fallback::RateLimited => {
                let told = error.retry_after.unwrap_or(PAUSE);
                (told.min(LONGEST_PAUSE), SearchedBy::RateLimited)
            }
            Fallback::Forbidden => (FORBIDDEN_FOR, SearchedBy::Forbidden),
            _ => return SearchedBy::Failed,
        };
        let mut servers = self.servers.0.lock();
        servers.closed.insert(guild, (now + span, why));
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUILD: GuildId = GuildId::new(1);

    /// A turn's search of a server.
    fn ask(servers: &SearchedServers, sent: &AtomicUsize, now: Instant) -> Result<(), SearchedBy> {
        let rest = RestReader::new("token", None).unwrap();
        let search = DiscordSearch {
            rest: &rest,
            servers,
            sent,
        };
        search.take(GUILD, now)
    }

    #[tokio::test]
    async fn a_turn_and_a_server_have_so_many() {
        let (servers, now) = (SearchedServers::default(), Instant::now());
        for _ in 0..PER_MINUTE / PER_TURN {
            let sent = AtomicUsize::new(0);
            for _ in 0..PER_TURN {
                assert_eq!(ask(&servers, &sent, now), Ok(()));
            }
            assert_eq!(ask(&servers, &sent, now), Err(SearchedBy::Limit));
        }
        let sent = AtomicUsize::new(0);
        assert_eq!(ask(&servers, &sent, now), Err(SearchedBy::Limit));
        let later = now + Duration::from_mins(1);
        assert_eq!(ask(&servers, &sent, later), Ok(()));
    }

    #[tokio::test]
    async fn a_refusal_holds_for_its_time() {
        let rest = RestReader::new("token", None).unwrap();
        let (servers, now) = (SearchedServers::default(), Instant::now());
        let sent = AtomicUsize::new(0);
        let search = DiscordSearch {
            rest: &rest,
            servers: &servers,
            sent: &sent,
        };
        let mut limited = RestError::lasting(Fallback::RateLimited);
        limited.retry_after = Some(Duration::from_secs(7));
        assert_eq!(
            search.refused(GUILD, &limited, now),
            SearchedBy::RateLimited
        );
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(search.take(GUILD, at(6)), Err(SearchedBy::RateLimited));
        assert_eq!(search.take(GuildId::new(2), at(6)), Ok(()));
        assert_eq!(search.take(GUILD, at(7)), Ok(()));
        let forbidden = RestError::lasting(Fallback::Forbidden);
        search.refused(GUILD, &forbidden, at(7));
        assert_eq!(search.take(GUILD, at(606)), Err(SearchedBy::Forbidden));
        assert_eq!(search.take(GUILD, at(607)), Ok(()));
        let broken = RestError::lasting(Fallback::Unavailable);
        assert_eq!(search.refused(GUILD, &broken, at(607)), SearchedBy::Failed);
        assert_eq!(search.take(GUILD, at(607)), Ok(()));
    }
}
