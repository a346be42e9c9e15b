//! Catching up: what people asked while nobody listened is looked for in the channels. Here is
//! decided where, in which order and how much; the dispatcher asks Discord.
//!
//! A round begins with a fresh session that follows an earlier one, and lasts until all that it
//! found is answered. Until then the note of the session before stays (see `ShardProgress`), so
//! that a process that is killed meanwhile leaves the round to the next.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::CatchUpConfig;
use crate::telemetry::event::{CaughtBy, CaughtUp};
use clew_context::model::{ChannelId, GuildId, Message, MessageId, UnixMillis, UserId};
use clew_discord::session::Mark;

/// A dead connection shows within two heartbeats (41 seconds each), and clocks differ.
const SLACK: Duration = Duration::from_mins(2);
/// How long a shard's servers may take to come after READY...
const PATIENCE: Duration = Duration::from_mins(1);
/// ...and how long the pages of those that came wait for the others, to be fair to them.
const GATHERING: Duration = Duration::from_secs(10);
/// How many requests run at once.
const AT_ONCE: usize = 4;
/// The most questions that one round finds: of all, of a server, and of a person.
const MOST_FOUND: usize = 1_000;
const MOST_OF_GUILD: usize = 200;
const MOST_OF_PERSON: usize = 20;
/// The most edits that are kept during a round; what is edited beyond is not asked.
const MOST_EDITS: usize = 1_000;

/// Since when the process before was not heard, and the round that makes up for it.
#[derive(Debug)]
pub(super) struct CatchUp {
    settings: CatchUpConfig,
    /// Until when the process before had heard and handled everything.
    before: Option<UnixMillis>,
    /// Since when the round looks that was under way when the number of shards changed.
    carried: Option<UnixMillis>,
    /// Shards that have had a session in this process.
    met: HashSet<u32>,
    round: Option<Round>,
}

#[derive(Debug)]
struct Round {
    shards: BTreeMap<u32, Expected>,
    /// Where to look; servers take turns, and direct messages count as one of them.
    places: VecDeque<(Option<GuildId>, VecDeque<Look>)>,
    /// The most pages to read.
    most: usize,
    /// Requests that run.
    running: usize,
    /// How much was found of a server, or in direct messages, and of a person.
    of_guilds: HashMap<Option<GuildId>, usize>,
    of_people: HashMap<UserId, usize>,
    found: BTreeMap<MessageId, Message>,
    /// Found, and what their askers may do is being looked up.
    asking: BTreeMap<MessageId, Message>,
    /// What became meanwhile of messages: their new form, or nothing.
    changed: HashMap<MessageId, Option<Box<Message>>>,
    edits: usize,
    /// Messages that ours reply to.
    answered: HashSet<MessageId>,
    /// Questions whose turns are not over.
    under_way: HashSet<MessageId>,
    counts: CaughtUp,
}

/// What a shard's fresh session has to bring yet.
#[derive(Debug)]
pub(super) struct Expected {
    /// Its READY.
    pub(super) mark: Mark,
    /// What is older was heard, or is too old to matter.
    pub(super) since: UnixMillis,
    pub(super) guilds: HashSet<GuildId>,
    /// When READY came: servers that have not come long after are out of order.
    ready: Instant,
}

/// A page to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// None for direct messages.
    pub(super) guild: Option<GuildId>,
    pub(super) channel: ChannelId,
    /// The page begins behind this id.
    pub(super) after: MessageId,
    /// What is newer than this comes by the session. None if Discord did not say.
    pub(super) newest: Option<MessageId>,
}

impl Look {
    /// Whether a message was missed, rather than to come by the session yet.
    pub(super) fn is_missed(&self, message: MessageId) -> bool {
        self.newest.is_none_or(|newest| message <= newest)
    }
}

impl CatchUp {
    pub(super) fn new(settings: CatchUpConfig, before: Option<UnixMillis>) -> Self {
        Self {
            settings,
            before,
            carried: None,
            met: HashSet::new(),
            round: None,
        }
    }

    /// Whether something is being caught up.
    pub(super) const fn is_on(&self) -> bool {
        self.round.is_some()
    }

    /// The round, which begins if there is none.
    fn round(&mut self) -> &mut Round {
        let most = self.settings.max_fetches;
        self.round.get_or_insert_with(|| Round::new(most))
    }

    /// The session went on, so nothing was missed. Returns whether it is the one of an earlier
    /// process.
    pub(super) fn resumed(&mut self, shard: u32) -> bool {
        self.met.insert(shard)
    }

    /// There are so many shards in place of others: a server may be any one's now.
    pub(super) fn renumbered(&mut self, shards: u32) {
        self.met.extend(0..shards);
        if let Some(round) = &mut self.round {
            self.carried = round.since().into_iter().chain(self.carried).min();
            round.shards.clear();
        }
    }

    /// A fresh session begins after one that was not heard since then. Returns whether there is
    /// something to catch up: if an earlier session is known. Questions that are under way are
    /// not replayed either.
    pub(super) fn identified(
        &mut self,
        mark: Mark,
        unheard: Option<UnixMillis>,
        guilds: &[GuildId],
        under_way: impl IntoIterator<Item = MessageId>,
        (now, at): (UnixMillis, Instant),
    ) -> bool {
        let shard = mark.shard();
        let is_first = self.met.insert(shard);
        let unheard = unheard.filter(|_| !is_first);
        let unheard = unheard.into_iter().chain(self.carried).min();
        let before = self.before.filter(|_| is_first);
        let round = self.round.as_ref();
        // READY may come twice.
        let again = round.and_then(|round| Some(round.shards.get(&shard)?.since));
        let since = unheard.or(before).filter(|_| self.settings.is_on());
        let since = since.map(|since| self.settings.looks_from(since, now));
        let Some(since) = since.into_iter().chain(again).min() else {
            return false;
        };
        let most = self.settings.max_fetches;
        let round = self.round();
        if unheard.is_some() {
            round.most = round.counts.fetches + most;
        }
        let expected = Expected {
            mark,
            since,
            guilds: guilds.iter().copied().collect(),
            ready: at,
        };
        round.shards.insert(shard, expected);
        round.under_way.extend(under_way);
        true
    }

    /// A server has come, maybe after an outage. Returns since when to look there, if at all.
    pub(super) fn guild_came(
        &mut self,
        shard: u32,
        guild: GuildId,
        outage: Option<UnixMillis>,
        now: UnixMillis,
    ) -> Option<UnixMillis> {
        let outage = outage.filter(|_| self.settings.is_on());
        let outage = outage.map(|since| self.settings.looks_from(since, now));
        let round = self.round.as_mut();
        let of_shard = round.and_then(|round| {
            let expected = round.shards.get_mut(&shard)?;
            expected.guilds.remove(&guild).then_some(expected.since)
        });
        of_shard.into_iter().chain(outage).min()
    }

    /// What a session missed by an outage is part of this round, if there is anything to look at.
    /// Returns whether there is.
    pub(super) fn includes(&mut self, mark: Mark, since: UnixMillis, at: Instant) -> bool {
        let Some(round) = &mut self.round else {
            return false;
        };
        round.shards.entry(mark.shard()).or_insert(Expected {
            mark,
            since,
            guilds: HashSet::new(),
            ready: at,
        });
        true
    }

    /// Since when to look for direct messages, which are shard 0's.
    pub(super) fn direct_since(&self) -> Option<UnixMillis> {
        Some(self.round.as_ref()?.shards.get(&0)?.since)
    }

    /// Has channels looked at, the first one first, each up to its newest message if that is
    /// known.
    pub(super) fn look_at(
        &mut self,
        guild: Option<GuildId>,
        channels: impl IntoIterator<Item = (ChannelId, Option<MessageId>)>,
        since: UnixMillis,
    ) {
        let looks = channels.into_iter().map(|(channel, newest)| Look {
            guild,
            channel,
            after: MessageId::first_at(since),
            newest,
        });
        let looks: VecDeque<Look> = looks.collect();
        if !looks.is_empty() {
            let round = self.round();
            round.counts.channels += looks.len();
            round.places.push_back((guild, looks));
        }
    }

    /// A request begins that is no page.
    pub(super) fn began(&mut self) {
        if let Some(round) = &mut self.round {
            round.running += 1;
        }
    }

    pub(super) fn ended(&mut self) {
        if let Some(round) = &mut self.round {
            round.running = round.running.saturating_sub(1);
        }
    }

    /// The next page to read now, if any.
    pub(super) fn next(&mut self, at: Instant) -> Option<Look> {
        let round = self.round.as_mut()?;
        let is_full = round.running >= AT_ONCE || round.counts.fetches >= round.most;
        if is_full || !round.has_come(at, GATHERING) {
            return None;
        }
        let (guild, mut looks) = round.places.pop_front()?;
        let look = looks.pop_front();
        if !looks.is_empty() {
            round.places.push_back((guild, looks));
        }
        round.running += 1;
        round.counts.fetches += 1;
        look
    }

    /// A page was read up to a message, behind which there may be more.
    pub(super) fn goes_on(&mut self, look: Look, after: MessageId) {
        let Some(round) = &mut self.round else { return };
        let look = Look { after, ..look };
        let mut places = round.places.iter_mut();
        match places.find(|(guild, _)| *guild == look.guild) {
            Some((_, looks)) => looks.push_back(look),
            None => round.places.push_back((look.guild, [look].into())),
        }
    }

    /// A page could not be read.
    pub(super) fn failed(&mut self) {
        if let Some(round) = &mut self.round {
            round.counts.failed += 1;
        }
    }

    /// A message of ours replies to this one.
    pub(super) fn answered(&mut self, question: MessageId) {
        if let Some(round) = &mut self.round {
            round.answered.insert(question);
        }
    }

    pub(super) fn found(&mut self, question: Message, now: UnixMillis) {
        let Some(round) = &mut self.round else { return };
        let of_guild = round.of_guilds.entry(question.guild).or_default();
        let of_person = round.of_people.entry(question.author.id).or_default();
        if question.id.created() < now.before(self.settings.within) {
            round.counts.too_old += 1;
            return;
        }
        if round.found.len() >= MOST_FOUND
            || *of_guild >= MOST_OF_GUILD
            || *of_person >= MOST_OF_PERSON
        {
            round.counts.too_many += 1;
            return;
        }
        *of_guild += 1;
        *of_person += 1;
        round.found.insert(question.id, question);
    }

    /// Whether a question was found that is still to be asked.
    pub(super) fn knows(&self, id: MessageId) -> bool {
        let round = self.round.as_ref();
        round.is_some_and(|one| one.found.contains_key(&id) || one.asking.contains_key(&id))
    }

    /// Messages are deleted, or nobody knows how they read now.
    pub(super) fn gone(&mut self, ids: &[MessageId]) {
        if let Some(round) = &mut self.round {
            let ids = ids.iter().filter(|id| round.may_be_asked(**id));
            let gone: Vec<_> = ids.map(|id| (*id, None)).collect();
            round.changed.extend(gone);
        }
    }

    /// The messages that were found and may be asked.
    pub(super) fn candidates(&self) -> impl Iterator<Item = &Message> {
        let rounds = self.round.iter();
        rounds.flat_map(|round| round.found.values().chain(round.asking.values()))
    }

    /// A message reads otherwise now.
    pub(super) fn edited(&mut self, message: &Message) {
        let Some(round) = &mut self.round else { return };
        let is_gone = matches!(round.changed.get(&message.id), Some(None));
        if !is_gone && round.may_be_asked(message.id) {
            round.edits += 1;
            let edit = (round.edits <= MOST_EDITS).then(|| Box::new(message.clone()));
            round.changed.insert(message.id, edit);
        }
    }

    /// Once all pages are read: the questions without an answer, oldest first.
    pub(super) fn questions(&mut self) -> Vec<&Message> {
        let Some(round) = self.round.as_mut().filter(|round| round.is_read()) else {
            return Vec::new();
        };
        let mut open = std::mem::take(&mut round.found);
        open.retain(|id, _| !round.answered.contains(id));
        let ids: Vec<MessageId> = open.keys().copied().collect();
        round.asking.append(&mut open);
        ids.iter().filter_map(|id| round.asking.get(id)).collect()
    }

    /// A question as it reads by now, unless it is gone or too old by now.
    pub(super) fn take(&mut self, question: MessageId, now: UnixMillis) -> Option<Message> {
        let round = self.round.as_mut()?;
        let read = round.asking.remove(&question)?;
        if question.created() < now.before(self.settings.within) {
            round.counts.too_old += 1;
            return None;
        }
        match round.changed.remove(&question) {
            None => Some(read),
            Some(None) => None,
            Some(Some(edit)) if edit.edited < read.edited => Some(read),
            Some(Some(edit)) => Some(Message {
                guild: read.guild,
                ..*edit
            }),
        }
    }

    /// It was asked, and its turn waits or runs.
    pub(super) fn asked(&mut self, question: MessageId) {
        if let Some(round) = &mut self.round {
            round.counts.questions += 1;
            round.under_way.insert(question);
        }
    }

    /// A turn is over.
    pub(super) fn turn_ended(&mut self, question: MessageId, is_answered: bool) {
        if let Some(round) = &mut self.round
            && round.under_way.remove(&question)
        {
            round.counts.answered += usize::from(is_answered);
        }
    }

    /// What was caught up, once there is nothing left to do. Questions that are not under way any
    /// more are over, too.
    pub(super) fn over(
        &mut self,
        at: Instant,
        is_under_way: impl Fn(MessageId) -> bool,
    ) -> Option<(Vec<Expected>, CaughtUp)> {
        let round = self.round.as_mut()?;
        round.under_way.retain(|id| is_under_way(*id));
        let is_over = round.is_read()
            && round.found.is_empty()
            && round.under_way.is_empty()
            && round.has_come(at, PATIENCE);
        if !is_over {
            return None;
        }
        let round = self.round.take()?;
        self.carried = None;
        let unread: usize = round.places.iter().map(|(_, looks)| looks.len()).sum();
        let counts = CaughtUp {
            unread,
            ..round.counts
        };
        Some((round.shards.into_values().collect(), counts))
    }
}

impl Round {
    fn new(most: usize) -> Self {
        Self {
            most,
            of_guilds: HashMap::new(),
            of_people: HashMap::new(),
            shards: BTreeMap::new(),
            places: VecDeque::new(),
            running: 0,
            found: BTreeMap::new(),
            asking: BTreeMap::new(),
            changed: HashMap::new(),
            edits: 0,
            answered: HashSet::new(),
            under_way: HashSet::new(),
            counts: CaughtUp::nothing(CaughtBy::Pages),
        }
    }

    /// Nothing is being read, and nothing more will be.
    fn is_read(&self) -> bool {
        self.running == 0 && (self.places.is_empty() || self.counts.fetches >= self.most)
    }

    /// Whether all servers came, or no more are waited for.
    fn has_come(&self, at: Instant, patience: Duration) -> bool {
        let mut shards = self.shards.values();
        shards.all(|of| of.guilds.is_empty() || of.ready + patience <= at)
    }

    /// Since when it is looked.
    fn since(&self) -> Option<UnixMillis> {
        self.shards.values().map(|of| of.since).min()
    }

    /// Whether a message is new enough to be looked for.
    fn may_be_asked(&self, id: MessageId) -> bool {
        self.since().is_none_or(|since| id.created() >= since)
    }
}

impl CatchUpConfig {
    const fn is_on(&self) -> bool {
        !self.within.is_zero()
    }

    /// From when on to look for what was not heard since then. Twice as far back as questions
    /// are answered, to tell how many were too old.
    fn looks_from(&self, unheard: UnixMillis, now: UnixMillis) -> UnixMillis {
        unheard.before(SLACK).max(now.before(self.within * 2))
    }
}

#[cfg(test)]
mod tests;
