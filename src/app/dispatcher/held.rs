//! Questions that wait for an app through which people write: see [`Holds`].
//!
//! [`Holds`]: crate::app::holds::Holds

use tokio::time::Instant;

use super::super::holds::{Progress, Step, joined};
use super::Dispatcher;
use clew_context::engine::eligible::Us;
use clew_context::model::{GuildId, Message, MessageId, TurnRequest};
use clew_discord::session::Mark;

impl Dispatcher {
    /// Notes where an app posts what people write; none for other messages.
    pub(super) fn see_app(&mut self, message: &Message, us: &Us) -> Option<()> {
        us.proxy_of(message)?;
        // A webhook of no application is a bridge's, which copies from elsewhere.
        message.author.application?;
        self.holds.see(self.services.home(message.channel));
        Some(())
    }

    /// If a message is an app's copy of a question that may be asked instead, returns the
    /// question, and the copy as one.
    pub(super) fn copied(&mut self, message: &Message, us: &Us) -> Option<(MessageId, Message)> {
        self.see_app(message, us)?;
        let original = self.holds.original_of(message, us)?;
        Some((original.id, joined(message, &original)))
    }

    /// Asks a question, or has it wait. Its event is finished here if nothing comes of it.
    pub(super) fn ask_or_hold(
        &mut self,
        request: TurnRequest,
        original: Option<MessageId>,
        mark: Mark,
    ) {
        let (id, turn) = (request.trigger.id, request.turn());
        let steps = self.held(request, original, mark);
        let is_asked = |step: &Step| matches!(step, Step::Ask(one, _) if one.trigger.id == id);
        if !steps.iter().any(is_asked) {
            self.arrived(turn);
        }
        for step in steps {
            let waited = !is_asked(&step);
            self.carry_on_one(step, waited);
        }
    }

    /// What is to be done now; nothing for a question that waits.
    fn held(&mut self, request: TurnRequest, original: Option<MessageId>, mark: Mark) -> Vec<Step> {
        let may_wait = !self.closed && !self.rules.triggers.proxies.is_empty();
        let trigger = &request.trigger;
        let may_be_copied = may_wait && trigger.is_human() && trigger.guild.is_some();
        match original {
            Some(original) => {
                let mut waiting = self.queues.waiting_mut();
                let is_over = !self.active.contains_key(&original)
                    && !waiting.any(|one| one.request.trigger.id == original && !one.is_anew());
                if self.closed && !is_over {
                    // Whether it is asked is for the next process, which gets both again.
                    return Vec::new();
                }
                self.holds
                    .take_copy(original, request, mark, is_over, Instant::now())
            }
            None if may_be_copied && self.services.claims.is_given_up(trigger.id) => {
                self.holds.take_given_up(request, mark, Instant::now())
            }
            None if may_be_copied => {
                let home = self.services.home(trigger.channel);
                self.holds.take(request, home, mark, Instant::now())
            }
            None => vec![Step::Ask(request, Some(mark))],
        }
    }

    /// Questions that wait and were deleted are not asked; their copies are.
    pub(super) fn held_deleted(&mut self, guild: Option<GuildId>, ids: &[MessageId]) {
        let mut queued = self.cancel(ids);
        if !self.holds.is_empty() {
            let us = self.services.us(guild);
            let (holds, active) = (&mut self.holds, &self.active);
            let steps = holds.deleted(ids, &us, |id| {
                if active.contains_key(&id) {
                    Progress::Running
                } else if let Some(mark) = queued.remove(&id) {
                    Progress::Queued(mark)
                } else {
                    Progress::Over
                }
            });
            self.carry_on(steps);
        }
        for mark in queued.into_values().flatten() {
            self.finished(mark);
        }
    }

    /// The turn of a question has ended, and with it its event. If it was deleted before it
    /// was answered, its copy is asked.
    pub(super) fn held_ended(
        &mut self,
        trigger: &Message,
        was_cancelled: bool,
        mark: Option<Mark>,
    ) {
        if self.holds.is_empty() {
            return self.carry_on(mark.map(Step::Finish));
        }
        let us = self.services.us(trigger.guild);
        let steps = self.holds.ended(trigger.id, &us, was_cancelled, mark);
        self.carry_on(steps);
    }

    /// When questions that wait are due.
    pub(in crate::app) fn due(&self) -> Option<Instant> {
        self.holds.due().filter(|_| !self.closed)
    }

    /// Asks the questions that have waited long enough.
    pub(in crate::app) fn ask_due(&mut self) {
        let steps = self.holds.expire(Instant::now());
        self.carry_on(steps);
        self.forget_arrivals();
    }

    /// Forgets when questions came that nobody will ask.
    pub(super) fn forget_arrivals(&mut self) {
        let (holds, unplaced, missed) = (&self.holds, &self.unplaced, &self.catch_up);
        self.arrivals
            .retain(|id, _| holds.knows(*id) || unplaced.contains_key(id) || missed.knows(*id));
    }

    fn carry_on(&mut self, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            self.carry_on_one(step, true);
        }
    }

    fn carry_on_one(&mut self, step: Step, waited: bool) {
        match step {
            Step::Ask(request, mark) => {
                if !self.submit_after(request, mark, waited)
                    && let Some(mark) = mark
                {
                    self.finished(mark);
                }
            }
            Step::Finish(mark) => self.finished(mark),
            Step::Over(copy) => self.over(copy),
        }
    }
}
