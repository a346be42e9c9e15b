//! A turn: collect, prepare, ask, deliver, record. What one trigger needs
//! comes in a [`Job`]; what all turns share in [`Services`].
//!
//! Invariant: `turn` starts no task and keeps no state of its own; a turn is
//! one future that listens for orders.

mod answer;
mod control;
mod inspector;
mod line;
mod outlet;
mod record;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::collect::prepare::{Prepared, Surroundings, halved, prepare};
use crate::collect::{Collected, Learnt, Live, Occasion, Recall, collect};
use crate::discord::error::RestError;
use crate::discord::facts::{Facts, Verdict};
use crate::discord::rest::Rest;
use crate::engine::deliver;
use crate::engine::eligible::Us;
use crate::engine::render::Directory;
use crate::engine::window::{View, Window};
use crate::llm::{self, Completion};
use crate::model::{
    Access, ChannelId, ChatMessage, Fallback, GuildId, Limits, Message, MessageId, Profiles,
    ReplyTarget, RoleId, Scene, TurnRequest, UserId,
};
use crate::telemetry::event::{
    Finish, LlmFailure, Outcome, RequestFailed, RequestOk, SendFallback, SendStage, Sent, TurnDone,
};
use crate::telemetry::{Ids, Ms, Telemetry};

pub use control::{Control, Order, Orders};
pub use line::{ELSEWHERE, NO_MESSAGE, NOT_ALLOWED, ONLY_MENTIONS, UNKNOWN_COMMAND, refusal};
pub use record::TurnRecord;

use answer::{Ended, Times};
use outlet::{Outlet, Posted};

/// Typing shows for ten seconds.
const TYPING_EVERY: Duration = Duration::from_secs(8);
/// A typing notice nobody waits for.
const TYPING_TIMEOUT: Duration = Duration::from_secs(5);
/// The sign that we cannot write here.
const CANNOT_WRITE: &str = "🔇";

/// What all turns share.
#[derive(Debug)]
pub struct Services {
    /// Discord's REST API.
    pub rest: Rest,
    /// What the gateway told of servers, channels and roles.
    pub facts: Arc<Facts>,
    /// The model; without one the inspector answers.
    pub model: Option<llm::Client>,
    /// The events.
    pub telemetry: Telemetry,
    /// Recent messages.
    pub window: Mutex<Window>,
    /// What turns have learnt for the next ones.
    pub recall: Recall,
    /// The settings of turns.
    pub settings: Settings,
}

/// The settings of turns.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The operator's prompt.
    pub system: String,
    /// The caps of a block.
    pub limits: Limits,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// `ANSWER_MAX_MESSAGES`.
    pub max_messages: usize,
    /// The key of the frames.
    pub secret: Vec<u8>,
}

/// One trigger, its place in the queue behind it.
#[derive(Debug)]
pub struct Job {
    /// The trigger and why it is one.
    pub request: TurnRequest,
    /// When it came.
    pub came: Instant,
    /// Triggers of other turns that wait or run.
    pub other_triggers: BTreeSet<MessageId>,
    /// Orders while it runs.
    pub control: Control,
}

impl Services {
    /// The window; nothing in it can be left half-written.
    pub fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who we are in a server, or in direct messages.
    pub fn us(&self, guild: Option<GuildId>) -> Us {
        let us = self.facts.us();
        let roles = guild
            .map(|guild| self.facts.our_role_ids(guild))
            .unwrap_or_default();
        match us {
            Some(us) => Us {
                user: us.user,
                name: us.name,
                roles,
            },
            // Before the first READY there are no messages either.
            None => Us {
                user: UserId::new(0),
                name: String::new(),
                roles,
            },
        }
    }
}

/// Runs one turn to its end. Says how it ended; everything else is in the
/// telemetry.
pub async fn run(services: &Services, job: Job) -> Outcome {
    let Job {
        mut request,
        came,
        other_triggers,
        mut control,
    } = job;
    let started = Instant::now();
    let mut attempt = 0;
    let (outcome, asked) = loop {
        let turn = Turn {
            services,
            request: &request,
            ids: ids(services, &request),
            queued: started - came,
            other_triggers: &other_triggers,
            attempt,
        };
        match turn.with_typing(&mut control).await {
            Ok(done) => break done,
            Err(Order::Restart(trigger)) => {
                request.trigger = trigger;
                attempt += 1;
            }
            Err(_) => break (Outcome::Cancelled, None),
        }
    };
    let done = TurnDone {
        outcome,
        ms: Ms::from(came.elapsed()),
        ms_to_model: asked.map(|asked| Ms::from(asked - came)),
    };
    services.telemetry.emit(&ids(services, &request), done);
    outcome
}

fn ids(services: &Services, request: &TurnRequest) -> Ids {
    let ids = Ids::of(request);
    Ids {
        guild: ids
            .guild
            .or_else(|| services.facts.guild_of(request.trigger.channel)),
        ..ids
    }
}

/// One attempt at a turn.
struct Turn<'a> {
    services: &'a Services,
    request: &'a TurnRequest,
    ids: Ids,
    queued: Duration,
    other_triggers: &'a BTreeSet<MessageId>,
    attempt: u32,
}

/// How a turn ended, and when the model was asked.
type Done = (Outcome, Option<Instant>);

impl Turn<'_> {
    /// Typing runs beside the turn, never before it.
    async fn with_typing(&self, control: &mut Control) -> Result<Done, Order> {
        let turn = self.take(control);
        if self.request.cause.interaction().is_some() {
            return turn.await;
        }
        tokio::select! {
            biased;
            done = turn => done,
            () = self.typing() => unreachable!("typing never ends"),
        }
    }

    async fn typing(&self) {
        let channel = self.request.trigger.channel;
        loop {
            let deadline = Instant::now() + TYPING_TIMEOUT;
            if let Err(error) = self.services.rest.typing(channel, deadline).await {
                tracing::debug!(%error, "typing was not shown");
            }
            sleep(TYPING_EVERY).await;
        }
    }

    async fn take(&self, control: &mut Control) -> Result<Done, Order> {
        if let Some(access) = self.our_access()
            && !access.send
            && self.request.cause.interaction().is_none()
        {
            self.cannot_write(access.react, Fallback::Forbidden).await;
            return Ok((Outcome::Failed, None));
        }
        let gathering = self.gather();
        let (collected, record, prepared) = control.unless_ordered(gathering).await?;
        for event in record.events() {
            self.services.telemetry.emit(&self.ids, event);
        }
        let outlet = self.outlet(&collected);
        let mut posted = Posted::new(
            &self.services.rest,
            outlet,
            self.request.turn(),
            self.attempt,
        );
        let done = if !prepared.has_question && record.scene == Scene::Lone {
            let refused = posted.say(line::INVITATION).await;
            (self.outcome(refused, Outcome::Refused).await, None)
        } else {
            match &self.services.model {
                Some(model) => {
                    let asking = self.ask(model, &collected, &prepared, &mut posted, control);
                    match asking.await {
                        Ok(done) => done,
                        Err(order) => {
                            posted.remove().await;
                            return Err(order);
                        }
                    }
                }
                None => {
                    let text = inspector::answer(&record);
                    (self.finish(&mut posted, &text).await, None)
                }
            }
        };
        self.report(&posted);
        Ok(done)
    }

    /// Collects, and prepares the prompt.
    async fn gather(&self) -> (Collected, TurnRecord, Prepared) {
        let services = self.services;
        let trigger = &self.request.trigger;
        let channel = services.facts.channel(trigger.channel);
        let us = services.us(self.ids.guild);
        let (view, starter) = self.window_view(channel.as_ref().and_then(|one| one.parent));
        let limits = &services.settings.limits;
        let occasion = Occasion {
            request: self.request,
            channel: channel.as_ref(),
            us: &us,
            our_access: self.our_access(),
            asker_access: self.asker_access().await,
            view: &view,
            starter: starter.as_ref(),
            other_triggers: self.other_triggers,
            reply_target: services.settings.reply_target,
            limits,
        };
        let began = Instant::now();
        let source = Live {
            rest: &services.rest,
            facts: &services.facts,
        };
        let collected = collect(&source, &services.recall, &occasion).await;
        let collected_in = began.elapsed();
        self.learn(&view, &collected.learnt);
        let prepared = self.prepare(&us, &collected, limits);
        let record = TurnRecord::new(
            self.request,
            self.queued,
            &collected,
            collected_in,
            &view,
            &prepared,
            limits,
        );
        (collected, record, prepared)
    }

    fn prepare(&self, us: &Us, collected: &Collected, limits: &Limits) -> Prepared {
        let trigger = &self.request.trigger;
        let directory = Names {
            facts: &self.services.facts,
            guild: self.ids.guild,
        };
        let scope = format!(
            "{}/{}/{}",
            self.ids.guild.map_or(0, GuildId::get),
            trigger.channel,
            trigger.author.id
        );
        prepare(
            collected,
            &Surroundings {
                us,
                directory: &directory,
                system: &self.services.settings.system,
                secret: &self.services.settings.secret,
                scope: &scope,
                limits,
                profiles: &Profiles::default(),
                history: &[],
            },
        )
    }

    /// The channel's window, and the starter if the parent's holds it.
    fn window_view(&self, parent: Option<ChannelId>) -> (View, Option<Arc<Message>>) {
        let window = self.services.window();
        let channel = self.request.trigger.channel;
        let starter = parent.and_then(|parent| window.message(parent, channel.starter()));
        (window.view(channel), starter)
    }

    fn learn(&self, view: &View, learnt: &Learnt) {
        let mut window = self.services.window();
        if let Some(pages) = &learnt.pages {
            window.adopt(pages.channel, view, pages.from, &pages.messages);
        }
        for (channel, message) in &learnt.single {
            window.keep(*channel, view, std::slice::from_ref(message));
        }
    }

    fn our_access(&self) -> Option<Access> {
        self.services.facts.our_access(self.request.trigger.channel)
    }

    /// Roles come from the asker's own message. A private thread is asked for
    /// the asker's membership; who writes in it is a member.
    async fn asker_access(&self) -> Option<Access> {
        let trigger = &self.request.trigger;
        let facts = &self.services.facts;
        match facts.access(
            trigger.author.id,
            &self.request.asker_roles,
            trigger.channel,
        )? {
            Verdict::Known(access) => Some(access),
            Verdict::AskMembership { member } if self.request.cause.interaction().is_none() => {
                Some(member)
            }
            Verdict::AskMembership { member } => {
                let deadline = Instant::now() + self.services.settings.limits.fetch_timeout;
                let author = trigger.author.id;
                let asked = self
                    .services
                    .rest
                    .thread_member(trigger.channel, author, deadline)
                    .await;
                Some(if asked.unwrap_or(false) {
                    member
                } else {
                    Access::NONE
                })
            }
        }
    }

    fn outlet(&self, collected: &Collected) -> Outlet {
        if let Some(interaction) = self.request.cause.interaction() {
            return Outlet::Interaction(Box::new(interaction.clone()));
        }
        let target = collected.target.reply_to.as_ref();
        Outlet::Channel {
            channel: self.request.trigger.channel,
            reply_to: target.map(|target| target.id),
            ping: target.is_some_and(|target| target.author.id == self.request.asker()),
        }
    }

    /// Asks the model; once more with half the room if the prompt was too
    /// long for it.
    async fn ask(
        &self,
        model: &llm::Client,
        collected: &Collected,
        prepared: &Prepared,
        posted: &mut Posted<'_>,
        control: &mut Control,
    ) -> Result<Done, Order> {
        let (first, times) = self
            .stream(model, &prepared.prompt.messages, posted, control)
            .await?;
        let asked = Some(times.asked);
        let Err(llm::Error::ContextTooLong { .. }) = &first else {
            let done = self
                .conclude(first, &prepared.prompt.messages, times, 1, posted)
                .await;
            return Ok((done, asked));
        };
        self.failed(LlmFailure::ContextTooLong, 1, true);
        let us = self.services.us(self.ids.guild);
        let smaller = self.prepare(&us, collected, &halved(&self.services.settings.limits));
        let messages = &smaller.prompt.messages;
        let (second, times) = self.stream(model, messages, posted, control).await?;
        Ok((
            self.conclude(second, messages, times, 2, posted).await,
            asked,
        ))
    }

    async fn stream(
        &self,
        model: &llm::Client,
        prompt: &[ChatMessage],
        posted: &mut Posted<'_>,
        control: &mut Control,
    ) -> Result<(Result<Completion, llm::Error>, Times), Order> {
        let max_messages = self.services.settings.max_messages;
        let (ended, times) = answer::stream(model, prompt, posted, control, max_messages).await;
        match ended {
            Ended::Model(result) => Ok((result, times)),
            Ended::Ordered(order) => Err(order),
            Ended::Refused(error) => {
                self.not_sent(error, posted).await;
                Err(Order::Cancel)
            }
        }
    }

    async fn conclude(
        &self,
        result: Result<Completion, llm::Error>,
        prompt: &[ChatMessage],
        times: Times,
        attempt: u32,
        posted: &mut Posted<'_>,
    ) -> Outcome {
        match result {
            Ok(completion) => {
                self.succeeded(&completion, prompt, times, attempt);
                self.finish(posted, &completion.text).await
            }
            Err(error) => {
                tracing::warn!(error = %chain(&error), "the model gave no answer");
                let reason = LlmFailure::from_word(error.reason());
                self.failed(reason.unwrap_or(LlmFailure::Malformed), attempt, false);
                if error.partial().trim().is_empty() {
                    let said = posted.say(&line::model_failed(&error)).await;
                    return self.outcome(said, Outcome::Failed).await;
                }
                let text = format!("{}{}", error.partial(), line::BROKE_OFF);
                self.finish(posted, &text).await;
                Outcome::Failed
            }
        }
    }

    /// Shows the whole answer.
    async fn finish(&self, posted: &mut Posted<'_>, text: &str) -> Outcome {
        let delivery = deliver::split(text, self.services.settings.max_messages);
        let shown = answer::show(posted, &delivery).await;
        if shown.is_ok() {
            let sent = Sent {
                messages: posted.messages(),
                chars: text.chars().count(),
                attached: posted.attached,
                edits: posted.edits,
                reply: posted.replied(),
                pinged: posted.pinged(),
            };
            self.services.telemetry.emit(&self.ids, sent);
        }
        self.outcome(shown, Outcome::Answered).await
    }

    async fn outcome(&self, shown: Result<(), RestError>, otherwise: Outcome) -> Outcome {
        match shown {
            Ok(()) => otherwise,
            Err(error) => {
                self.undelivered(error).await;
                Outcome::Failed
            }
        }
    }

    async fn not_sent(&self, error: RestError, posted: &Posted<'_>) {
        tracing::warn!(%error, posted = posted.messages(), "an answer could not be sent");
        self.undelivered(error).await;
    }

    async fn undelivered(&self, error: RestError) {
        let react = self.our_access().is_none_or(|access| access.react);
        if matches!(
            error.reason,
            Fallback::Forbidden | Fallback::Locked | Fallback::Archived
        ) {
            self.cannot_write(react, error.reason).await;
        } else {
            tracing::warn!(%error, "an answer could not be sent");
            self.sending(error.reason, SendStage::Create);
        }
    }

    /// A reaction if that is allowed; the log otherwise says it.
    async fn cannot_write(&self, react: bool, reason: Fallback) {
        self.sending(reason, SendStage::Create);
        let trigger = &self.request.trigger;
        let is_message = self.request.cause.interaction().is_none();
        if react && is_message {
            let deadline = Instant::now() + TYPING_TIMEOUT;
            let rest = &self.services.rest;
            let reacted = rest.add_reaction(trigger.channel, trigger.id, CANNOT_WRITE, deadline);
            match reacted.await {
                Ok(()) => return,
                Err(error) => self.sending(error.reason, SendStage::React),
            }
        }
        if self
            .services
            .recall
            .first_today(trigger.channel, Instant::now())
        {
            tracing::warn!(channel = %trigger.channel, %reason,
                "cannot write in this channel: give the bot Send Messages (in threads Send \
                 Messages in Threads) there, or deny it View Channel");
        }
    }

    fn report(&self, posted: &Posted<'_>) {
        if let Some(reason) = posted.reference_dropped {
            self.sending(reason, SendStage::Reference);
        }
    }

    fn sending(&self, reason: Fallback, stage: SendStage) {
        self.services
            .telemetry
            .emit(&self.ids, SendFallback { reason, stage });
    }

    fn failed(&self, reason: LlmFailure, attempt: u32, will_retry: bool) {
        self.services.telemetry.emit(
            &self.ids,
            RequestFailed {
                reason,
                attempt,
                will_retry,
            },
        );
    }

    fn succeeded(
        &self,
        completion: &Completion,
        prompt: &[ChatMessage],
        times: Times,
        attempt: u32,
    ) {
        let first = times.first_words.unwrap_or_else(Instant::now);
        let chars = prompt.iter().map(|message| message.content.chars().count());
        let ok = RequestOk {
            ms_first: Ms::from(first - times.asked),
            ms: Ms::from(times.asked.elapsed()),
            prompt_chars: chars.sum(),
            prompt_tokens: completion.usage.map(|usage| usage.prompt_tokens),
            completion_tokens: completion.usage.map(|usage| usage.completion_tokens),
            finish: finish(completion.finish_reason),
            attempt,
        };
        self.services.telemetry.emit(&self.ids, ok);
    }
}

fn finish(reason: llm::FinishReason) -> Finish {
    match reason {
        llm::FinishReason::Stop => Finish::Stop,
        llm::FinishReason::Length => Finish::Length,
        llm::FinishReason::ContentFilter => Finish::ContentFilter,
        llm::FinishReason::Other => Finish::Other,
    }
}

/// An error with its sources, for the log.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// Names from what the gateway told.
struct Names<'a> {
    facts: &'a Facts,
    guild: Option<GuildId>,
}

impl Directory for Names<'_> {
    fn user(&self, id: UserId) -> Option<String> {
        self.facts.user_name(self.guild?, id)
    }

    fn role(&self, id: RoleId) -> Option<String> {
        self.facts.role_name(self.guild?, id)
    }

    fn channel(&self, id: ChannelId) -> Option<String> {
        self.facts.channel_name(id)
    }
}
