//! What an observer is told of turns as they go on. Nothing is made for it when nobody
//! observes, as in `clew run`.

use std::time::Duration;

use tokio::sync::mpsc;

use super::Turn;
use super::background::Background;
use crate::llm;
use crate::model::{OmittedMessage, Receipt};
use crate::telemetry::event::Outcome;
use clew_context::discord::ReadCall;
use clew_context::engine::frame::{self, FrameKind};
use clew_context::engine::prepare::Prepared;
use clew_context::engine::turn::{Collected, TurnInput};
use clew_context::model::{
    Block, ChannelId, ChatMessage, Fallback, HistoryMessage, MessageId, Profiles, Role, Scene,
    Stage, UserId,
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
        asker: UserId,
    },
    /// Its context is collected; again after the trigger was edited.
    Gathered(Box<GatheredTurn>),
    /// The model is asked this; again after it called tools.
    Asks(Vec<SentMessage>),
    /// A message of the answer was posted.
    Posted(MessageId),
    Over(TurnOver),
}

#[derive(Debug)]
pub struct TurnOver {
    pub outcome: Outcome,
    /// What the answer was made from; none if nothing was collected.
    pub receipt: Option<Box<Receipt>>,
    /// From the trigger to the end.
    pub took: Duration,
}

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
    pub collected_in: Duration,
    pub(super) background: Option<Background>,
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
    pub(super) fn of(
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
