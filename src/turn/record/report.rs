//! What telemetry and the log are told of a turn, as it goes on and at its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::gathered;
use crate::llm::{self, AnswerEnd};
use crate::telemetry::event::{
    AnswerSent, Finish, LlmFailure, Outcome, RequestFailed, RequestOk, SendFallback, SendStage,
    TailFallback, TurnDone,
};
use crate::telemetry::{Event, Ids, Ms, Telemetry};
use crate::turn::Turn;
use crate::turn::ask::AnswerTimes;
use crate::turn::deliver::PostedAnswer;
use crate::turn::gather::TurnMaterial;
use clew_context::model::{Fallback, Scene};

/// Tells of one turn over all its attempts.
pub(in crate::turn) struct TurnReport<'a> {
    telemetry: &'a Telemetry,
    ids: Ids,
    /// When the trigger came.
    came: Instant,
    known: Mutex<Known>,
}

/// What is known of a turn so far.
#[derive(Default)]
struct Known {
    scene: Option<Scene>,
    /// The agent's name.
    agent: Option<String>,
    /// The model's name; none if the inspector answers.
    model: Option<String>,
    /// Which server was asked last, from 1.
    server: usize,
    /// When the model was first asked.
    model_asked: Option<Instant>,
}

impl<'a> TurnReport<'a> {
    pub(in crate::turn) fn new(telemetry: &'a Telemetry, ids: Ids, came: Instant) -> Self {
        Self {
            telemetry,
            ids,
            came,
            known: Mutex::default(),
        }
    }

    /// An attempt has gathered its context.
    pub(in crate::turn) fn gathered(&self, turn: &Turn<'_>, material: &TurnMaterial) {
        let mut known = self.known();
        known.scene = Some(material.collected.scene);
        known.agent = material.agent_name();
        known.model = material
            .model
            .as_ref()
            .map(|one| one.first().model().to_owned());
        drop(known);
        for event in gathered::events(turn, material) {
            self.emit(event);
        }
    }

    /// The model is about to be asked, at the server with this number.
    pub(in crate::turn) fn asks_model(&self, model: &str, server: usize) {
        let mut known = self.known();
        known.model_asked.get_or_insert_with(Instant::now);
        known.model = Some(model.to_owned());
        known.server = server;
    }

    /// A request brought no answer.
    pub(in crate::turn) fn request_failed(
        &self,
        reason: LlmFailure,
        attempt: u32,
        will_retry: bool,
    ) {
        let (model, agent) = self.names();
        self.emit(RequestFailed {
            reason,
            attempt,
            will_retry,
            server: self.known().server,
            model,
            agent,
        });
    }

    /// A request brought a whole answer.
    pub(in crate::turn) fn request_ok(
        &self,
        end: &AnswerEnd,
        prompt_chars: usize,
        times: AnswerTimes,
        attempt: u32,
    ) {
        let (model, agent) = self.names();
        let first = times.first_words.unwrap_or_else(Instant::now);
        self.emit(RequestOk {
            ms_first: Ms::from(first - times.asked),
            ms: Ms::from(times.asked.elapsed()),
            prompt_chars,
            prompt_tokens: end.usage.map(|usage| usage.prompt_tokens),
            completion_tokens: end.usage.map(|usage| usage.completion_tokens),
            finish: finish(end.finish_reason),
            attempt,
            server: self.known().server,
            model,
            agent,
        });
    }

    /// An answer has been posted completely.
    pub(in crate::turn) fn sent(&self, posted: &PostedAnswer<'_>, text: &str) {
        self.emit(AnswerSent {
            messages: posted.messages(),
            chars: posted.shown(text).chars().count(),
            attached: posted.attached,
            edits: posted.edits,
            reply: posted.replied(),
            pinged: posted.pinged(),
        });
    }

    /// The parts of an answer that Discord did not take.
    pub(in crate::turn) fn left_out(&self, posted: &PostedAnswer<'_>) {
        if let Some(reason) = posted.reference_dropped {
            self.not_sent(reason, SendStage::Reference);
        }
        if let Some(reason) = posted.cut() {
            self.not_sent(reason, SendStage::Attach);
        }
    }

    /// Something could not be sent.
    pub(in crate::turn) fn not_sent(&self, reason: Fallback, stage: SendStage) {
        self.emit(SendFallback { reason, stage });
    }

    /// The thread cannot be answered in.
    pub(in crate::turn) fn thread_closed(&self, reason: Fallback) {
        self.emit(TailFallback { reason });
    }

    /// The turn is over.
    pub(in crate::turn) fn over(&self, outcome: Outcome) {
        let known = std::mem::take(&mut *self.known());
        let done = TurnDone {
            outcome,
            ms: Ms::from(self.came.elapsed()),
            ms_to_model: known.model_asked.map(|asked| Ms::from(asked - self.came)),
            case: known.scene,
            agent: known.agent,
            model: known.model,
        };
        log(&self.telemetry.styled(&self.ids), &done);
        self.emit(done);
    }

    /// The names of the model and the agent.
    fn names(&self) -> (String, String) {
        let known = self.known();
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        (name(&known.model), name(&known.agent))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn emit(&self, event: impl Into<Event>) {
        self.telemetry.emit(&self.ids, event);
    }
}

/// Logs one line per turn, for people.
fn log(ids: &Ids, done: &TurnDone) {
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

fn finish(reason: llm::FinishReason) -> Finish {
    match reason {
        llm::FinishReason::Stop => Finish::Stop,
        llm::FinishReason::Length => Finish::Length,
        llm::FinishReason::ContentFilter => Finish::ContentFilter,
        llm::FinishReason::CutOff => Finish::CutOff,
        llm::FinishReason::ToolCalls | llm::FinishReason::Other => Finish::Other,
    }
}
