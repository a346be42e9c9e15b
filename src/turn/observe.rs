//! What an observer is shown of turns as they go on, and what a turn would have been shown
//! with other caps. Nothing is made for it when nobody observes, as in `clew run`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::gather::prompt::{self, FittedPrompt};
use super::gather::{Background, TurnChannels, TurnMaterial, fallbacks};
use super::record::TurnReport;
use super::{Services, Turn, TurnJob};
use crate::llm;
use crate::model::{OmittedMessage, Receipt};
use crate::runs::Activity;
use crate::telemetry::event::Outcome;
use clew_context::collect::{NegativeCache, collect};
use clew_context::discord::rest::RestReader;
use clew_context::discord::{Live, ReadCall};
use clew_context::engine::frame::{self, FrameKind};
use clew_context::engine::prepare::Prepared;
use clew_context::engine::turn::{Collected, TurnInput};
use clew_context::model::{
    Block, ChannelId, ChatMessage, Fallback, HistoryMessage, Limits, MessageId, Profiles,
    ReplyTarget, Role, Scene, Stage, UserId,
};

/// Gets the news of each turn, by its trigger.
pub type TurnObserver = mpsc::UnboundedSender<(MessageId, TurnNews)>;

/// What happened in a turn.
#[derive(Debug)]
pub enum TurnNews {
    /// It has begun.
    Started {
        /// Where it was asked.
        channel: ChannelId,
        /// Who asked.
        asker: UserId,
    },
    /// Its context is collected; again after the trigger was edited.
    Gathered(Box<GatheredTurn>),
    /// The model is asked this; again after it called tools.
    Asks(Vec<SentMessage>),
    /// A message of the answer was posted.
    Posted(MessageId),
    /// It is over.
    Over {
        /// How it ended.
        outcome: Outcome,
        /// What the answer was made from; none if nothing was collected.
        receipt: Option<Box<Receipt>>,
        /// From the trigger to now.
        took: Duration,
    },
}

/// What a turn gathered.
#[derive(Debug)]
pub struct GatheredTurn {
    /// What was known before anything was fetched.
    pub input: TurnInput,
    /// The conversation around the trigger.
    pub context: TurnContext,
    /// The calls to Discord for it.
    pub calls: Vec<ReadCall>,
    /// What the model will be asked.
    pub prompt: Vec<SentMessage>,
    /// What was said before, oldest first, as it is stored.
    pub history: Vec<HistoryMessage>,
    /// What was said before that and resembles the question, likewise.
    pub recalled: Vec<HistoryMessage>,
    /// The facts in the prompt.
    pub profiles: Profiles,
    /// How long the trigger waited for other turns.
    pub queued: Duration,
    /// How long collecting took.
    pub collected_in: Duration,
    background: Option<Background>,
}

/// The conversation around a trigger, as the model reads it, and what is left out of it.
#[derive(Debug, Clone)]
pub struct TurnContext {
    /// What the trigger is.
    pub scene: Scene,
    /// The message that the answer replies to.
    pub target: Option<MessageId>,
    /// What the collectors gave.
    pub block: Block,
    /// The same between its two lines; empty without anything.
    pub framed: String,
    /// An estimate in tokens of the same.
    pub tokens: usize,
    /// The newest messages that are left out, oldest first.
    pub omitted: Vec<OmittedMessage>,
    /// What could not be got, and why.
    pub missing: Vec<(Stage, Fallback)>,
}

/// A message of a prompt, without its images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMessage {
    /// The name that chat completion endpoints give its role.
    pub role: &'static str,
    /// What is said, with the calls of tools.
    pub content: String,
}

impl TurnContext {
    fn of(
        collected: &Collected,
        prepared: &Prepared,
        omitted: Vec<OmittedMessage>,
        missing: Vec<(Stage, Fallback)>,
    ) -> Self {
        let block = &prepared.block;
        let framed = if block.entries.is_empty() && block.title.is_none() {
            String::new()
        } else {
            let inside = frame::block(block);
            frame::wrap(FrameKind::Context, &prepared.prompt.nonce, &inside)
        };
        Self {
            scene: collected.scene,
            target: collected.target.reply_to.as_ref().map(|message| message.id),
            tokens: llm::tokens(&[ChatMessage::new(Role::User, framed.as_str())]),
            framed,
            block: block.clone(),
            omitted,
            missing,
        }
    }
}

impl SentMessage {
    /// Those of a prompt.
    pub(super) fn all(messages: &[ChatMessage]) -> Vec<Self> {
        messages.iter().map(Self::from).collect()
    }
}

impl From<&ChatMessage> for SentMessage {
    fn from(message: &ChatMessage) -> Self {
        let texts: Vec<&str> = message.texts().filter(|text| !text.is_empty()).collect();
        Self {
            role: message.role(),
            content: texts.join("\n"),
        }
    }
}

impl Turn<'_> {
    /// Tells the observer, if there is one.
    pub(super) fn tell(&self, news: impl FnOnce() -> TurnNews) {
        if let Some(observer) = &self.services.observer {
            // It fails once nobody looks any more.
            let _ = observer.send((self.trigger().id, news()));
        }
    }
}

/// The calls to Discord of one turn, noted for an observer.
#[derive(Debug, Default)]
pub(super) struct NotedCalls(Mutex<Vec<ReadCall>>);

impl NotedCalls {
    pub(super) fn note(&self, call: ReadCall) {
        self.lock().push(call);
    }

    fn take(&self) -> Vec<ReadCall> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<ReadCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells what a turn gathered; `input` is what it began with.
pub(super) fn gathered(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    input: Option<TurnInput>,
    calls: &NotedCalls,
) {
    let Some(input) = input else { return };
    turn.tell(|| {
        let prepared = &material.prompt.prepared;
        let receipt = turn.report.receipt();
        let omitted = receipt.map(|receipt| receipt.prompt.omitted);
        let background = material.background.clone();
        let (recalled, history) = background
            .as_ref()
            .map(Background::parts)
            .unwrap_or_default();
        let memory = &turn.services.memory;
        let history = memory.messages(history);
        let recalled = memory.recalled_messages(recalled);
        let profiles = background.as_ref().map(Background::profiles);
        TurnNews::Gathered(Box::new(GatheredTurn {
            input,
            context: TurnContext::of(
                &material.collected,
                prepared,
                omitted.unwrap_or_default(),
                material.fallbacks.clone(),
            ),
            calls: calls.take(),
            prompt: SentMessage::all(&prepared.prompt.messages),
            history,
            recalled,
            profiles: profiles.cloned().unwrap_or_default(),
            queued: turn.started - turn.job.came,
            collected_in: material.collected_in,
            background,
        }))
    });
}

/// What the turn would have collected with other caps through another reader, and the calls for
/// it. Nothing is posted, stored, counted or kept; history, facts and tools stay as they were.
pub async fn preview(
    services: &Services,
    seen: &GatheredTurn,
    reader: &RestReader,
    limits: Limits,
    reply_target: ReplyTarget,
) -> (TurnContext, Vec<ReadCall>) {
    let request = seen.input.request.clone();
    let now = Instant::now();
    let ids = services.ids(&request);
    let turn = Turn {
        services,
        report: TurnReport::new(&services.telemetry, ids, now),
        roles: None,
        job: TurnJob {
            request,
            came: now,
            asked: services.memory.now(),
            noted: services.memory.noted_revision(),
            newest: None,
            waited: seen.input.waited,
            copies: Vec::new(),
            other_triggers: seen.input.other_triggers.clone(),
            elsewhere: Vec::new(),
            left: None,
            run: None,
            activity: Arc::<Activity>::default(),
        },
        ids,
        started: now,
        started_at: services.memory.now(),
        restarts: 0,
        is_sent_again: false,
    };
    let input = TurnInput {
        limits,
        reply_target,
        ..seen.input.clone()
    };
    let parents = |id| services.guild_state.parent(id);
    let request = &seen.input.request;
    let others = TurnChannels { services, request };
    let calls = NotedCalls::default();
    let note = |call| calls.note(call);
    let source = Live::new(reader)
        .with_parents(&parents)
        .with_other_channels(&others)
        .with_call_log(&note);
    let nothing = NegativeCache::default();
    let collected = Box::pin(collect(&source, &nothing, input)).await;
    let background = seen.background.as_ref();
    let model = background.and_then(|background| {
        let model = services.model.as_ref()?;
        Some(model.asked_by(turn.payer(), background.agent.model.as_deref()))
    });
    let client = model.as_ref().map(llm::ModelServers::first);
    let FittedPrompt { prepared, .. } = prompt::first(&turn, &collected, background, client);
    let omitted = super::record::omitted(&prepared.block, &collected);
    let missing = fallbacks(&collected);
    let context = TurnContext::of(&collected, &prepared, omitted, missing);
    (context, calls.take())
}
