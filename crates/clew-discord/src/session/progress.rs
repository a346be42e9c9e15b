//! Tracks which events are done, so that a restart replays the rest.

use std::collections::BTreeMap;

use super::ShardSession;
use crate::guild_state::shard_of;
use clew_context::model::{GuildId, UnixMillis};

/// The position of an event in progress, for [`ShardProgress::finished`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    shard: u32,
    /// How many shards there are; 0 before their session.
    shards: u32,
    sequence: u64,
    /// Which session of this process: sequences restart with each.
    session: u32,
}

impl Mark {
    /// The event's shard.
    pub const fn shard(&self) -> u32 {
        self.shard
    }
}

/// Per shard, the events received and the work still running for them.
///
/// The gateway calls `seen` for every event and `began` for each that it
/// forwards; the receiver calls `finished` once the event, and any turn it
/// started, is done.
#[derive(Debug, Default)]
pub struct ShardProgress {
    shards: BTreeMap<u32, Shard>,
    /// Counts this process's sessions.
    sessions: u32,
    left: Unheard,
}

/// What shards of another number left to those in their place.
#[derive(Debug, Default)]
struct Unheard {
    /// Since when something is not heard, or not finished.
    since: Option<UnixMillis>,
    /// Servers whose events do not come, as [`ShardSession::outages`].
    outages: BTreeMap<GuildId, i64>,
}

#[derive(Debug, Default)]
struct Shard {
    session: Option<ShardSession>,
    /// Which session of this process.
    number: u32,
    seen: u64,
    /// By sequence number.
    open: BTreeMap<u64, Open>,
    /// When the newest message that came was written, by Discord's clock.
    heard: Option<UnixMillis>,
    /// Since when no events come.
    unheard_since: Option<UnixMillis>,
    /// Servers whose events do not come, as [`ShardSession::outages`].
    outages: BTreeMap<GuildId, i64>,
    /// What was missed before this session is not caught up yet.
    is_behind: bool,
}

impl Shard {
    /// Since when something is not heard, or not finished, if something is.
    fn unfinished(&self) -> impl Iterator<Item = UnixMillis> {
        let open = self.open.values().map(|open| open.since);
        open.chain(self.unheard_since)
    }

    /// Since when nothing was heard, if nothing is from now on: our clock may be ahead, and what
    /// came last may have been late, so what is newer than all that came was not.
    fn unheard_from(&self, now: UnixMillis) -> UnixMillis {
        let heard = self.heard.map_or(now, |heard| heard.min(now));
        self.unheard_since.unwrap_or(heard)
    }
}

/// An event in progress.
#[derive(Debug)]
struct Open {
    /// How often it was begun: a resumed session may deliver an event again.
    times: u32,
    since: UnixMillis,
}

impl From<Vec<ShardSession>> for ShardProgress {
    /// Sessions of an earlier process, to be resumed.
    fn from(sessions: Vec<ShardSession>) -> Self {
        let mut progress = Self::default();
        for session in sessions {
            progress.resumes(session);
        }
        progress
    }
}

impl ShardProgress {
    /// Records that an event arrived.
    pub fn seen(&mut self, shard: u32, sequence: u64) {
        let shard = self.shards.entry(shard).or_default();
        shard.seen = shard.seen.max(sequence);
    }

    /// Records that an event arrived, which is of this time, and that work on it began.
    pub fn began(&mut self, shard: u32, sequence: u64, since: UnixMillis) -> Mark {
        self.seen(shard, sequence);
        let state = self.shards.entry(shard).or_default();
        let open = state
            .open
            .entry(sequence)
            .or_insert(Open { times: 0, since });
        open.times += 1;
        Mark {
            shard,
            shards: state.session.as_ref().map_or(0, |session| session.shards),
            sequence,
            session: state.number,
        }
    }

    /// Whether an event is of a shard that others of another number are in place of.
    pub fn is_replaced(&self, mark: Mark) -> bool {
        mark.shards > 0 && mark.shards != self.shard_count()
    }

    /// Records that work on an event is done. Marks of earlier sessions are
    /// ignored.
    pub fn finished(&mut self, mark: Mark) {
        let Some(shard) = self.shards.get_mut(&mark.shard) else {
            return;
        };
        if shard.number != mark.session {
            return;
        }
        if let Some(open) = shard.open.get_mut(&mark.sequence) {
            open.times -= 1;
            if open.times == 0 {
                shard.open.remove(&mark.sequence);
            }
        }
    }

    /// Records a fresh session. It counts from one again; work of the old one no longer
    /// holds it back, since its events cannot be replayed. No session is to be resumed
    /// until what was missed is [`caught_up`](Self::caught_up).
    pub fn opened(&mut self, session: ShardSession) {
        self.begin(session).is_behind = true;
    }

    /// Records a session of an earlier process that is to be resumed.
    pub fn resumes(&mut self, session: ShardSession) {
        let unfinished = session.unfinished_since;
        let outages = session.outages.clone();
        let state = self.begin(session);
        state.outages = outages;
        state.heard = unfinished.map(UnixMillis);
        state.unheard_since = state.heard;
        state.is_behind = false;
    }

    fn begin(&mut self, session: ShardSession) -> &mut Shard {
        // Those of another number of shards are over. Any of the new ones may make up for what they left.
        if ![0, session.shards].contains(&self.shard_count()) {
            let mut left = Unheard::default();
            for shard in std::mem::take(&mut self.shards).into_values() {
                left.since = shard.unfinished().chain(left.since).min();
                left.outages.extend(shard.outages);
            }
            self.left = left;
        }
        let Unheard { since, outages } = &self.left;
        let state = self.shards.entry(session.shard).or_insert_with(|| {
            let here = outages.iter().map(|(guild, since)| (*guild, *since));
            Shard {
                unheard_since: *since,
                outages: here
                    .filter(|(guild, _)| shard_of(*guild, session.shards) == Some(session.shard))
                    .collect(),
                ..Shard::default()
            }
        });
        self.sessions += 1;
        state.number = self.sessions;
        state.seen = session.sequence;
        state.open.clear();
        state.session = Some(session);
        state
    }

    /// A message came that was written then, by Discord's clock.
    pub fn heard(&mut self, shard: u32, written: UnixMillis) {
        let state = self.shards.entry(shard).or_default();
        state.heard = state.heard.max(Some(written));
    }

    /// Events come. Returns since when none came.
    pub fn connected(&mut self, shard: u32) -> Option<UnixMillis> {
        self.shards.entry(shard).or_default().unheard_since.take()
    }

    /// No events come.
    pub fn disconnected(&mut self, shard: u32, now: UnixMillis) {
        let state = self.shards.entry(shard).or_default();
        state.unheard_since = Some(state.unheard_from(now));
    }

    /// A server's events do not come, by an outage at Discord.
    pub fn outage(&mut self, shard: u32, guild: GuildId, now: UnixMillis) {
        let state = self.shards.entry(shard).or_default();
        let since = state.unheard_from(now);
        state.outages.entry(guild).or_insert(since.0);
    }

    /// The servers whose events do not come.
    pub fn outages(&self, shard: u32) -> Vec<GuildId> {
        let state = self.shards.get(&shard).into_iter();
        state
            .flat_map(|state| state.outages.keys().copied())
            .collect()
    }

    /// They come, or will not any more. Returns since when they did not.
    pub fn outage_over(&mut self, shard: u32, guild: GuildId) -> Option<UnixMillis> {
        let since = self.shards.get_mut(&shard)?.outages.remove(&guild);
        since.map(UnixMillis)
    }

    /// What the session of this event missed is being caught up, as after a fresh one.
    pub fn behind(&mut self, mark: Mark) {
        self.set_behind(mark, true);
    }

    /// What was missed before the session of this event is caught up, or will not be. Ignored
    /// if a newer one began.
    pub fn caught_up(&mut self, mark: Mark) {
        self.set_behind(mark, false);
    }

    fn set_behind(&mut self, mark: Mark, is_behind: bool) {
        let shard = self.shards.entry(mark.shard).or_default();
        if shard.number == mark.session {
            shard.is_behind = is_behind;
        }
    }

    /// How many shards there are; 0 before the first session.
    pub fn shard_count(&self) -> u32 {
        let sessions = self.shards.values().filter_map(|one| one.session.as_ref());
        sessions.map(|one| one.shards).max().unwrap_or(0)
    }

    /// The sessions for a new process to resume, at their safe sequence. None while
    /// something is being caught up: what was noted before stays, so that a new process
    /// catches up in its turn.
    pub fn sessions(&self) -> Vec<ShardSession> {
        if self.shards.values().any(|shard| shard.is_behind) {
            return Vec::new();
        }
        let sessions = self.shards.iter().filter_map(|(number, shard)| {
            let session = shard.session.clone()?;
            let sequence = self.safe_sequence(*number)?;
            let open = shard.open.values().map(|open| open.since);
            let unheard = shard.unheard_since.into_iter().chain(shard.heard);
            Some(ShardSession {
                sequence,
                unfinished_since: open.chain(unheard).min().map(|since| since.0),
                outages: shard.outages.clone(),
                ..session
            })
        });
        sessions.collect()
    }

    /// The number up to which everything is done; `None` for a shard that has
    /// seen nothing.
    fn safe_sequence(&self, shard: u32) -> Option<u64> {
        let shard = self.shards.get(&shard)?;
        let first_open = shard.open.keys().next();
        Some(first_open.map_or(shard.seen, |first| first.saturating_sub(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

    enum Step {
        Seen(u64),
        Began(u64),
        /// Finishes the nth piece of work begun, from 0.
        Finished(usize),
        Opened(u64),
    }
    use Step::{Began, Finished, Opened, Seen};

    fn session(sequence: u64) -> ShardSession {
        ShardSession {
            shard: 3,
            shards: 4,
            id: "abc".to_owned(),
            resume_url: None,
            sequence,
            unfinished_since: None,
            outages: BTreeMap::new(),
        }
    }

    #[track_caller]
    fn check(steps: &[Step], expected: Option<u64>) {
        let mut progress = ShardProgress::default();
        let mut marks = Vec::new();
        for step in steps {
            match step {
                Seen(sequence) => progress.seen(3, *sequence),
                Began(sequence) => marks.push(progress.began(3, *sequence, NOW)),
                Finished(began) => progress.finished(marks[*began]),
                Opened(sequence) => progress.opened(session(*sequence)),
            }
        }
        assert_eq!(progress.safe_sequence(3), expected);
        assert_eq!(progress.safe_sequence(4), None);
    }

    #[test]
    fn the_safe_sequence_lies_below_all_open_work() {
        check(&[], None);
        check(&[Seen(7)], Some(7));
        check(&[Seen(7), Began(8), Seen(9)], Some(7));
        check(&[Began(8), Began(10), Finished(1)], Some(7));
        check(&[Began(8), Began(10), Finished(0)], Some(9));
        check(&[Began(8), Finished(0), Seen(12)], Some(12));
        check(&[Began(8), Began(8), Finished(0)], Some(7));
        check(&[Began(8), Began(8), Finished(0), Finished(1)], Some(8));
        check(&[Seen(9), Seen(5)], Some(9));
    }

    #[test]
    fn a_fresh_session_is_not_held_up_by_the_one_before() {
        check(&[Opened(40)], Some(40));
        check(&[Began(800), Opened(1), Seen(2)], Some(2));
        check(&[Began(2), Opened(0), Began(2), Finished(0)], Some(1));
        check(&[Began(2), Opened(0), Began(2), Finished(1)], Some(2));
    }

    #[test]
    fn sessions_are_kept_at_their_safe_sequence() {
        let mut progress = ShardProgress::default();
        progress.seen(0, 9);
        progress.opened(session(40));
        let first = progress.began(3, 41, NOW);
        progress.caught_up(first);
        progress.began(3, 42, UnixMillis(NOW.0 + 1));
        let since = |progress: &ShardProgress| progress.sessions()[0].unfinished_since;
        assert_eq!(since(&progress), Some(NOW.0));
        progress.finished(first);
        progress.seen(3, 43);
        let unfinished = ShardSession {
            unfinished_since: Some(NOW.0 + 1),
            ..session(41)
        };
        assert_eq!(progress.sessions(), [unfinished]);
    }

    #[test]
    fn until_what_was_missed_is_caught_up_no_session_is_noted() {
        let mut progress = ShardProgress::default();
        progress.opened(session(40));
        progress.connected(3);
        let ready = progress.began(3, 41, NOW);
        progress.finished(ready);
        assert_eq!(progress.sessions(), []);
        progress.opened(session(41));
        progress.caught_up(ready);
        assert_eq!(progress.sessions(), [], "that was another session");
        let ready = progress.began(3, 42, NOW);
        progress.finished(ready);
        progress.caught_up(ready);
        assert_eq!(progress.sessions(), [session(42)]);
    }

    #[test]
    fn an_outage_is_noted_until_it_is_caught_up() {
        let (guild, heard) = (GuildId::new(7), UnixMillis(NOW.0 - 5));
        let mut progress = ShardProgress::default();
        progress.resumes(session(40));
        progress.connected(3);
        progress.heard(3, heard);
        progress.outage(3, guild, NOW);
        progress.outage(3, guild, UnixMillis(NOW.0 + 9));
        let noted = progress.sessions();
        assert_eq!(noted[0].outages, [(guild, heard.0)].into());
        // The next process resumes, and the server comes.
        let mut next = ShardProgress::from(noted);
        let came = next.began(3, 41, NOW);
        assert_eq!(next.outage_over(3, guild), Some(heard));
        next.behind(came);
        next.finished(came);
        assert_eq!(next.sessions(), [], "what was noted stays");
        next.caught_up(came);
        assert_eq!(next.sessions()[0].outages, BTreeMap::new());
    }

    #[test]
    fn shards_of_another_number_make_up_for_what_was_unfinished() {
        let of = |shard, shards| ShardSession {
            shard,
            shards,
            ..session(1)
        };
        let mut progress = ShardProgress::default();
        progress.opened(of(0, 2));
        progress.opened(of(1, 2));
        progress.began(0, 2, UnixMillis(NOW.0 + 2));
        progress.disconnected(1, UnixMillis(NOW.0 + 1));
        for shard in 0..3 {
            progress.opened(of(shard, 3));
            assert_eq!(progress.connected(shard), Some(UnixMillis(NOW.0 + 1)));
        }
        // The server's id is that of shard 1 of 2, and of shard 0 of 3.
        let guild = GuildId::new(3 << 22);
        progress.outage(0, guild, UnixMillis(NOW.0 + 3));
        progress.opened(of(0, 2));
        progress.opened(of(1, 2));
        assert_eq!(progress.connected(0), None, "all was finished");
        assert_eq!(progress.outage_over(0, guild), None);
        assert_eq!(progress.outage_over(1, guild), Some(UnixMillis(NOW.0 + 3)));
    }

    #[test]
    fn a_broken_connection_is_unfinished_until_it_is_back() {
        let mut progress = ShardProgress::default();
        let broken = |since| ShardSession {
            unfinished_since: since,
            ..session(40)
        };
        progress.resumes(broken(None));
        progress.disconnected(3, NOW);
        progress.disconnected(3, UnixMillis(NOW.0 + 1));
        assert_eq!(progress.sessions(), [broken(Some(NOW.0))]);
        assert_eq!(progress.connected(3), Some(NOW));
        assert_eq!(progress.sessions(), [broken(None)]);
        assert_eq!(progress.connected(3), None);
    }

    #[test]
    fn what_is_newer_than_all_that_came_is_unfinished_whatever_our_clock_says() {
        let mut progress = ShardProgress::default();
        let heard = |since| ShardSession {
            unfinished_since: Some(since),
            ..session(40)
        };
        progress.resumes(heard(7));
        progress.connected(3);
        assert_eq!(progress.sessions(), [heard(7)], "nothing came since");
        progress.heard(3, UnixMillis(9));
        progress.heard(3, UnixMillis(8));
        assert_eq!(progress.sessions(), [heard(9)]);
        progress.disconnected(3, NOW);
        assert_eq!(progress.sessions(), [heard(9)]);
        assert_eq!(progress.connected(3), Some(UnixMillis(9)));
        progress.heard(3, UnixMillis(NOW.0 + 9));
        progress.disconnected(3, NOW);
        assert_eq!(progress.connected(3), Some(NOW), "our clock is behind");
    }
}
