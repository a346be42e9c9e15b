//! What telemetry and the log are told of a turn, as it goes on and at its end.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::gathered;
use crate::llm::{self, AnswerEnd};
use crate::model::{Consent, CutBy, ImagesSent, ModelReceipt, Receipt, ToolName, ToolReceipt};
use crate::runs::Doing;
use crate::telemetry::event::{
    AnswerLeft, AnswerSent, LlmFailure, OrderWord, Outcome, RequestFailed, RequestOk, RunDone,
    RunEnd, SendFallback, SendStage, TailFallback, ToolCalled, ToolOutcome, TurnDone,
};
use crate::telemetry::{Event, Ids, Ms, Stopwatch, Telemetry, TurnStage};
use crate::tools::ToolResult;
use crate::turn::Turn;
use crate::turn::ask::AnswerTimes;
use crate::turn::deliver::PostedAnswer;
use crate::turn::gather::TurnMaterial;
use crate::turn::gather::prompt::FittedPrompt;
use clew_context::engine::turn::Collected;
use clew_context::model::{Fallback, Scene};
use clew_store::model::Scope;

/// Tells of one turn over all its attempts.
pub(in crate::turn) struct TurnReport<'a> {
    telemetry: &'a Telemetry,
    ids: Ids,
    came: Instant,
    known: Mutex<Progress>,
}

/// How far a turn has come, and what it is about.
struct Progress {
    stages: Stopwatch,
    /// None until an attempt has gathered its context.
    receipt: Option<Receipt>,
    /// When the model was first asked.
    model_asked: Option<Instant>,
    /// The conversation in which the turn is stored.
    conversation: Option<Scope>,
    /// What an earlier process had left of the answer.
    left: Option<AnswerLeft>,
    order: Option<OrderWord>,
}

impl<'a> TurnReport<'a> {
    pub(in crate::turn) fn new(telemetry: &'a Telemetry, ids: Ids, came: Instant) -> Self {
        Self {
            telemetry,
            ids,
            came,
            known: Mutex::new(Progress {
                stages: Stopwatch::new(came),
                receipt: None,
                model_asked: None,
                conversation: None,
                left: None,
                order: None,
            }),
        }
    }

    pub(in crate::turn) fn enters(&self, stage: TurnStage) {
        self.known.lock().stages.enters(stage, Instant::now());
    }

    /// An attempt has gathered its context.
    pub(in crate::turn) fn gathered(&self, turn: &Turn<'_>, material: &TurnMaterial) {
        let mut receipt = gathered::receipt(turn, material);
        for event in gathered::events(turn, material, &receipt) {
            self.emit(event);
        }
        let place = material.background.as_ref().map(|one| &one.place);
        let mut known = self.known.lock();
        // What people decided for an attempt before stays.
        let before = known.receipt.take().map(|before| before.tools);
        let decided = before.into_iter().flatten();
        let decided = decided.filter(|one| one.consent.is_some());
        receipt.tools.splice(0..0, decided);
        known.receipt = Some(receipt);
        known.conversation = place.map(|place| place.scope);
    }

    /// The model is about to be asked this, at the server with this number.
    pub(in crate::turn) fn asks_model(
        &self,
        model: &str,
        server: usize,
        asked: &FittedPrompt,
        collected: &Collected,
        images: ImagesSent,
    ) {
        let mut known = self.known.lock();
        known.model_asked.get_or_insert_with(Instant::now);
        if let Some(receipt) = &mut known.receipt {
            receipt.prompt = gathered::prompt(asked, collected);
            let known = receipt.model.get_or_insert_default();
            model.clone_into(&mut known.name);
            known.server = server;
            known.images = images;
        }
    }

    /// A request brought no answer.
    pub(in crate::turn) fn request_failed(
        &self,
        reason: LlmFailure,
        took: Duration,
        attempt: u32,
        will_retry: bool,
    ) {
        let (ModelReceipt { name, server, .. }, agent) = self.asked();
        self.emit(RequestFailed {
            reason,
            ms: Ms::from(took),
            attempt,
            will_retry,
            server,
            model: name,
            agent: Some(agent),
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
        let first = times.first_words.unwrap_or_else(Instant::now);
        self.answers(end, times.first_words);
        let (asked, agent) = self.asked();
        self.emit(RequestOk {
            ms_first: Ms::from(first - times.asked),
            ms: Ms::from(times.asked.elapsed()),
            prompt_chars,
            prompt_tokens: end.usage.map(|usage| usage.prompt_tokens),
            cached_tokens: end.usage.and_then(|usage| usage.cached_tokens),
            completion_tokens: end.usage.map(|usage| usage.completion_tokens),
            reasoning_tokens: end.usage.and_then(|usage| usage.reasoning_tokens),
            finish: end.finish_reason,
            attempt,
            server: asked.server,
            model: asked.name,
            response_model: end.model.clone(),
            agent: Some(agent),
            images: asked.images.count,
            image_bytes: asked.images.bytes,
        });
    }

    fn answers(&self, end: &AnswerEnd, first_words: Option<Instant>) {
        let mut known = self.known.lock();
        let receipt = known.receipt.as_mut();
        let Some(model) = receipt.and_then(|receipt| receipt.model.as_mut()) else {
            return;
        };
        let waited = first_words.map(|first| first - self.came);
        model.first_words = model.first_words.or(waited);
        model.cut_by = cut_by(end.finish_reason);
        if let Some(usage) = end.usage {
            let prompt = model.prompt_tokens.saturating_add(usage.prompt_tokens);
            let answer = &mut model.completion_tokens;
            *answer = answer.saturating_add(usage.completion_tokens);
            model.prompt_tokens = prompt;
        }
    }

    /// A call of a tool has ended. No tool is told if there is none of that name.
    pub(in crate::turn) fn tool_called(
        &self,
        tool: Option<ToolName>,
        result: &ToolResult,
        took: Duration,
        round: usize,
    ) {
        let tool = tool.map(|tool| tool.to_string());
        if let Some(receipt) = &mut self.known.lock().receipt {
            receipt.tools.push(ToolReceipt {
                name: tool.clone(),
                took,
                consent: result.consent,
            });
        }
        let (_, agent) = self.asked();
        self.emit(ToolCalled {
            tool,
            outcome: result.outcome,
            ms: Ms::from(took),
            bytes: result.bytes,
            round,
            agent,
            search: result.search,
            consent: result.consent,
        });
    }

    /// The turn ends, or begins anew, while a call of a server's tool waits for consent or is
    /// made.
    pub(in crate::turn) fn given_up(&self, tool: &str, consent: Consent, round: usize) {
        if let Some(receipt) = &mut self.known.lock().receipt {
            receipt.tools.push(ToolReceipt {
                name: Some(tool.to_owned()),
                took: Duration::ZERO,
                consent: Some(consent),
            });
        }
        let (_, agent) = self.asked();
        self.emit(ToolCalled {
            tool: Some(tool.to_owned()),
            outcome: ToolOutcome::Refused,
            ms: Ms::default(),
            bytes: 0,
            round,
            agent,
            search: None,
            consent: Some(consent),
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

    /// What an earlier process had left of the answer.
    pub(in crate::turn) fn left(&self, left: Option<AnswerLeft>) {
        self.known.lock().left = left;
    }

    /// What somebody told the turn.
    pub(in crate::turn) fn ordered(&self, order: OrderWord) {
        self.known.lock().order = Some(order);
    }

    /// The thread cannot be answered in.
    pub(in crate::turn) fn thread_closed(&self, reason: Fallback) {
        self.emit(TailFallback { reason });
    }

    /// What the answer was made from, as far as is known.
    pub(in crate::turn) fn receipt(&self) -> Option<Receipt> {
        let receipt = self.known.lock().receipt.clone()?;
        Some(Receipt {
            took: self.came.elapsed(),
            ..receipt
        })
    }

    pub(in crate::turn) fn over(&self, outcome: Outcome) {
        let now = Instant::now();
        let mut known = self.known.lock();
        let stages = known.stages.read(now);
        let (receipt, conversation) = (known.receipt.take(), known.conversation);
        let done = TurnDone {
            outcome,
            ms: Ms::from(now - self.came),
            ms_to_model: known.model_asked.map(|asked| Ms::from(asked - self.came)),
            case: receipt.as_ref().map(|receipt| receipt.scene),
            agent: receipt.as_ref().and_then(|receipt| receipt.agent.clone()),
            model: receipt.and_then(|receipt| Some(receipt.model?.name)),
            left: known.left,
            order: known.order,
        };
        drop(known);
        log(&self.telemetry.styled(&self.ids), &done);
        let (telemetry, ids) = (self.telemetry, &self.ids);
        telemetry.turn_over(ids, conversation, done, &stages);
    }

    /// The agent run that the turn does is over.
    pub(in crate::turn) fn run_done(&self, end: RunEnd, doing: &Doing) {
        self.emit(RunDone {
            end,
            rounds: Some(doing.rounds),
            calls: Some(doing.called.values().sum()),
            tokens: Some(doing.tokens),
            ms: Ms::from(self.came.elapsed()),
        });
    }

    /// The model that was asked last, and the agent's name.
    fn asked(&self) -> (ModelReceipt, String) {
        let known = self.known.lock();
        let receipt = known.receipt.as_ref();
        let asked = receipt.map(|receipt| (receipt.model.clone(), receipt.agent.clone()));
        let (model, agent) = asked.unwrap_or_default();
        (model.unwrap_or_default(), agent.unwrap_or_default())
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

const fn cut_by(reason: llm::FinishReason) -> Option<CutBy> {
    match reason {
        llm::FinishReason::Length => Some(CutBy::Tokens),
        llm::FinishReason::ContentFilter => Some(CutBy::Filter),
        llm::FinishReason::CutOff => Some(CutBy::Length),
        llm::FinishReason::Stop | llm::FinishReason::ToolCalls | llm::FinishReason::Other => None,
    }
}
