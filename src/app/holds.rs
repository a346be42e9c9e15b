//! Questions for which an app through which people write may post a copy, under another
//! name, before or after it deletes the original. Where such an app has posted, a question
//! waits for that. Once it is deleted, its copy is asked; otherwise the question is, and
//! its copy is not. Pure: whoever calls brings the time.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use clew_context::engine::eligible::Us;
use clew_context::model::{
    ChannelId, GuildId, Message, MessageId, MessageKind, TurnRequest, UserId,
};
use clew_discord::session::Mark;

/// For how long after its wait a question is known, for copies and deletions that come late.
const LATE: Duration = Duration::from_secs(5);
/// What a copy may lack of its original, in Unicode scalars, if that is more than it has:
/// the tags that apps take away are short. Less is no copy while the original is there.
const TAGS: usize = 16;
/// Questions known of one person in a server.
const PER_PERSON: usize = 4;
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
    came: Instant,
    request: TurnRequest,
    state: State,
    /// The request that its copy makes, and the event of the copy while that is not finished.
    copy: Option<(TurnRequest, Option<Mark>)>,
    /// Its copy was asked: nothing more can come of it.
    is_over: bool,
}

/// What has become of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It waits; its event is not finished.
    Waits(Mark),
    /// It was asked.
    Asked,
    /// It was deleted while it was being answered: whether it was tells the end of its turn.
    Cancelled,
    /// It was deleted before it was answered.
    Deleted,
}

/// How far a question has come that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// It waits for its turn.
    Queued,
    /// It is being answered.
    Running,
    /// It was answered, or refused.
    Over,
}

/// What is to be done next.
#[derive(Debug)]
pub(super) enum Step {
    /// Ask this.
    Ask(TurnRequest, Option<Mark>),
    /// The event leads to nothing.
    Finish(Mark),
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
    ) -> Option<Step> {
        let (id, guild) = (request.trigger.id, request.trigger.guild);
        if self
            .questions
            .iter()
            .any(|one| one.request.trigger.id == id)
        {
            return Some(Step::Finish(mark));
        }
        let has_room = self.make_room(guild, request.asker());
        let waits = has_room && !self.wait.is_zero() && self.seen.contains(&home);
        if has_room {
            self.questions.push_back(Question {
                guild,
                came: now,
                request: request.clone(),
                state: if waits {
                    State::Waits(mark)
                } else {
                    State::Asked
                },
                copy: None,
                is_over: false,
            });
        }
        (!waits).then_some(Step::Ask(request, Some(mark)))
    }

    /// Makes room for one more: questions that no longer wait give way. Returns whether
    /// there is room.
    fn make_room(&mut self, guild: Option<GuildId>, asker: UserId) -> bool {
        let of_person = |one: &Question| one.guild == guild && one.request.asker() == asker;
        self.limit(PER_PERSON, of_person)
            && self.limit(PER_GUILD, |one| one.guild == guild)
            && self.limit(IN_ALL, |_| true)
    }

    fn limit(&mut self, most: usize, is_counted: impl Fn(&Question) -> bool) -> bool {
        if self.questions.iter().filter(|one| is_counted(one)).count() < most {
            return true;
        }
        let mut questions = self.questions.iter();
        let gives_way = questions.position(|one| is_counted(one) && !one.waits());
        gives_way.is_some_and(|at| self.questions.remove(at).is_some())
    }

    /// The question that an app's message copies: without mentions of us, its text has all
    /// of the copy's and little else, unless it was deleted. Of several the shortest.
    pub(super) fn original_of(&self, copy: &Message, us: &Us) -> Option<Arc<Message>> {
        let copied = us.without_mentions(&copy.content);
        if copied.is_empty() {
            return None;
        }
        let questions = self.questions.iter();
        let open = questions.filter(|one| {
            let trigger = &one.request.trigger;
            one.copy.is_none() && trigger.channel == copy.channel && trigger.id < copy.id
        });
        let chars = copied.chars().count();
        let fitting = open.filter(|one| {
            let text = us.without_mentions(&one.request.trigger.content);
            let lacks = text.chars().count().saturating_sub(chars);
            let is_like = one.state == State::Deleted || lacks <= chars.max(TAGS);
            is_like && text.contains(&copied)
        });
        let best = fitting.min_by_key(|one| one.request.trigger.content.len());
        best.map(|one| Arc::clone(&one.request.trigger))
    }

    /// Takes the copy of a question.
    pub(super) fn take_copy(
        &mut self,
        original: MessageId,
        request: TurnRequest,
        mark: Mark,
    ) -> Option<Step> {
        let is_original = |one: &Question| one.request.trigger.id == original;
        let Some(at) = self.questions.iter().position(is_original) else {
            return Some(Step::Ask(request, Some(mark)));
        };
        match self.questions[at].state {
            State::Waits(_) => {
                self.questions[at].copy = Some((request, Some(mark)));
                None
            }
            State::Asked | State::Cancelled => {
                self.questions[at].copy = Some((request, None));
                Some(Step::Finish(mark))
            }
            State::Deleted => {
                self.questions.remove(at);
                Some(Step::Ask(request, Some(mark)))
            }
        }
    }

    /// Messages were deleted; `progress` is that of a question which was asked.
    pub(super) fn deleted(
        &mut self,
        ids: &[MessageId],
        progress: impl Fn(MessageId) -> Progress,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        for question in &mut self.questions {
            question.forget_copy(ids, &mut steps);
            let id = question.request.trigger.id;
            if !ids.contains(&id) {
                continue;
            }
            match (question.state, progress(id)) {
                (State::Waits(mark), _) => {
                    steps.push(Step::Finish(mark));
                    question.give_way(&mut steps);
                }
                (State::Asked, Progress::Queued) => question.give_way(&mut steps),
                (State::Asked, Progress::Running) => question.state = State::Cancelled,
                (State::Asked, Progress::Over) | (State::Cancelled | State::Deleted, _) => {}
            }
        }
        self.questions.retain(|one| !one.is_over);
        steps
    }

    /// The turn of a question has ended; `was_cancelled` if without an answer.
    pub(super) fn ended(&mut self, id: MessageId, was_cancelled: bool) -> Vec<Step> {
        let mut steps = Vec::new();
        for question in &mut self.questions {
            if question.request.trigger.id != id || question.state != State::Cancelled {
                continue;
            }
            if was_cancelled {
                question.give_way(&mut steps);
            } else {
                question.state = State::Asked;
            }
        }
        self.questions.retain(|one| !one.is_over);
        steps
    }

    /// A message was edited.
    pub(super) fn edited(&mut self, message: &Message) {
        for question in &mut self.questions {
            if question.request.trigger.id == message.id {
                question.request.trigger = Arc::new(message.clone());
            }
            let original = Arc::clone(&question.request.trigger);
            if let Some((copy, _)) = &mut question.copy
                && copy.trigger.id == message.id
            {
                copy.trigger = Arc::new(joined(message, &original));
            }
        }
    }

    /// When something is due next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.questions.iter().map(|one| self.due_of(one)).min()
    }

    fn due_of(&self, question: &Question) -> Instant {
        let late = if question.waits() {
            Duration::ZERO
        } else {
            LATE
        };
        question.came + self.wait + late
    }

    /// What is due.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Step> {
        let wait = self.wait;
        self.questions
            .retain(|one| one.waits() || one.came + wait + LATE > now);
        let mut steps = Vec::new();
        for question in &mut self.questions {
            let State::Waits(mark) = question.state else {
                continue;
            };
            if question.came + wait > now {
                continue;
            }
            question.state = State::Asked;
            steps.push(Step::Ask(question.request.clone(), Some(mark)));
            let of_copy = question.copy.as_mut().and_then(|(_, mark)| mark.take());
            steps.extend(of_copy.map(Step::Finish));
        }
        steps
    }

    /// The questions that wait in a channel.
    pub(super) fn waiting_in(&self, channel: ChannelId) -> impl Iterator<Item = MessageId> {
        let here = self.questions.iter();
        let here = here.filter(move |one| one.waits() && one.request.trigger.channel == channel);
        here.map(|one| one.request.trigger.id)
    }

    /// The copies in a channel whose originals are still there.
    pub(super) fn copies_in(&self, channel: ChannelId) -> impl Iterator<Item = MessageId> {
        let copies = self.questions.iter().filter_map(|one| one.copy.as_ref());
        let here = copies.filter(move |(request, _)| request.trigger.channel == channel);
        here.map(|(request, _)| request.trigger.id)
    }

    /// Forgets all questions, of which none is finished: the next process gets those that
    /// wait again.
    pub(super) fn close(&mut self) {
        self.questions.clear();
    }
}

impl Question {
    const fn waits(&self) -> bool {
        matches!(self.state, State::Waits(_))
    }

    /// It is gone: its copy is asked instead, now or when it comes.
    fn give_way(&mut self, steps: &mut Vec<Step>) {
        let copy = self.copy.take();
        self.state = State::Deleted;
        self.is_over = copy.is_some();
        steps.extend(copy.map(|(request, mark)| Step::Ask(request, mark)));
    }

    /// A copy that is deleted is none.
    fn forget_copy(&mut self, ids: &[MessageId], steps: &mut Vec<Step>) {
        if let Some((_, mark)) = self
            .copy
            .take_if(|(copy, _)| ids.contains(&copy.trigger.id))
        {
            steps.extend(mark.map(Step::Finish));
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
