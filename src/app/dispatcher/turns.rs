//! Turns: queueing, starting, giving orders and ending.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::loop_event::{LoopEvent, TurnEnd};
use super::super::queues::{Full, QueueKey, Submitted};
use super::super::restarts::Restarts;
use super::super::shares::{Requester, Tenant};
use super::super::wiring;
use super::Dispatcher;
use crate::telemetry::Ids;
use crate::telemetry::event::{Outcome, Refusal, Refused};
use crate::turn::{self, Control, Elsewhere, Extraction, Order, Orders, Services, TurnJob};
use clew_context::engine::admission::Denied;
use clew_context::model::{ChannelId, ChannelKind, Message, MessageId, TurnRequest};
use clew_discord::send::Outgoing;
use clew_discord::session::Mark;

/// How long sending a refusal may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);

/// How many refused questions are remembered, over all channels.
const REFUSED_REMEMBERED: usize = 1_024;

/// A trigger that waits.
#[derive(Debug)]
pub(super) struct WaitingTrigger {
    pub(super) request: TurnRequest,
    came: Instant,
    pub(super) mark: Option<Mark>,
}

/// A turn that runs.
#[derive(Debug)]
pub(super) struct ActiveTurn {
    queue: QueueKey,
    since: Instant,
    pub(super) orders: Orders,
    /// The trigger as it is being asked, or will be.
    pub(super) trigger: Arc<Message>,
    pub(super) restarts: Restarts,
    mark: Option<Mark>,
}

impl Dispatcher {
    /// Queues a trigger. Returns whether a turn began or waits for it.
    pub(super) fn submit(&mut self, request: TurnRequest, mark: Option<Mark>) -> bool {
        let trigger = Arc::clone(&request.trigger);
        if self.closed {
            // It stays unfinished: the next process gets it again.
            self.stopping(&request);
            return true;
        }
        if !self.claims.claim(trigger.id) {
            return false;
        }
        let now = Instant::now();
        if self
            .question_rate
            .as_mut()
            .is_some_and(|rate| !rate.take(trigger.author.id, now))
        {
            self.refuse_request(&request, Refusal::UserRate);
            return false;
        }
        if !trigger.is_human() && request.cause.interaction().is_none() {
            self.bot_turns.count(trigger.channel, trigger.guild);
        }
        let (queue, requester) = (queue(&request), self.requester(&request));
        match self.queues.submit(
            queue,
            requester,
            WaitingTrigger {
                request,
                came: now,
                mark,
            },
        ) {
            Submitted::Starts(waiting) => self.start(queue, waiting, false),
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
        true
    }

    /// Whose share a turn counts towards.
    fn requester(&self, request: &TurnRequest) -> Requester {
        let (channel, user) = (request.trigger.channel, request.asker());
        let guild = Ids::of(request).guild;
        let guild = guild.or_else(|| self.services.guild_state.guild_of(channel));
        let tenant = guild.map_or(Tenant::Person(user), Tenant::Guild);
        Requester { tenant, user }
    }

    fn start(&mut self, queue: QueueKey, waiting: WaitingTrigger, waited: bool) {
        let WaitingTrigger {
            request,
            came,
            mark,
        } = waiting;
        let trigger = Arc::clone(&request.trigger);
        let (orders, control) = Control::new();
        let channel = trigger.channel;
        let id = trigger.id;
        self.active.insert(
            id,
            ActiveTurn {
                queue,
                since: Instant::now(),
                orders,
                trigger,
                restarts: Restarts::default(),
                mark,
            },
        );
        let other_triggers = self.other_triggers(channel, id);
        let job = TurnJob {
            request,
            came,
            newest: self.services.window().newest(channel),
            waited,
            other_triggers,
            elsewhere: self.elsewhere(channel),
        };
        let services = Arc::clone(&self.services);
        let report = ReportOnDrop {
            trigger: id,
            loop_events: self.loop_events.clone(),
            outcome: None,
        };
        let stopped = self.stopped.clone();
        self.tracker.spawn(async move {
            if let Some(extraction) = reported(&services, job, control, report).await {
                stopped
                    .run_until_cancelled(turn::extract(&services, *extraction))
                    .await;
            }
        });
    }

    /// The turns that run in other channels.
    fn elsewhere(&self, here: ChannelId) -> Vec<Elsewhere> {
        let others = self.active.values();
        others
            .filter(|active| active.trigger.channel != here)
            .map(|active| Elsewhere {
                channel: active.trigger.channel,
                since: active.since,
            })
            .collect()
    }

    /// The triggers of turns that wait or run in the same place, or were refused.
    fn other_triggers(&mut self, channel: ChannelId, own: MessageId) -> BTreeSet<MessageId> {
        let running = self
            .active
            .iter()
            .filter(|(_, active)| active.trigger.channel == channel);
        let mut others: BTreeSet<MessageId> = running.map(|(id, _)| *id).collect();
        let waiting = self
            .queues
            .waiting_mut()
            .map(|waiting| &waiting.request.trigger);
        others.extend(
            waiting
                .filter(|one| one.channel == channel)
                .map(|one| one.id),
        );
        let refused = self.refused.iter();
        others.extend(refused.filter(|(at, _)| *at == channel).map(|(_, id)| *id));
        others.remove(&own);
        others
    }

    /// Handles the end of a turn; the next one that waits starts.
    pub(in crate::app) fn turn_ended(&mut self, end: TurnEnd) {
        let Some(active) = self.active.remove(&end.trigger) else {
            return;
        };
        if end.outcome.is_none() {
            tracing::error!(trigger = %end.trigger, "a turn broke off by a fault of ours");
        }
        let abandoned = self.closed && end.outcome == Some(Outcome::Cancelled);
        if !abandoned {
            self.claims.answered(end.trigger);
            if let Some(mark) = active.mark {
                self.finished(mark);
            }
        }
        let next = self.queues.finished(active.queue);
        if let Some((queue, waiting)) = next.filter(|_| !self.closed) {
            self.start(queue, waiting, true);
        }
    }

    /// Tells running turns to take back what they posted, as the process is ending.
    pub(in crate::app) fn abandon(&mut self) {
        for active in self.active.values() {
            active.orders.send_replace(Order::Abandon);
        }
    }

    /// Tells the caller of a command that it will not be answered before the end.
    pub(super) fn stopping(&mut self, request: &TurnRequest) {
        if let Some(interaction) = request.cause.interaction() {
            let ids = self.ids(&request.trigger);
            self.emit_refused(&ids, Refusal::Stopping, None);
            self.answer_call(interaction.clone(), turn::INTERRUPTED);
        }
    }

    /// The refusal counts as the answer: a restart does not give another.
    fn refuse_request(&mut self, request: &TurnRequest, reason: Refusal) {
        self.claims.answered(request.trigger.id);
        match request.cause.interaction() {
            Some(interaction) => {
                let line = turn::refusal(reason).unwrap_or(turn::NOT_ALLOWED);
                let ids = self.ids(&request.trigger);
                self.emit_refused(&ids, reason, None);
                self.answer_call(interaction.clone(), line);
            }
            None => self.refuse(&request.trigger, reason),
        }
    }

    /// Sends one line, at most once per user and minute.
    pub(super) fn refuse(&mut self, message: &Message, reason: Refusal) {
        let ids = self.ids(message);
        self.emit_refused(&ids, reason, None);
        let Some(line) = turn::refusal(reason) else {
            return;
        };
        let access = self.services.guild_state.our_access(message.channel);
        if access.forbids(|rights| rights.send)
            || !self.refusal_rate.take(message.author.id, Instant::now())
        {
            return;
        }
        let outgoing = Outgoing {
            content: line.to_owned(),
            reply_to: Some(message.id),
            nonce: format!("{:x}.r", message.id.get()),
            ..Outgoing::default()
        };
        let (services, channel) = (Arc::clone(&self.services), message.channel);
        self.tracker.spawn(async move {
            let deadline = Instant::now() + REFUSAL_TIMEOUT;
            if let Err(error) = services
                .rest
                .create_message(channel, &outgoing, deadline)
                .await
            {
                tracing::info!(%error, %channel, "a refusal could not be sent");
            }
        });
    }

    /// Emits the event. Users whom a list keeps out are told nothing.
    pub(super) fn emit_refused(&mut self, ids: &Ids, reason: Refusal, denied: Option<Denied>) {
        if self.refused.len() >= REFUSED_REMEMBERED {
            self.refused.pop_front();
        }
        self.refused.extend(ids.channel.zip(ids.message));
        let known = |channel| self.services.guild_state.kind_and_parent(channel);
        let thread = ids.channel.and_then(known);
        let refused = Refused {
            reason,
            list: denied.map(wiring::list),
            parent_channel_id: thread
                .filter(|(kind, _)| kind.is_thread())
                .and_then(|(_, parent)| parent),
        };
        self.services.telemetry.emit(ids, refused);
    }
}

/// Runs a turn and reports that it is over. Facts are extracted from it in the
/// background.
async fn reported(
    services: &Services,
    job: TurnJob,
    control: Control,
    mut report: ReportOnDrop,
) -> Option<Box<Extraction>> {
    let ended = turn::run(services, job, control).await;
    report.outcome = Some(ended.outcome);
    ended.extraction
}

const fn refusal(full: Full) -> Refusal {
    match full {
        Full::Queue => Refusal::QueueFull,
        Full::Room => Refusal::Busy,
    }
}

/// Turns are serial per thread, direct conversation and member of a channel.
fn queue(request: &TurnRequest) -> QueueKey {
    let trigger = &request.trigger;
    let conversation = request
        .channel_kind
        .is_some_and(|kind: ChannelKind| kind.is_thread() || kind.is_direct());
    if conversation {
        QueueKey::Conversation(trigger.channel)
    } else {
        QueueKey::Member(trigger.channel, trigger.author.id)
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
