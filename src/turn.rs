//! A turn: gather, ask, deliver, record; afterwards facts may be learnt from it.
//! What one trigger needs comes in a [`Job`], what all turns share in [`Services`].
//!
//! Invariant: `turn` starts no task and keeps no state of its own; a turn is one
//! future that listens for orders.

mod answer;
mod ask;
mod control;
mod deliver;
mod gather;
mod inspector;
mod learn;
mod line;
mod names;
mod record;
mod remember;
mod reply;
mod services;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::telemetry::event::{Outcome, TurnDone};
use crate::telemetry::{Event, Ids, Ms};
use clew_context::model::{ChannelId, Fallback, MessageId, Scene, TurnRequest, UnixMillis};

pub use control::{Control, Order, Orders};
pub use learn::{Lesson, learn};
pub use line::{
    ELSEWHERE, INTERRUPTED, NO_MESSAGE, NOT_ALLOWED, SWITCHED_OFF, UNKNOWN_COMMAND, refusal,
};
pub use services::{Services, Settings};

use gather::Material;
use reply::Posted;

/// How often typing is sent. Discord shows it for ten seconds.
const TYPING_EVERY: Duration = Duration::from_secs(8);
/// How long typing notices and reactions may take.
const ASIDE_TIMEOUT: Duration = Duration::from_secs(5);

/// One trigger whose place in the queue has come up.
#[derive(Debug)]
pub struct Job {
    /// The trigger and why it is one.
    pub request: TurnRequest,
    /// When the trigger came.
    pub came: Instant,
    /// The newest message seen in the channel when the turn started: messages that
    /// come in before its task runs are not looked at.
    pub newest: Option<MessageId>,
    /// Whether it had to wait for other turns.
    pub waited: bool,
    /// The triggers of other turns that wait or run, or were refused.
    pub other_triggers: BTreeSet<MessageId>,
    /// The turns that run in other channels.
    pub elsewhere: Vec<Elsewhere>,
    /// The orders given while it runs.
    pub control: Control,
}

/// A turn that runs in another channel.
#[derive(Debug, Clone, Copy)]
pub struct Elsewhere {
    /// The channel.
    pub channel: ChannelId,
    /// When the turn started.
    pub since: Instant,
}

/// A turn that is over.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub outcome: Outcome,
    /// What there is to learn from it, for [`learn()`]. Boxed: most turns have nothing.
    pub lesson: Option<Box<Lesson>>,
}

/// Runs one turn to its end and returns how it ended; telemetry has all the rest.
pub async fn run(services: &Services, job: Job) -> Ended {
    let Job {
        mut request,
        came,
        newest,
        waited,
        other_triggers,
        elsewhere,
        mut control,
    } = job;
    let started = Instant::now();
    let asked_at = services.memory.now();
    let mut attempt = 0;
    let mut about = About::default();
    let mut asked = None;
    let done = loop {
        let turn = Turn {
            services,
            request: &request,
            ids: services.ids(&request),
            queued: started - came,
            newest,
            waited,
            other_triggers: &other_triggers,
            elsewhere: &elsewhere,
            started,
            asked: asked_at,
            attempt,
            about: OnceLock::new(),
            model_asked: OnceLock::new(),
        };
        let ended = turn.with_typing(&mut control).await;
        about = turn.about.into_inner().unwrap_or(about);
        asked = asked.or(turn.model_asked.into_inner());
        match ended {
            Ok(done) => break done,
            Err(Order::Restart { trigger, at }) => match control.edited(trigger, at).await {
                Ok(trigger) => {
                    request.trigger = trigger;
                    attempt += 1;
                }
                Err(_) => break Outcome::Cancelled.into(),
            },
            Err(_) => break Outcome::Cancelled.into(),
        }
    };
    let Done { outcome, lesson } = done;
    let done = TurnDone {
        outcome,
        ms: Ms::from(came.elapsed()),
        ms_to_model: asked.map(|asked: Instant| Ms::from(asked - came)),
        case: about.case,
        agent: about.agent,
        model: about.model,
    };
    let ids = services.ids(&request);
    tell(&services.telemetry.styled(&ids), &done);
    services.telemetry.emit(&ids, done);
    Ended { outcome, lesson }
}

/// Logs one line per turn, for people.
fn tell(ids: &Ids, done: &TurnDone) {
    tracing::info!(
        guild = ids.guild.map(display),
        channel = ids.channel.map(display),
        user = ids.user.map(display),
        trigger = ids.message.map(display),
        case = done.case.map(Scene::as_str),
        outcome = done.outcome.as_str(),
        agent = done.agent,
        model = done.model,
        ms = done.ms.whole(),
        ms_to_model = done.ms_to_model.map(Ms::whole),
        "a turn is over"
    );
}

/// One attempt at a turn.
struct Turn<'a> {
    services: &'a Services,
    request: &'a TurnRequest,
    ids: Ids,
    queued: Duration,
    newest: Option<MessageId>,
    waited: bool,
    other_triggers: &'a BTreeSet<MessageId>,
    elsewhere: &'a [Elsewhere],
    started: Instant,
    /// The time with which the turn is stored.
    asked: UnixMillis,
    attempt: u32,
    /// Known once the context has been gathered.
    about: OnceLock<About>,
    /// When the model was first asked.
    model_asked: OnceLock<Instant>,
}

/// What a turn is about, for logs and telemetry.
#[derive(Debug, Default)]
struct About {
    case: Option<Scene>,
    /// The agent's name.
    agent: Option<String>,
    /// The model's name; none if the inspector answers.
    model: Option<String>,
}

impl About {
    fn of(services: &Services, material: &Material) -> Self {
        let agent = material.background.as_ref().map(|one| &one.agent);
        let model = services.model.as_ref().zip(agent).map(|(model, agent)| {
            let own = agent.model.as_deref();
            own.unwrap_or(model.model()).to_owned()
        });
        Self {
            case: Some(material.record.scene),
            agent: agent.map(|agent| agent.name.to_string()),
            model,
        }
    }
}

/// How an attempt ended.
#[derive(Debug)]
struct Done {
    outcome: Outcome,
    lesson: Option<Box<Lesson>>,
}

/// An outcome with nothing to learn from.
impl From<Outcome> for Done {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            lesson: None,
        }
    }
}

impl Turn<'_> {
    /// Shows typing during the turn, without delaying it. A command shows
    /// "thinking" by itself.
    async fn with_typing(&self, control: &mut Control) -> Result<Done, Order> {
        if self.request.cause.interaction().is_some() {
            return self.take(control).await;
        }
        let ours = self.our_access();
        if ours.forbids(|rights| rights.send) {
            let may_react = !ours.forbids(|rights| rights.react);
            self.cannot_write(may_react, Fallback::Forbidden).await;
            return Ok(Outcome::Failed.into());
        }
        tokio::select! {
            biased;
            done = self.take(control) => done,
            never = self.typing() => match never {},
        }
    }

    async fn typing(&self) -> Infallible {
        let channel = self.request.trigger.channel;
        loop {
            let deadline = Instant::now() + ASIDE_TIMEOUT;
            if let Err(error) = self.services.rest.typing(channel, deadline).await {
                tracing::debug!(%error, "typing was not shown");
            }
            sleep(TYPING_EVERY).await;
        }
    }

    /// Until the answer is complete, an order takes back what was posted.
    async fn take(&self, control: &mut Control) -> Result<Done, Order> {
        let material = match control.unless_ordered(Box::pin(self.gather())).await {
            Ok(material) => material,
            Err(order) => {
                self.interrupted(&order).await;
                return Err(order);
            }
        };
        let about = About::of(self.services, &material);
        let events = material.record.events(about.agent.as_deref());
        // It is not set yet.
        let _ = self.about.set(about);
        for event in events {
            self.emit(event);
        }
        let destination = self.destination(&material.collected);
        let mut posted = self.posted(destination);
        let answered = self.answer(&material, &mut posted, control).await;
        self.report(&posted);
        let ordered = match answered {
            Ok(done) => match control.revoked() {
                None => return Ok(done),
                Some(order) => order,
            },
            Err(order) => order,
        };
        if posted.messages() > 0 {
            let ids = self.services.telemetry.styled(&self.ids);
            tracing::info!(
                channel = ids.channel.map(display),
                trigger = ids.message.map(display),
                because = ordered.why(),
                "1 answer was taken back"
            );
        }
        posted.remove().await;
        Err(ordered)
    }

    /// Answers: by the model, by the inspector, or with an invitation.
    async fn answer(
        &self,
        material: &Material,
        posted: &mut Posted<'_>,
        control: &mut Control,
    ) -> Result<Done, Order> {
        let Material {
            record,
            prepared,
            collected,
            ..
        } = material;
        if collected.target.withheld {
            let refused = posted.say(line::WITHHELD).await;
            return Ok(self.outcome(refused, Outcome::Refused).await.into());
        }
        if !prepared.has_question {
            let unread = record
                .fallbacks
                .first()
                .is_some_and(|_| record.scene == Scene::Thread);
            let line = if unread {
                line::UNREAD_THREAD
            } else {
                line::INVITATION
            };
            let refused = posted.say(line).await;
            return Ok(self.outcome(refused, Outcome::Refused).await.into());
        }
        if material.background.is_none() {
            let refused = posted.say(line::NO_AGENT).await;
            return Ok(self.outcome(refused, Outcome::Refused).await.into());
        }
        if let Some(model) = &material.model {
            return self.ask(model, material, posted, control).await;
        }
        let text = inspector::answer(record);
        Ok(self.finish(posted, &text).await.into())
    }

    fn model_name(&self) -> String {
        let about = self.about.get();
        about
            .and_then(|about| about.model.clone())
            .unwrap_or_default()
    }

    fn agent_name(&self) -> String {
        let about = self.about.get();
        about
            .and_then(|about| about.agent.clone())
            .unwrap_or_default()
    }

    fn emit(&self, event: impl Into<Event>) {
        self.services.telemetry.emit(&self.ids, event);
    }
}
