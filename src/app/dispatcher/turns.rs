//! Turns: queueing, starting, giving orders and ending.

use std::collections::BTreeSet;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::loop_event::{LoopEvent, TurnEnd};
use super::super::queues::{Full, QueueKey, Submitted};
use super::super::restarts::Restarts;
use super::super::shares::{Requester, Tenant};
use super::Dispatcher;
use crate::commands::{Steer, Steered};
use crate::memory::UnderWay;
use crate::model::{Again, Payer, Spender};
use crate::runs::{Activity, Run, RunSlot};
use crate::telemetry::Ids;
use crate::telemetry::event::{Outcome, Refusal};
use crate::turn::{self, Control, Elsewhere, Extraction, Order, Orders, Services, TurnJob};
use clew_context::engine::admission::{Admission, admit};
use clew_context::model::{
    ChannelId, ChannelKind, InteractionId, Message, MessageId, TurnId, TurnRequest, UnixMillis,
    UserId,
};
use clew_discord::session::Mark;

/// When a trigger came that is not queued yet, since its channel is looked up or an app may post
/// a copy of it.
#[derive(Debug)]
pub(super) struct Arrival {
    /// By memory's clock.
    asked: UnixMillis,
    /// What is deleted or edited from then on is noted for it.
    under_way: UnderWay,
}

#[derive(Debug)]
pub(super) struct WaitingTrigger {
    pub(super) request: TurnRequest,
    came: Instant,
    /// The same by memory's clock.
    asked: UnixMillis,
    pub(super) mark: Option<Mark>,
    /// What is deleted or edited from now on is noted for it.
    under_way: UnderWay,
    /// The answer that is given anew, if one is.
    again: Option<Again>,
}

impl WaitingTrigger {
    /// Whether its question had an answer, which it is to give anew.
    pub(super) fn is_anew(&self) -> bool {
        self.again.is_some()
    }
}

/// A turn that runs.
#[derive(Debug)]
pub(super) struct ActiveTurn {
    /// None for what keeps nobody waiting: an agent run, and a turn that waited for people.
    pub(super) queue: Option<QueueKey>,
    since: UnixMillis,
    pub(super) orders: Orders,
    /// The trigger as it is being asked, or will be.
    pub(super) trigger: Arc<Message>,
    pub(super) payer: Payer,
    pub(super) restarts: Restarts,
    mark: Option<Mark>,
    pub(super) run: Option<Arc<Run>>,
    pub(super) activity: Arc<Activity>,
    /// Its question had an answer, which it gives anew.
    pub(super) is_anew: bool,
}

/// A turn that begins.
struct StartingTurn {
    waiting: WaitingTrigger,
    /// Whether it had to wait.
    waited: bool,
    queue: Option<QueueKey>,
    run: Option<RunSlot>,
    orders: Orders,
    control: Control,
}

impl Dispatcher {
    /// Queues a trigger. Returns whether a turn began or waits for it.
    pub(in crate::app) fn submit(&mut self, request: TurnRequest, mark: Option<Mark>) -> bool {
        self.submit_after(request, mark, false)
    }

    /// The same of a trigger that may have waited: messages came after it meanwhile.
    pub(super) fn submit_after(
        &mut self,
        request: TurnRequest,
        mark: Option<Mark>,
        waited: bool,
    ) -> bool {
        if self.closed {
            // It stays unfinished: the next process gets it again.
            self.stopping(&request);
            return true;
        }
        let (claims, id) = (&self.services.claims, request.trigger.id);
        let now = self.services.memory.system_now();
        if !claims.claim(id, id.created(), now) {
            return false;
        }
        if let Err(reason) = self.may_ask(self.payer(&request)) {
            self.refuse_request(&request, reason);
            return false;
        }
        let waiting = self.waiting(request, mark);
        self.queue(waiting, waited)
    }

    /// Queues what has been counted. Returns whether a turn began or waits for it.
    fn queue(&mut self, waiting: WaitingTrigger, waited: bool) -> bool {
        let (request, mark) = (&waiting.request, waiting.mark);
        let trigger = &request.trigger;
        let is_person = self.services.us(None).is_person(trigger);
        if !is_person && request.cause.interaction().is_none() {
            self.bot_turns.count(trigger.channel, trigger.guild);
        }
        let requester = self.requester(request);
        let queue = queue(request, requester.spender);
        match self.queues.submit(queue, requester, waiting.came, waiting) {
            Submitted::Starts(waiting) => self.start(queue, waiting, waited),
            Submitted::Waits => {}
            Submitted::Refused(waiting, full) => {
                self.refuse_request(&waiting.request, refusal(full));
                return false;
            }
            Submitted::Displaces(other, full) => {
                self.refuse_request(&other.request, refusal(full));
                if let Some(mark) = other.mark {
                    self.finished(mark);
                }
            }
        }
        if let Some(shard) = mark.map(|mark| mark.shard())
            && !self.connected.contains(&shard)
        {
            *self.replayed.entry(shard).or_default() += 1;
        }
        true
    }

    /// A trigger that is queued now, and may have come before.
    fn waiting(&mut self, request: TurnRequest, mark: Option<Mark>) -> WaitingTrigger {
        let arrival = self.arrivals.remove(&request.trigger.id);
        let arrival = arrival.unwrap_or_else(|| self.arrival(request.turn()));
        let Arrival { asked, under_way } = arrival;
        let (asker, written) = (request.asker(), request.trigger.id.created());
        let erased = self.services.claims.erased_since(asker, written);
        if let Some(at) = erased {
            self.services.memory.was_erased(asker, at);
        }
        WaitingTrigger {
            request,
            came: Instant::now(),
            asked: erased.map_or(asked, |_| written),
            mark,
            under_way,
            again: None,
        }
    }

    fn arrival(&self, turn: TurnId) -> Arrival {
        let memory = &self.services.memory;
        Arrival {
            asked: memory.now(),
            under_way: memory.noted().begins(Some(turn)),
        }
    }

    /// A trigger came that is not queued yet: it counts from now on.
    pub(super) fn arrived(&mut self, turn: TurnId) {
        let arrival = self.arrival(turn);
        self.arrivals.insert(MessageId::new(turn.0), arrival);
    }

    /// Whose share a turn counts towards.
    fn requester(&self, request: &TurnRequest) -> Requester {
        let Payer { spender, guild, .. } = self.payer(request);
        let tenant = guild.map_or(Tenant::Person(spender), Tenant::Guild);
        Requester {
            tenant,
            spender,
            channel: request.trigger.channel,
        }
    }

    pub(super) fn payer(&self, request: &TurnRequest) -> Payer {
        let guild = Ids::of(request).guild;
        let of_channel = || self.services.guild_state.guild_of(request.trigger.channel);
        let spender = self.services.spender(&request.trigger);
        let roles = request.asker_roles.as_deref();
        let memory = &self.services.memory;
        memory.payer(spender, guild.or_else(of_channel), roles)
    }

    fn start(&mut self, queue: QueueKey, waiting: WaitingTrigger, waited: bool) {
        let (orders, control) = Control::new();
        self.begin(StartingTurn {
            waiting,
            waited,
            queue: Some(queue),
            run: None,
            orders,
            control,
        });
    }

    /// Starts an agent run. At the end of the process it is interrupted at once.
    pub(in crate::app) fn start_run(&mut self, request: TurnRequest, slot: RunSlot) {
        let (orders, control) = Control::new();
        if self.closed {
            turn::abandon(&orders);
        } else if let Some(order) = self.run_orders.remove(&slot.run().id) {
            orders.send_replace(order);
        }
        let waiting = self.waiting(request, None);
        let until = waiting.came + self.services.settings.runs.time;
        self.begin(StartingTurn {
            waiting,
            waited: false,
            queue: None,
            run: Some(slot),
            orders,
            control: control.until(until),
        });
    }

    fn begin(&mut self, starting: StartingTurn) {
        let StartingTurn { waiting, run, .. } = starting;
        let request = waiting.request;
        let (channel, id) = (request.trigger.channel, request.trigger.id);
        let of_run = run.as_ref().map(|slot| Arc::clone(&slot.run().activity));
        let activity = of_run.unwrap_or_default();
        let active = ActiveTurn {
            queue: starting.queue,
            since: self.services.memory.now(),
            orders: starting.orders,
            trigger: Arc::clone(&request.trigger),
            payer: self.payer(&request),
            restarts: Restarts::default(),
            mark: waiting.mark,
            run: run.as_ref().map(|slot| Arc::clone(slot.run())),
            activity: Arc::clone(&activity),
            is_anew: waiting.again.is_some(),
        };
        self.active.insert(id, active);
        let other_triggers = self.other_triggers(channel, id);
        let copies = self.copies(&request.trigger);
        let job = TurnJob {
            request,
            came: waiting.came,
            asked: waiting.asked,
            noted: waiting.under_way.since,
            newest: match waiting.again {
                // What was said when it was asked.
                Some(_) => Some(id),
                None => self.services.window().newest(channel),
            },
            waited: starting.waited,
            other_triggers,
            copies,
            elsewhere: self.elsewhere(channel, id),
            left: self.services.claims.unfinished(id),
            run,
            again: waiting.again,
            activity,
        };
        let services = Arc::clone(&self.services);
        let loop_events = self.loop_events.clone();
        let report = ReportOnDrop {
            trigger: id,
            loop_events,
            outcome: None,
        };
        let (stopped, ended) = (self.stopped.clone(), self.ended.clone());
        // Boxed: it is large.
        let work = Box::pin(async move {
            let _until_nothing_is_learnt = waiting.under_way;
            if let Some(extraction) = reported(&services, job, starting.control, report).await {
                stopped
                    .run_until_cancelled(turn::extract(&services, *extraction))
                    .await;
            }
        });
        self.tracker
            .spawn(async move { ended.run_until_cancelled(work).await });
    }

    /// The copies, here, of questions that are still there: what they say is shown once,
    /// unless somebody points at the copy.
    fn copies(&self, trigger: &Message) -> Vec<MessageId> {
        let pointed_at = trigger.replies_to();
        let copies = self.holds.copies_in(trigger.channel);
        copies
            .filter(|copy| *copy != trigger.id && Some(*copy) != pointed_at)
            .collect()
    }

    /// The turns that run in other channels, and agent runs.
    fn elsewhere(&self, here: ChannelId, own: MessageId) -> Vec<Elsewhere> {
        let others = self.active.values();
        others
            .filter(|active| active.trigger.id != own)
            .filter(|active| active.run.is_some() || active.trigger.channel != here)
            .map(|active| Elsewhere {
                channel: active.trigger.channel,
                since: active.since,
                run: active.run.clone(),
                tools: active.activity.now().running,
            })
            .collect()
    }

    /// Stops an agent run, since somebody asked for that.
    pub(in crate::app) fn stop_run(&mut self, id: InteractionId) {
        self.end_runs(&Order::Stop, |run| run.id == id);
    }

    /// Ends agent runs whose place or asker is gone.
    pub(super) fn cancel_runs(&mut self, is_meant: impl Fn(&Run) -> bool) {
        self.end_runs(&Order::Cancel, is_meant);
    }

    /// Those that are about to begin get the order when they do.
    fn end_runs(&mut self, order: &Order, is_meant: impl Fn(&Run) -> bool) {
        let runs = self.services.runs.all();
        self.run_orders
            .retain(|id, _| runs.iter().any(|run| run.id == *id));
        for run in runs.iter().filter(|run| is_meant(run)) {
            let is_it = |one: &&ActiveTurn| one.run.as_ref().is_some_and(|of| of.id == run.id);
            match self.active.values().find(is_it) {
                Some(active) => drop(active.orders.send_replace(order.clone())),
                None => drop(self.run_orders.insert(run.id, order.clone())),
            }
        }
    }

    /// Passes on what somebody told a turn by a button.
    pub(in crate::app) fn steer(&mut self, steer: Steer) -> Steered {
        match steer {
            Steer::Stop {
                question,
                channel,
                of,
            } => self.stop_answer(question, channel, of),
            Steer::Regenerate(request, again) => self.regenerate(*request, again),
        }
    }

    fn stop_answer(&mut self, id: MessageId, channel: ChannelId, of: Option<UserId>) -> Steered {
        let active = self.active.get(&id);
        let active = active.filter(|one| one.run.is_none() && one.trigger.channel == channel);
        let Some(active) = active else {
            return self.stop_waiting(id, channel, of);
        };
        if of.is_some_and(|of| of != active.trigger.author.id) {
            return Steered::NotTheirs;
        }
        if !active.orders.borrow().ends() {
            active.orders.send_replace(Order::Stop);
        }
        Steered::Stopping
    }

    /// An answer that is to be given anew and has not begun stays as it is.
    fn stop_waiting(&mut self, id: MessageId, channel: ChannelId, of: Option<UserId>) -> Steered {
        let is_it = |one: &WaitingTrigger| {
            let trigger = &one.request.trigger;
            one.is_anew() && (trigger.id, trigger.channel) == (id, channel)
        };
        let asker = self.queues.waiting_mut().find(|one| is_it(one));
        let Some(asker) = asker.map(|one| one.request.asker()) else {
            return Steered::TooOld;
        };
        if of.is_some_and(|of| of != asker) {
            return Steered::NotTheirs;
        }
        self.queues.remove_waiting(is_it);
        Steered::Stopping
    }

    /// Asks a question again that was answered; who wants that has been counted.
    fn regenerate(&mut self, request: TurnRequest, again: Again) -> Steered {
        let id = request.trigger.id;
        let mut waiting = self.queues.waiting_mut();
        if self.closed {
            return Steered::Unfinished;
        }
        if self.active.contains_key(&id) || waiting.any(|one| one.request.trigger.id == id) {
            return Steered::Busy;
        }
        drop(waiting);
        // The tokens are the asker's.
        if self.services.may_not_ask(self.payer(&request)).is_some() {
            return Steered::Spent;
        }
        let channel = request.trigger.channel;
        let home = self.services.home(channel);
        let asked = Admission {
            guild: Ids::of(&request).guild,
            channel,
            parent: (home != channel).then_some(home),
            user: request.asker(),
            roles: request.asker_roles.as_deref(),
        };
        if admit(&self.rules.access, asked).is_err() {
            return Steered::NotAllowed;
        }
        let waiting = WaitingTrigger {
            again: Some(again),
            ..self.waiting(request, None)
        };
        if self.queue(waiting, false) {
            Steered::Asking
        } else {
            Steered::Busy
        }
    }

    /// The triggers of turns that wait or run in the same place, or were refused.
    fn other_triggers(&mut self, channel: ChannelId, own: MessageId) -> BTreeSet<MessageId> {
        let running = self.active.values().map(|active| &active.trigger);
        let waiting = self.queues.waiting_mut();
        let waiting = waiting.map(|waiting| &waiting.request.trigger);
        let triggers = running.chain(waiting).map(|one| (one.channel, one.id));
        let held = self.holds.waiting_in(channel);
        let others = triggers
            .chain(self.refused.iter().copied())
            .chain(held.map(|id| (channel, id)));
        let mut others: BTreeSet<MessageId> = others
            .filter(|(at, _)| *at == channel)
            .map(|(_, id)| id)
            .collect();
        others.remove(&own);
        others
    }

    /// Handles the end of a turn; what waits for its place starts.
    pub(in crate::app) fn turn_ended(&mut self, end: TurnEnd) {
        let Some(active) = self.active.remove(&end.trigger) else {
            return;
        };
        if end.outcome.is_none() {
            tracing::error!(trigger = %end.trigger, "a turn broke off by a fault of ours");
        }
        let abandoned = self.closed && end.outcome == Some(Outcome::Cancelled);
        if !abandoned {
            self.over(end.trigger);
            self.decisions_over(TurnId(end.trigger.get()));
        }
        let is_answered = end.outcome == Some(Outcome::Answered);
        self.catch_up.turn_ended(end.trigger, is_answered);
        self.read_missed();
        let mark = active.mark.filter(|_| !abandoned);
        // An answer that was to be given anew may stand as it was.
        let stands = active.is_anew && self.services.claims.has_answer(end.trigger);
        let was_cancelled = end.outcome == Some(Outcome::Cancelled) && !stands;
        self.held_ended(&active.trigger, was_cancelled, mark);
        if let Some(queue) = active.queue {
            self.place_is_free(queue);
        }
    }

    /// Messages that still ask for consent are told what came of it.
    fn decisions_over(&self, turn: TurnId) {
        let approvals = &self.services.approvals;
        if approvals.untold(Some(turn)).is_empty() {
            return approvals.turn_over(turn);
        }
        let services = Arc::clone(&self.services);
        self.tracker.spawn(async move {
            turn::report_given_up(&services, Some(turn)).await;
            services.approvals.turn_over(turn);
        });
    }

    /// A turn waits for people: others may go on.
    pub(in crate::app) fn turn_waits(&mut self, trigger: MessageId) {
        let active = self.active.get_mut(&trigger);
        if let Some(queue) = active.and_then(|active| active.queue.take()) {
            self.place_is_free(queue);
        }
    }

    /// What waits for a place starts.
    fn place_is_free(&mut self, queue: QueueKey) {
        let mut next = self.queues.finished(queue);
        while let Some((queue, waiting)) = next.filter(|_| !self.closed) {
            let payer = self.payer(&waiting.request);
            let Some(refused) = self.services.may_not_ask(payer) else {
                self.start(queue, waiting, true);
                next = self.queues.next();
                continue;
            };
            self.refuse_request(&waiting.request, refused);
            if let Some(mark) = waiting.mark {
                self.finished(mark);
            }
            next = self.queues.finished(queue);
        }
    }

    /// Tells running turns to take back what they posted, as the process is ending.
    pub(in crate::app) fn abandon(&mut self) {
        for active in self.active.values() {
            turn::abandon(&active.orders);
        }
    }
}

/// Runs a turn and reports when it waits for people, and that it is over. Facts are
/// extracted from it in the background.
async fn reported(
    services: &Services,
    job: TurnJob,
    control: Control,
    mut report: ReportOnDrop,
) -> Option<Box<Extraction>> {
    let activity = services
        .tool_servers
        .are_any()
        .then(|| Arc::clone(&job.activity));
    let waits = async {
        match activity {
            Some(activity) => activity.until_waiting().await,
            None => pending().await,
        }
    };
    let (run, waits) = (pin!(turn::run(services, job, control)), pin!(waits));
    let ended = match select(run, waits).await {
        Either::Left((ended, _)) => ended,
        Either::Right(((), run)) => {
            // The loop is gone only when the process ends.
            let _ = report
                .loop_events
                .send(LoopEvent::TurnWaits(report.trigger));
            run.await
        }
    };
    report.outcome = Some(ended.outcome);
    ended.extraction
}

const fn refusal(full: Full) -> Refusal {
    match full {
        Full::Queue => Refusal::QueueFull,
        Full::Room => Refusal::Busy,
    }
}

/// Turns other than agent runs are serial per thread, direct conversation and member of a channel.
fn queue(request: &TurnRequest, spender: Spender) -> QueueKey {
    let trigger = &request.trigger;
    let conversation = request
        .channel_kind
        .is_some_and(|kind: ChannelKind| kind.is_thread() || kind.is_direct());
    if conversation {
        QueueKey::Conversation(trigger.channel)
    } else {
        QueueKey::Member(trigger.channel, spender)
    }
}

/// Reports that a turn is over, however its task ends.
struct ReportOnDrop {
    trigger: MessageId,
    loop_events: mpsc::UnboundedSender<LoopEvent>,
    outcome: Option<Outcome>,
}

impl Drop for ReportOnDrop {
    fn drop(&mut self) {
        let end = TurnEnd {
            trigger: self.trigger,
            outcome: self.outcome,
        };
        // The loop is gone only when the process ends.
        let _ = self.loop_events.send(LoopEvent::TurnEnded(end));
    }
}
