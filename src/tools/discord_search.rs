//! How often Discord's search is asked, whether it may be, and what a turn has from it.
//!
//! Invariant: of one turn and of one server only so many requests are sent, those of a server one
//! after the other, and none where Discord said no, until the time that it told, or a while, is
//! over.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, timeout_at};

use crate::engine::rate_limit::RateLimiter;
use crate::telemetry::event::SearchedBy;
use clew_context::discord::error::RestError;
use clew_context::discord::rest::{RestReader, SearchQuery};
use clew_context::model::{ChannelId, Fallback, GuildId, Message};

/// Calls of one turn that ask Discord.
const PER_TURN: usize = 4;
/// Requests within a minute for one server, and those of them for members' own programs.
const PER_MINUTE: usize = 20;
const FOR_PROGRAMS: usize = 8;
/// How long a server that refused us (403) is not asked again: Discord counts refused
/// requests towards a ban.
const FORBIDDEN_FOR: Duration = Duration::from_mins(10);
/// How long the index is waited for where Discord names no time.
const SHORT_WAIT: Duration = Duration::from_secs(1);
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
    /// What the turn has searched.
    pub turn: &'a TurnSearches,
    /// Whether a member's own program searches.
    pub is_program: bool,
}

/// One for all turns of a process.
#[derive(Debug)]
pub struct SearchedServers(Mutex<Servers>);

#[derive(Debug)]
struct Servers {
    rate: RateLimiter<GuildId>,
    programs: RateLimiter<GuildId>,
    /// Those that are not asked until then, and why; some of the servers that we are in.
    closed: HashMap<GuildId, (Instant, SearchedBy)>,
    /// Held by who searches a server, and by the program that does or is next.
    running: HashMap<(GuildId, bool), Arc<tokio::sync::Mutex<()>>>,
}

/// While it lives, no other call searches the server.
pub(super) struct Alone {
    _server: OwnedMutexGuard<()>,
    _program: Option<OwnedMutexGuard<()>>,
}

/// What a turn has from Discord's search.
#[derive(Debug, Default)]
pub struct TurnSearches(Mutex<Searches>);

#[derive(Debug, Default)]
pub(super) struct Searches {
    calls: usize,
    /// It has waited for an index that was being built.
    has_waited: bool,
    /// The channels that are asked for: all, or those of one.
    pub(super) channels: HashMap<Option<ChannelId>, Vec<ChannelId>>,
    /// Its pages by query; a few.
    known: Vec<(SearchQuery, Pages)>,
}

/// The pages of a query.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages {
    /// As Discord gave them, each with the revision before it was asked for.
    pub(super) given: Vec<(u64, Arc<[Message]>)>,
    /// Why no more of them are asked for: by Discord's search, all were found that are shown.
    pub(super) over: Option<SearchedBy>,
}

impl Default for SearchedServers {
    fn default() -> Self {
        Self(Mutex::new(Servers {
            rate: RateLimiter::new(PER_MINUTE),
            programs: RateLimiter::new(FOR_PROGRAMS),
            closed: HashMap::new(),
            running: HashMap::new(),
        }))
    }
}

impl Searches {
    /// The pages of a query.
    pub(super) fn pages(&mut self, query: &SearchQuery) -> &mut Pages {
        let at = self.known.iter().position(|(known, _)| known == query);
        let at = at.unwrap_or_else(|| {
            self.known.push((query.clone(), Pages::default()));
            self.known.len() - 1
        });
        &mut self.known[at].1
    }
}

impl DiscordSearch<'_> {
    /// Waits until no other call searches the server: a request that waits behind one that
    /// gets a 429 would follow it. Of programs one at a time is in the way of other calls.
    pub(super) async fn alone(
        &self,
        guild: GuildId,
        deadline: Instant,
    ) -> Result<Alone, SearchedBy> {
        let held = |is_program| {
            let running = &mut self.servers.0.lock().running;
            running.retain(|_, held| Arc::strong_count(held) > 1);
            Arc::clone(running.entry((guild, is_program)).or_default())
        };
        let alone = async {
            let program = if self.is_program {
                Some(held(true).lock_owned().await)
            } else {
                None
            };
            Alone {
                _program: program,
                _server: held(false).lock_owned().await,
            }
        };
        let alone = timeout_at(deadline, alone).await;
        alone.map_err(|_| SearchedBy::Failed)
    }

    /// What the turn has searched.
    pub(super) fn turn(&self) -> MutexGuard<'_, Searches> {
        self.turn.0.lock()
    }

    /// Counts one more request, perhaps the first of a call, or says why there may be none.
    pub(super) fn take(
        &self,
        guild: GuildId,
        is_first: bool,
        now: Instant,
    ) -> Result<(), SearchedBy> {
        let (mut servers, mut turn) = (self.servers.0.lock(), self.turn());
        servers.closed.retain(|_, (until, _)| now < *until);
        if let Some((_, why)) = servers.closed.get(&guild) {
            return Err(*why);
        }
        let is_free = !is_first || turn.calls < PER_TURN;
        let is_free = is_free && (!self.is_program || servers.programs.take(guild, now));
        if !is_free || !servers.rate.take(guild, now) {
            return Err(SearchedBy::Limit);
        }
        turn.calls += usize::from(is_first);
        Ok(())
    }

    /// How long to wait for an index that is being built, for the `told` time: once a turn and
    /// until the deadline. Who does not wait closes the server for that time.
    pub(super) fn not_indexed(
        &self,
        guild: GuildId,
        told: Duration,
        (now, deadline): (Instant, Instant),
    ) -> Result<Duration, SearchedBy> {
        let told = Some(told).filter(|told| !told.is_zero());
        let wait = told.unwrap_or(SHORT_WAIT).min(LONGEST_PAUSE);
        if now + wait < deadline && !mem::replace(&mut self.turn().has_waited, true) {
            return Ok(wait);
        }
        Err(self.close(guild, now + wait, SearchedBy::NotIndexed))
    }

    /// What follows from a refusal.
    pub(super) fn refused(&self, guild: GuildId, error: &RestError, now: Instant) -> SearchedBy {
        match error.reason {
            Fallback::RateLimited => {
                let told = error.retry_after.unwrap_or(PAUSE).min(LONGEST_PAUSE);
                self.close(guild, now + told, SearchedBy::RateLimited)
            }
            Fallback::Forbidden => self.close(guild, now + FORBIDDEN_FOR, SearchedBy::Forbidden),
            _ => SearchedBy::Failed,
        }
    }

    fn close(&self, guild: GuildId, until: Instant, why: SearchedBy) -> SearchedBy {
        self.servers.0.lock().closed.insert(guild, (until, why));
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUILD: GuildId = GuildId::new(1);

    /// A turn's search of a server.
    fn ask(servers: &SearchedServers, turn: &TurnSearches, now: Instant) -> Result<(), SearchedBy> {
        let rest = RestReader::new("token", None).unwrap();
        search(&rest, servers, turn).take(GUILD, true, now)
    }

    fn search<'a>(
        rest: &'a RestReader,
        servers: &'a SearchedServers,
        turn: &'a TurnSearches,
    ) -> DiscordSearch<'a> {
        DiscordSearch {
            rest,
            servers,
            turn,
            is_program: false,
        }
    }

    /// Those of programs count among them.
    #[tokio::test]
    async fn programs_leave_most_of_a_minute_to_answers() {
        let rest = RestReader::new("token", None).unwrap();
        let (servers, now) = (SearchedServers::default(), Instant::now());
        let of_program = |turn: &TurnSearches| {
            let program = DiscordSearch {
                is_program: true,
                ..search(&rest, &servers, turn)
            };
            program.take(GUILD, true, now)
        };
        for _ in 0..FOR_PROGRAMS {
            assert_eq!(of_program(&TurnSearches::default()), Ok(()));
        }
        assert_eq!(of_program(&TurnSearches::default()), Err(SearchedBy::Limit));
        for _ in FOR_PROGRAMS..PER_MINUTE {
            assert_eq!(ask(&servers, &TurnSearches::default(), now), Ok(()));
        }
        let over = ask(&servers, &TurnSearches::default(), now);
        assert_eq!(over, Err(SearchedBy::Limit));
    }

    #[tokio::test]
    async fn a_turn_and_a_server_have_so_many() {
        let (servers, now) = (SearchedServers::default(), Instant::now());
        for _ in 0..PER_MINUTE / PER_TURN {
            let turn = TurnSearches::default();
            for _ in 0..PER_TURN {
                assert_eq!(ask(&servers, &turn, now), Ok(()));
            }
            assert_eq!(ask(&servers, &turn, now), Err(SearchedBy::Limit));
        }
        let turn = TurnSearches::default();
        assert_eq!(ask(&servers, &turn, now), Err(SearchedBy::Limit));
        let later = now + Duration::from_mins(1);
        assert_eq!(ask(&servers, &turn, later), Ok(()));
    }

    #[tokio::test]
    async fn one_call_at_a_time_searches_a_server() {
        let rest = RestReader::new("token", None).unwrap();
        let (servers, turn) = (SearchedServers::default(), TurnSearches::default());
        let search = search(&rest, &servers, &turn);
        let soon = || Instant::now() + Duration::from_millis(5);
        let first = search.alone(GUILD, soon()).await.unwrap();
        assert!(search.alone(GuildId::new(2), soon()).await.is_ok());
        assert_eq!(
            search.alone(GUILD, soon()).await.err(),
            Some(SearchedBy::Failed)
        );
        drop(first);
        assert!(search.alone(GUILD, soon()).await.is_ok());
        assert_eq!(servers.0.lock().running.len(), 1);
    }

    #[tokio::test]
    async fn a_turn_waits_once_for_an_index_and_then_closes_the_server() {
        let rest = RestReader::new("token", None).unwrap();
        let (servers, now) = (SearchedServers::default(), Instant::now());
        let [turn, other] = [(); 2].map(|()| TurnSearches::default());
        let [search, other] = [&turn, &other].map(|turn| search(&rest, &servers, turn));
        let closed = Err(SearchedBy::NotIndexed);
        let told = Duration::from_secs;
        let until = |seconds| (now, now + told(seconds));
        assert_eq!(search.not_indexed(GUILD, told(0), until(12)), Ok(told(1)));
        assert_eq!(search.take(GUILD, true, now), Ok(()));
        // Also in another call.
        assert_eq!(search.not_indexed(GUILD, told(3), until(12)), closed);
        assert_eq!(
            other.take(GUILD, true, now + told(2)),
            Err(SearchedBy::NotIndexed)
        );
        assert_eq!(other.take(GUILD, true, now + told(3)), Ok(()));
        // Nobody waits for minutes, nor is kept out for hours.
        assert_eq!(other.not_indexed(GUILD, told(9_000), until(12)), closed);
        assert_eq!(
            other.take(GUILD, true, now + told(599)),
            Err(SearchedBy::NotIndexed)
        );
        assert_eq!(other.take(GUILD, true, now + told(600)), Ok(()));
        assert_eq!(other.not_indexed(GUILD, told(2), until(12)), Ok(told(2)));
    }

    #[tokio::test]
    async fn a_refusal_holds_for_its_time() {
        let rest = RestReader::new("token", None).unwrap();
        let (servers, now) = (SearchedServers::default(), Instant::now());
        let turn = TurnSearches::default();
        let search = search(&rest, &servers, &turn);
        let mut limited = RestError::lasting(Fallback::RateLimited);
        limited.retry_after = Some(Duration::from_secs(7));
        assert_eq!(
            search.refused(GUILD, &limited, now),
            SearchedBy::RateLimited
        );
        let at = |seconds| now + Duration::from_secs(seconds);
        assert_eq!(
            search.take(GUILD, true, at(6)),
            Err(SearchedBy::RateLimited)
        );
        assert_eq!(search.take(GuildId::new(2), true, at(6)), Ok(()));
        assert_eq!(search.take(GUILD, true, at(7)), Ok(()));
        let forbidden = RestError::lasting(Fallback::Forbidden);
        search.refused(GUILD, &forbidden, at(7));
        assert_eq!(
            search.take(GUILD, true, at(606)),
            Err(SearchedBy::Forbidden)
        );
        assert_eq!(search.take(GUILD, true, at(607)), Ok(()));
        let broken = RestError::lasting(Fallback::Unavailable);
        assert_eq!(search.refused(GUILD, &broken, at(607)), SearchedBy::Failed);
        assert_eq!(search.take(GUILD, true, at(607)), Ok(()));
    }
}
