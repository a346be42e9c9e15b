//! Catching up with what was asked while nobody listened; see [`CatchUp`].
//!
//! [`CatchUp`]: super::super::catch_up::CatchUp

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::super::catch_up::{Expected, Look};
use super::super::loop_event::{CatchUpNews, LoopEvent};
use super::Dispatcher;
use crate::telemetry::event::{CaughtBy, CaughtUp, Refusal};
use crate::turn::Services;
use crate::turn::patience::patiently;
use clew_context::collect::{MessagePage, PageCursor};
use clew_context::discord::error::RestError;
use clew_context::engine::route::{RouteFacts, Rules, Verdict, route};
use clew_context::model::{
    AccessRules, Author, ChannelId, ChannelKind, GuildId, Message, MessageId, Referenced, RoleId,
    TurnId, TurnRequest, UnixMillis,
};
use clew_discord::event::Ready;
use clew_discord::session::Mark;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Waits, in seconds, before Discord or the store is asked again that is out of order.
const PAUSES: [u64; 5] = [1, 5, 20, 60, 120];
/// How often to look whether a round is over.
const TICK: Duration = Duration::from_secs(1);
/// The most direct conversations that are looked at: Discord lists none, so each costs a
/// request.
const DIRECT: usize = 25;

impl Dispatcher {
    /// A fresh session begins: looks for what was missed before it.
    pub(super) fn catch_up(&mut self, ready: &Ready, mark: Mark, unheard: Option<UnixMillis>) {
        let posted =
            |request: &TurnRequest| request.cause.is_posted().then_some(request.trigger.id);
        let waiting = self.queues.waiting_mut();
        let waiting: Vec<MessageId> = waiting.filter_map(|one| posted(&one.request)).collect();
        let running = self
            .active
            .iter()
            .filter(|(_, active)| active.run.is_none());
        let under_way: Vec<MessageId> = running
            .map(|(id, _)| *id)
            .chain(waiting)
            .chain(self.unqueued())
            .collect();
        let was_on = self.catch_up.is_on();
        let now = (self.services.memory.now(), Instant::now());
        if !self
            .catch_up
            .identified(mark, unheard, &ready.guilds, under_way, now)
        {
            self.progress().caught_up(mark);
            return;
        }
        if !was_on {
            self.tick();
        }
        if mark.shard() == 0 {
            self.catch_up.began();
            let (services, loop_events) = self.for_task();
            let stopped = self.stopped.clone();
            self.tracker.spawn(async move {
                let direct = stopped.run_until_cancelled(recent_direct(&services)).await;
                tell(&loop_events, CatchUpNews::Direct(direct.flatten()));
            });
        }
    }

    /// Questions that wait for an app's copy, or for their channel to be looked up.
    fn unqueued(&self) -> impl Iterator<Item = MessageId> {
        self.holds.waiting().chain(self.unplaced.keys().copied())
    }

    /// A server has come: looks at its channels, the most recent first.
    pub(super) fn catch_up_guild(
        &mut self,
        mark: Mark,
        guild: GuildId,
        mut newest: Vec<(ChannelId, MessageId)>,
    ) {
        let (was_on, now) = (self.catch_up.is_on(), self.services.memory.now());
        let outage = self.progress().outage_over(mark.shard(), guild);
        if outage.is_some() {
            // What was read and confirmed during it may have been deleted before its end.
            self.guild_lost(guild);
        }
        let Some(since) = self.catch_up.guild_came(mark.shard(), guild, outage, now) else {
            return;
        };
        let guild_state = &self.services.guild_state;
        newest.retain(|(channel, newest)| {
            // Of a forum it is the newest post, which is a thread of its own.
            let known = guild_state.kind_and_parent(*channel);
            newest.created() >= since
                && known.is_some_and(|(kind, _)| !kind.is_forum())
                && guild_state.our_access(*channel).may_read()
        });
        newest.sort_unstable_by_key(|(_, newest)| std::cmp::Reverse(*newest));
        let channels = newest.into_iter();
        let channels = channels.map(|(channel, newest)| (channel, Some(newest)));
        self.catch_up.look_at(Some(guild), channels, since);
        if outage.is_some() && self.catch_up.includes(mark, since, Instant::now()) {
            self.progress().behind(mark);
        }
        if !was_on && self.catch_up.is_on() {
            self.tick();
        }
        self.read_missed();
    }

    /// A session of an earlier process, or of this one, went on.
    pub(super) fn caught_up_by_resuming(&mut self, shard: u32) {
        let is_first = self.catch_up.resumed(shard);
        let questions = self.replayed.remove(&shard).unwrap_or(0);
        if is_first || questions > 0 {
            self.emit(CaughtUp {
                questions,
                ..CaughtUp::nothing(CaughtBy::Resume)
            });
        }
    }

    /// Handles what a round's requests have brought.
    pub(in crate::app) fn catch_up_goes_on(&mut self, news: CatchUpNews) {
        match news {
            CatchUpNews::Direct(channels) => {
                self.catch_up.ended();
                match self.catch_up.direct_since().zip(channels) {
                    Some((since, channels)) => {
                        let channels = channels.into_iter().map(|channel| (channel, None));
                        self.catch_up.look_at(None, channels, since);
                    }
                    None => self.catch_up.failed(),
                }
            }
            CatchUpNews::Filled(mark, guild, newest) => self.catch_up_guild(mark, guild, newest),
            CatchUpNews::Page(look, page) => self.page_read(look, page),
            CatchUpNews::Ask(question, roles) => self.ask_again(question, roles),
            CatchUpNews::Asked => self.catch_up.ended(),
            CatchUpNews::Tick if self.catch_up.is_on() => self.tick(),
            CatchUpNews::Tick => {}
        }
        self.read_missed();
    }

    fn tick(&self) {
        let (loop_events, stopped) = (self.loop_events.clone(), self.stopped.clone());
        tokio::spawn(async move {
            if stopped.run_until_cancelled(sleep(TICK)).await.is_some() {
                tell(&loop_events, CatchUpNews::Tick);
            }
        });
    }

    /// Does what is to be done next.
    pub(super) fn read_missed(&mut self) {
        if self.closed || !self.catch_up.is_on() {
            return;
        }
        while let Some(look) = self.catch_up.next(Instant::now()) {
            let (services, loop_events) = self.for_task();
            let stopped = self.stopped.clone();
            self.tracker.spawn(async move {
                let page = stopped.run_until_cancelled(missed_page(&services, look));
                let page = page.await.flatten();
                tell(&loop_events, CatchUpNews::Page(look, page));
            });
        }
        self.ask_missed();
        let mut waiting: Vec<MessageId> = self.unqueued().collect();
        let (active, queues) = (&self.active, &mut self.queues);
        waiting.extend(queues.waiting_mut().map(|one| one.request.trigger.id));
        let is_under_way = |id| active.contains_key(&id) || waiting.contains(&id);
        if let Some((sessions, counts)) = self.catch_up.over(Instant::now(), is_under_way) {
            for Expected {
                mark,
                since,
                guilds,
                ..
            } in sessions
            {
                let mut progress = self.progress();
                for guild in guilds {
                    progress.outage(mark.shard(), guild, since);
                }
                progress.caught_up(mark);
            }
            self.forget_arrivals();
            self.emit(counts);
        }
    }

    fn page_read(&mut self, look: Look, page: Option<MessagePage>) {
        self.catch_up.ended();
        let Some(page) = page else {
            self.catch_up.failed();
            return;
        };
        let last = page.messages.last().filter(|_| !page.complete);
        if let Some(last) = last.filter(|last| look.is_missed(last.id)) {
            self.catch_up.goes_on(look, last.id);
        }
        let us = self.services.us(look.guild);
        // Who may ask is judged once the roles are known.
        let rules = Rules {
            access: AccessRules::default(),
            ..self.rules.clone()
        };
        for message in page.messages {
            if us.wrote(&message) {
                // What a claim knows better does not go by this.
                let claims = &self.services.claims;
                let question = message.replies_to().filter(|id| !claims.is_known(*id));
                if let Some(question) = question.filter(|_| !claims.explains(message.id)) {
                    self.catch_up.answered(question);
                }
                continue;
            }
            let message = Message {
                guild: look.guild,
                ..message
            };
            self.see_app(&message, &us);
            let asks = || {
                let facts = self.missed_facts(&message, None);
                matches!(route(&message, &us, &rules, facts), Verdict::Turn(_))
            };
            if look.is_missed(message.id)
                && us.is_person(&message)
                && asks()
                && !self.services.claims.is_taken(message.id)
                // What became of it tells the turn of its original, which may still run.
                && !self.holds.knows(message.id)
            {
                let question = message.id;
                self.catch_up.found(message, self.services.memory.now());
                if self.catch_up.knows(question) {
                    self.arrived(TurnId(question.get()));
                }
            }
        }
    }

    /// Looks up what the askers may do, and has them answered in their order.
    fn ask_missed(&mut self) {
        let questions = self.catch_up.questions().into_iter();
        let questions = questions.map(|one| (one.id, one.guild, one.author.clone()));
        let questions: Vec<_> = questions.collect();
        if questions.is_empty() {
            return;
        }
        self.catch_up.began();
        let (services, loop_events) = self.for_task();
        let stopped = self.stopped.clone();
        self.tracker.spawn(async move {
            let mut known = HashMap::new();
            for (question, guild, asker) in questions {
                if let Entry::Vacant(unknown) = known.entry((guild, asker.id)) {
                    let found = stopped.run_until_cancelled(roles(&services, guild, &asker));
                    let Some(found) = found.await else { return };
                    unknown.insert(found);
                }
                match &known[&(guild, asker.id)] {
                    Ok(roles) => {
                        tell(&loop_events, CatchUpNews::Ask(question, roles.clone()));
                    }
                    Err(error) => tracing::warn!(%error, trigger = %question,
                        "a question that was missed is not answered: its asker's roles are unknown"),
                }
            }
            tell(&loop_events, CatchUpNews::Asked);
        });
    }

    fn ask_again(&mut self, question: MessageId, roles: Option<Vec<RoleId>>) {
        let now = self.services.memory.now();
        let Some(message) = self.catch_up.take(question, now) else {
            return;
        };
        let us = self.services.us(message.guild);
        let facts = self.missed_facts(&message, roles.as_deref());
        let channel_kind = facts.kind;
        match route(&message, &us, &self.rules, facts) {
            Verdict::Turn(cause) => {
                // What it replies to may have changed since its page was read.
                let trigger = Message {
                    referenced: Referenced::Absent,
                    ..message
                };
                let request = TurnRequest {
                    trigger: Arc::new(trigger),
                    channel_kind,
                    asker_roles: roles,
                    cause,
                    is_private: false,
                };
                if self.submit_after(request, None, true) {
                    self.catch_up.asked(question);
                }
            }
            Verdict::Denied(denied) => {
                let ids = self.ids(&message);
                self.emit_refused(&ids, Refusal::NotAllowed, Some(denied));
            }
            Verdict::Ignore | Verdict::NoContent => {}
        }
    }

    /// What is known of a message that was read from a page.
    fn missed_facts<'a>(&self, message: &Message, roles: Option<&'a [RoleId]>) -> RouteFacts<'a> {
        let known = self.services.guild_state.kind_and_parent(message.channel);
        let (kind, parent) = known.unzip();
        let kind = kind.or_else(|| message.guild.is_none().then_some(ChannelKind::Dm));
        self.facts(message, kind, parent.flatten(), roles)
    }

    pub(super) fn for_task(&self) -> (Arc<Services>, mpsc::UnboundedSender<LoopEvent>) {
        (Arc::clone(&self.services), self.loop_events.clone())
    }
}

/// The loop is gone only when the process ends.
pub(super) fn tell(loop_events: &mpsc::UnboundedSender<LoopEvent>, news: CatchUpNews) {
    let _ = loop_events.send(LoopEvent::CatchUp(news));
}

/// Where direct messages were written, or nothing if the store does not say.
async fn recent_direct(services: &Services) -> Option<Vec<ChannelId>> {
    let list = || async { services.memory.recent_direct(DIRECT).await.ok_or(()) };
    patiently(pauses(), list, |()| true).await.ok()
}

/// A page, or none if it cannot be read.
async fn missed_page(services: &Services, look: Look) -> Option<MessagePage> {
    let (reader, cursor) = (services.rest.reader(), PageCursor::After(look.after));
    let read = || reader.missed_page(look.channel, cursor, soon());
    let page = patiently(pauses(), read, may_pass)
        .await
        .inspect_err(|error| {
            tracing::warn!(channel = %look.channel, %error,
            "questions that were missed there cannot be looked for");
        });
    page.ok()
}

/// The roles of an asker: nobody has any outside of servers, and a webhook has none.
async fn roles(
    services: &Services,
    guild: Option<GuildId>,
    asker: &Author,
) -> Result<Option<Vec<RoleId>>, RestError> {
    let Some(guild) = guild else { return Ok(None) };
    if asker.webhook {
        return Ok(Some(Vec::new()));
    }
    let reader = services.rest.reader();
    let read = || reader.member_roles(guild, asker.id, soon());
    patiently(pauses(), read, may_pass).await.map(Some)
}

/// When a request has to be answered that begins now.
fn soon() -> Instant {
    Instant::now() + REQUEST_TIMEOUT
}

/// Whether Discord is out of order, and will do later what it did not do now.
fn pauses() -> impl Iterator<Item = Duration> {
    PAUSES.into_iter().map(Duration::from_secs)
}

const fn may_pass(error: &RestError) -> bool {
    error.transient || error.reason.is_unanswered()
}
