//! Questions for which an app through which people write may post a copy, under another
//! name, before or after it deletes the original. Where such an app has posted, a question
//! waits for that. Once it is deleted, its copy is asked; otherwise the question is, and
//! its copy is not. Pure: whoever calls brings the time.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use clew_context::engine::eligible::{Repeats, Us};
use clew_context::model::{
    ChannelId, GuildId, LATE_COPIES, Message, MessageId, MessageKind, TurnRequest, UserId,
};
use clew_discord::session::Mark;

/// Questions known of one person in a server: more than `USER_TURNS_PER_MIN` lets them ask by
/// default, so that none is forgotten before its copy comes.
const PER_PERSON: usize = 12;
/// Of one server.
const PER_GUILD: usize = 64;
/// In all.
const IN_ALL: usize = 1_024;
/// The most channels that are known to have such an app.
const CHANNELS: usize = 10_000;

/// The questions that wait, and those that did a short while ago.
#[derive(Debug)]
pub(super) struct Holds {
    wait: Duration,
    /// Oldest first.
    questions: VecDeque<Question>,
    /// Where an app has posted what people write.
    seen: HashSet<ChannelId>,
}

#[derive(Debug)]
struct Question {
    guild: Option<GuildId>,
    /// When it came, or its copy if that was after it was asked.
    came: Instant,
    request: TurnRequest,
    state: State,
    copy: Option<HeldCopy>,
}

/// The copy of a question.
#[derive(Debug)]
enum HeldCopy {
    /// What it asks, and its event while that is not finished.
    Asks(TurnRequest, Option<Mark>),
    /// The operator's lists refuse its app.
    Refused(MessageId),
}

/// What has become of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits; its event is not finished.
    Waits(Mark),
    Asked,
    /// It was deleted while it was being answered: whether it was tells the end of its turn.
    Cancelled,
    /// It was deleted before it was answered.
    Deleted,
    /// It was deleted after it was answered: its copy is not asked, and shown.
    Answered,
}

/// How far a question has come that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waited for its turn; its event, which is not finished.
    Queued(Option<Mark>),
    /// It is being answered.
    Running,
    /// It was answered, or refused.
    Over,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Step {
    Ask(TurnRequest, Option<Mark>),
    /// The event leads to nothing.
    Finish(Mark),
    /// The copy of a question that was asked: no process is to ask it.
    Over(MessageId),
}

impl Holds {
    /// `wait` is how long a question waits.
    pub(super) fn new(wait: Duration) -> Self {
        Self {
            wait,
            questions: VecDeque::new(),
            seen: HashSet::new(),
        }
    }

    /// An app has posted in this channel, or in one of its threads.
    pub(super) fn see(&mut self, home: ChannelId) {
        if self.seen.len() >= CHANNELS && !self.seen.contains(&home) {
            self.seen.clear();
        }
        self.seen.insert(home);
    }

    /// Takes a person's question in this channel or one of its threads; returns it if it is
    /// to be asked now.
    pub(super) fn take(
        &mut self,
        request: TurnRequest,
        home: ChannelId,
        mark: Mark,
        now: Instant,
    ) -> Vec<Step> {
        if self.knows(request.trigger.id) {
            return vec![Step::Finish(mark)];
        }
        let waits = !self.wait.is_zero() && self.seen.contains(&home);
        let state = if waits {
            State::Waits(mark)
        } else {
            State::Asked
        };
        let mut steps = Vec::new();
        let is_kept = self.keep(request.clone(), state, now, &mut steps);
        if !(is_kept && waits) {
            steps.push(Step::Ask(request, Some(mark)));
        }
        steps
    }

    /// Takes a question that an earlier process gave up: its copy is asked when it comes.
    pub(super) fn take_given_up(
        &mut self,
        request: TurnRequest,
        mark: Mark,
        now: Instant,
    ) -> Vec<Step> {
        let mut steps = vec![Step::Finish(mark)];
        if !self.knows(request.trigger.id) {
            self.keep(request, State::Deleted, now, &mut steps);
        }
        steps
    }

    /// Whether it is a question known here, or the copy of one.
    pub(super) fn knows(&self, id: MessageId) -> bool {
        let mut questions = self.questions.iter();
        questions.any(|one| one.request.trigger.id == id || one.copy_id() == Some(id))
    }

    /// Keeps a question, if there is room. Returns whether there is.
    fn keep(
        &mut self,
        request: TurnRequest,
        state: State,
        now: Instant,
        steps: &mut Vec<Step>,
    ) -> bool {
        let guild = request.trigger.guild;
        let has_room = self.make_room(guild, request.asker(), steps);
        if has_room {
            self.questions.push_back(Question {
                guild,
                came: now,
                request,
                state,
                copy: None,
            });
        }
        has_room
    }

    /// Makes room for one more: questions of which nothing is yet to become give way, or the
    /// oldest that waits is asked now, so that nobody's questions overtake each other. Returns
    /// whether there is room.
    fn make_room(&mut self, guild: Option<GuildId>, asker: UserId, steps: &mut Vec<Step>) -> bool {
        let of_person = |one: &Question| one.guild == guild && one.request.asker() == asker;
        self.limit(PER_PERSON, of_person, steps)
            && self.limit(PER_GUILD, |one| one.guild == guild, steps)
            && self.limit(IN_ALL, |_| true, steps)
    }

    fn limit(
        &mut self,
        most: usize,
        is_counted: impl Fn(&Question) -> bool,
        steps: &mut Vec<Step>,
    ) -> bool {
        if self.questions.iter().filter(|one| is_counted(one)).count() < most {
            return true;
        }
        let find = |gives_way: fn(&Question) -> bool| {
            let mut questions = self.questions.iter();
            questions.position(|one| is_counted(one) && gives_way(one))
        };
        let at = find(Question::may_go).or_else(|| find(Question::waits));
        let Some(mut gone) = at.and_then(|at| self.questions.remove(at)) else {
            return false;
        };
        gone.ask_now(steps);
        steps.extend(gone.copy_is_over());
        true
    }

    /// The question that an app's message copies. While it is there, the copy says all of
    /// it but a short tag. Of several, one that is gone, then the shortest.
    pub(super) fn original_of(&self, copy: &Message, us: &Us) -> Option<Arc<Message>> {
        let questions = self.questions.iter();
        let here = questions.filter(|one| {
            let trigger = &one.request.trigger;
            trigger.channel == copy.channel && trigger.id < copy.id
        });
        let fitting = here.filter_map(|one| {
            if let Some(known) = one.copy_id() {
                // The event came twice.
                return (known == copy.id).then_some((0, one));
            }
            let preference = match (us.repeats(copy, &one.request.trigger)?, one.is_gone()) {
                (Repeats::All, true) => 1,
                (Repeats::All, false) => 2,
                (Repeats::Part, true) => 3,
                (Repeats::Part, false) => return None,
            };
            Some((preference, one))
        });
        let length = |one: &Question| one.request.trigger.content.len();
        let best = fitting.min_by_key(|(preference, one)| (*preference, length(one)));
        best.map(|(_, one)| Arc::clone(&one.request.trigger))
    }

    /// Takes the copy of a question; `is_over` says whether that is neither queued nor running.
    pub(super) fn take_copy(
        &mut self,
        original: MessageId,
        request: TurnRequest,
        mark: Mark,
        is_over: bool,
        now: Instant,
    ) -> Vec<Step> {
        let mut questions = self.questions.iter_mut();
        let question = questions.find(|one| one.request.trigger.id == original);
        let Some(question) = question else {
            return vec![Step::Ask(request, Some(mark))];
        };
        if question.copy_id() == Some(request.trigger.id) {
            return vec![Step::Finish(mark)];
        }
        match question.state {
            State::Waits(_) => {
                question.copy = Some(HeldCopy::Asks(request, Some(mark)));
                Vec::new()
            }
            State::Asked | State::Cancelled | State::Answered => {
                question.copy = Some(HeldCopy::Asks(request, None));
                // The original is deleted next, perhaps as late as the copy came.
                question.came = now;
                let is_over = is_over && question.state != State::Cancelled;
                let over = question.copy_is_over().filter(|_| is_over);
                over.into_iter().chain([Step::Finish(mark)]).collect()
            }
            State::Deleted => {
                self.forget(original);
                vec![Step::Ask(request, Some(mark))]
            }
        }
    }

    /// The copy of a question came, and may not ask.
    pub(super) fn refuse_copy(&mut self, original: MessageId, copy: MessageId) {
        let mut questions = self.questions.iter_mut();
        if let Some(question) = questions.find(|one| one.request.trigger.id == original) {
            question.copy.get_or_insert(HeldCopy::Refused(copy));
        }
    }

    fn forget(&mut self, question: MessageId) {
        self.questions
            .retain(|one| one.request.trigger.id != question);
    }

    /// Messages were deleted; `progress` is that of a question which was asked. The copy of one
    /// that was queued takes over its event.
    pub(super) fn deleted(
        &mut self,
        ids: &[MessageId],
        us: &Us,
        mut progress: impl FnMut(MessageId) -> Progress,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut gone = Vec::new();
        for question in &mut self.questions {
            question.forget_copy(ids, &mut steps);
            let id = question.request.trigger.id;
            if !ids.contains(&id) {
                continue;
            }
            match (question.state, progress(id)) {
                (State::Waits(mark), _) => gone.push((id, Some(mark))),
                (State::Asked, Progress::Queued(mark)) => gone.push((id, mark)),
                (State::Asked, Progress::Running) => question.state = State::Cancelled,
                (State::Asked, Progress::Over) => question.state = State::Answered,
                (State::Cancelled | State::Deleted | State::Answered, _) => {}
            }
        }
        for (id, mark) in gone {
            self.give_way(id, us, mark, &mut steps);
        }
        steps
    }

    /// The turn of a question has ended; `was_cancelled` if without an answer. Its event is
    /// finished, unless its copy takes that over.
    pub(super) fn ended(
        &mut self,
        id: MessageId,
        us: &Us,
        was_cancelled: bool,
        mark: Option<Mark>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut questions = self.questions.iter_mut();
        let question = questions.find(|one| one.request.trigger.id == id);
        match question {
            Some(question) if was_cancelled && question.state == State::Cancelled => {
                self.give_way(id, us, mark, &mut steps);
                return steps;
            }
            Some(question) if !was_cancelled => {
                if question.state == State::Cancelled {
                    question.state = State::Answered;
                }
                steps.extend(question.copy_is_over());
            }
            Some(_) | None => {}
        }
        steps.extend(mark.map(Step::Finish));
        steps
    }

    /// A question is gone: its copy is asked instead, now or when it comes. One whose own event
    /// is finished goes by that of the question.
    fn give_way(&mut self, id: MessageId, us: &Us, mark: Option<Mark>, steps: &mut Vec<Step>) {
        let is_meant = |one: &Question| one.request.trigger.id == id;
        let Some(at) = self.questions.iter().position(is_meant) else {
            return steps.extend(mark.map(Step::Finish));
        };
        self.questions[at].state = State::Deleted;
        let original = Arc::clone(&self.questions[at].request.trigger);
        let own = self.questions[at].copy.take();
        let copy = own.or_else(|| self.copy_beside(&original, us));
        if copy.is_some() {
            self.questions.remove(at);
        }
        let (over, asks) = match copy {
            Some(HeldCopy::Asks(request, None)) => (None, Some(Step::Ask(request, mark))),
            Some(HeldCopy::Asks(request, own)) => (mark, Some(Step::Ask(request, own))),
            Some(HeldCopy::Refused(_)) | None => (mark, None),
        };
        steps.extend(over.map(Step::Finish).into_iter().chain(asks));
    }

    /// The copy of a question that is gone, if it was taken for that of another which says
    /// the same and is still there.
    fn copy_beside(&mut self, original: &Message, us: &Us) -> Option<HeldCopy> {
        let mut others = self.questions.iter_mut().filter(|one| !one.is_gone());
        let other = others.find(|one| {
            let copy = match &one.copy {
                Some(HeldCopy::Asks(request, _)) => &request.trigger,
                Some(HeldCopy::Refused(_)) | None => return false,
            };
            copy.channel == original.channel && us.repeats(copy, original) == Some(Repeats::All)
        });
        other.and_then(|other| other.copy.take())
    }

    pub(super) fn edited(&mut self, message: &Message) {
        for question in &mut self.questions {
            if question.request.trigger.id == message.id {
                question.request.trigger = Arc::new(message.clone());
            }
            let original = Arc::clone(&question.request.trigger);
            if let Some(HeldCopy::Asks(copy, _)) = &mut question.copy
                && copy.trigger.id == message.id
            {
                copy.trigger = Arc::new(joined(message, &original));
            }
        }
    }

    /// When something is due next.
    pub(super) fn due(&self) -> Option<Instant> {
        let due = self.questions.iter().filter_map(|one| self.due_of(one));
        due.min()
    }

    fn due_of(&self, question: &Question) -> Option<Instant> {
        let late = match question.state {
            State::Waits(_) => Duration::ZERO,
            State::Cancelled => return None,
            State::Asked | State::Deleted | State::Answered => LATE_COPIES,
        };
        Some(question.came + self.wait + late)
    }

    pub(super) fn expire(&mut self, now: Instant) -> Vec<Step> {
        let wait = self.wait;
        let mut steps = Vec::new();
        self.questions.retain(|one| {
            let stays = !one.may_go() || one.came + wait + LATE_COPIES > now;
            steps.extend(one.copy_is_over().filter(|_| !stays));
            stays
        });
        let due = self
            .questions
            .iter_mut()
            .filter(|one| one.came + wait <= now);
        due.for_each(|question| question.ask_now(&mut steps));
        steps
    }

    /// What is held: questions, and the copies that may be asked instead.
    pub(super) fn requests(&self) -> impl Iterator<Item = &TurnRequest> {
        self.questions.iter().flat_map(|one| {
            let copy = one.copy.as_ref().and_then(|copy| match copy {
                HeldCopy::Asks(copy, _) => Some(copy),
                HeldCopy::Refused(_) => None,
            });
            copy.into_iter().chain([&one.request])
        })
    }

    /// The questions that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = MessageId> {
        let waiting = self.questions.iter().filter(|one| one.waits());
        waiting.map(|one| one.request.trigger.id)
    }

    /// The questions that wait in a channel.
    pub(super) fn waiting_in(&self, channel: ChannelId) -> impl Iterator<Item = MessageId> {
        let here = self.questions.iter();
        let here = here.filter(move |one| one.waits() && one.request.trigger.channel == channel);
        here.map(|one| one.request.trigger.id)
    }

    /// The copies in a channel whose originals are still there.
    pub(super) fn copies_in(&self, channel: ChannelId) -> impl Iterator<Item = MessageId> {
        let here = self.questions.iter();
        let here = here.filter(move |one| one.request.trigger.channel == channel);
        let there = here.filter(|one| one.state != State::Answered);
        there.filter_map(Question::copy_id)
    }

    /// Whether no question is known.
    pub(super) fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Forgets the questions that wait: none is finished, so the next process gets them again.
    pub(super) fn close(&mut self) {
        self.questions.retain(|one| !one.waits());
    }
}

impl Question {
    /// Has it asked if it waits; its copy is not.
    fn ask_now(&mut self, steps: &mut Vec<Step>) {
        let State::Waits(mark) = self.state else {
            return;
        };
        self.state = State::Asked;
        steps.push(Step::Ask(self.request.clone(), Some(mark)));
        if let Some(HeldCopy::Asks(_, mark)) = &mut self.copy {
            steps.extend(mark.take().map(Step::Finish));
        }
    }

    const fn waits(&self) -> bool {
        matches!(self.state, State::Waits(_))
    }

    /// Whether it may be forgotten, since nothing is yet to become of it.
    const fn may_go(&self) -> bool {
        !matches!(self.state, State::Waits(_) | State::Cancelled)
    }

    /// Whether it was deleted before it was answered, as far as that is known yet.
    const fn is_gone(&self) -> bool {
        matches!(self.state, State::Cancelled | State::Deleted)
    }

    /// Its copy is not asked any more.
    fn copy_is_over(&self) -> Option<Step> {
        self.copy_id().map(Step::Over)
    }

    fn copy_id(&self) -> Option<MessageId> {
        self.copy.as_ref().map(HeldCopy::id)
    }

    /// A copy that is deleted is none.
    fn forget_copy(&mut self, ids: &[MessageId], steps: &mut Vec<Step>) {
        let gone = self.copy.take_if(|copy| ids.contains(&copy.id()));
        if let Some(HeldCopy::Asks(_, mark)) = gone {
            steps.extend(mark.map(Step::Finish));
        }
    }
}

impl HeldCopy {
    fn id(&self) -> MessageId {
        match self {
            Self::Asks(request, _) => request.trigger.id,
            Self::Refused(id) => *id,
        }
    }
}

/// A copy as a question: apps cannot reply, and copy no reference; what the original
/// replied to and mentioned is what the copy means.
pub(super) fn joined(copy: &Message, original: &Message) -> Message {
    let mut joined = copy.clone();
    if copy.reference.is_none() && original.kind == MessageKind::Reply {
        joined.kind = original.kind;
        joined.reference.clone_from(&original.reference);
        joined.referenced.clone_from(&original.referenced);
    }
    let is_new = |id: UserId| copy.mentions.iter().all(|own| own.id != id);
    let missing = original.mentions.iter().filter(|one| is_new(one.id));
    joined.mentions = copy.mentions.iter().chain(missing).cloned().collect();
    joined
}

#[cfg(test)]
mod tests;
