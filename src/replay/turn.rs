//! One trigger of a recording: collected and prepared like a turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::names::RecordedNames;
use super::timeline::TimelineEvent;
use super::{Caps, ReplayError, Us};
use crate::archive::{ArchiveError, Recording};
use crate::replay::RecordedSource;
use crate::telemetry::event::LinkCounts;
use clew_context::collect::{NegativeCache, Source, collect};
use clew_context::engine::nonce;
use clew_context::engine::prepare::{PromptInput, prepare};
use clew_context::engine::turn::{Collected, TurnInput};
use clew_context::engine::window::{View, Window};
use clew_context::engine::{frame, frame::FrameKind};
use clew_context::model::{
    Access, Block, BlockEntry, Cause, ChannelId, Fallback, Limits, Message, MessageId, Scene,
    Stage, TurnRequest,
};

/// The deadline for collecting. How slow a disk is says nothing about
/// Discord.
const FETCH_TIMEOUT: Duration = Duration::from_hours(1);
/// The key for the nonces of frames: no model reads them, and equal replays
/// should give equal results.
const SECRET: &[u8] = b"replay";

/// What all triggers share.
#[derive(Clone, Copy)]
pub(super) struct ReplayTurns<'a> {
    pub(super) recording: &'a Recording,
    pub(super) us: &'a Us,
    pub(super) caps: &'a Caps,
}

/// The result of one trigger.
pub(super) struct ReplayOutcome {
    pub(super) trigger: Arc<Message>,
    pub(super) asker: String,
    pub(super) channel: String,
    pub(super) scene: Scene,
    pub(super) target: Option<MessageId>,
    pub(super) block: Block,
    pub(super) fetches: usize,
    /// What links led to; none without links.
    pub(super) links: Option<LinkCounts>,
    pub(super) fallbacks: Vec<(Stage, Fallback)>,
    /// How long collecting, selecting and rendering took.
    pub(super) took: Duration,
}

impl ReplayTurns<'_> {
    /// Replays a trigger for a bot that has just started.
    pub(super) async fn cold(
        &self,
        mut trigger: Message,
        cause: Cause,
    ) -> Result<ReplayOutcome, ReplayError> {
        self.recording.carry(&mut trigger)?;
        let source = RecordedSource::new(self.recording, trigger.id);
        let outcome = self.cold_from(&source, &Arc::new(trigger), cause).await;
        source.finish()?;
        Ok(outcome)
    }

    /// The same from a source of its own; the trigger carries the message that it
    /// replies to.
    pub(super) async fn cold_from<S: Source>(
        &self,
        source: &S,
        trigger: &Arc<Message>,
        cause: Cause,
    ) -> ReplayOutcome {
        let mut window = Window::new(self.caps.window);
        window.created(Message::clone(trigger));
        let view = window.view(trigger.channel);
        let input = self.input(Arc::clone(trigger), cause, view, None);
        let (outcome, _) = self.turn(source, &NegativeCache::default(), input).await;
        outcome
    }

    fn input(
        &self,
        trigger: Arc<Message>,
        cause: Cause,
        view: View,
        starter: Option<Arc<Message>>,
    ) -> TurnInput {
        let channel = self.recording.channel(trigger.channel);
        let limits = Limits {
            fetch_timeout: FETCH_TIMEOUT,
            ..self.caps.limits
        };
        let request = TurnRequest {
            channel_kind: channel.map(|channel| channel.kind),
            asker_roles: None,
            trigger,
            cause,
            is_private: false,
        };
        TurnInput {
            channel: channel.cloned(),
            our_access: Access::FULL,
            asker_access: Access::FULL,
            starter,
            reply_target: self.caps.reply_target,
            ..TurnInput::new(request, self.us.clone(), view, limits)
        }
    }

    async fn turn<S: Source>(
        &self,
        source: &S,
        negative_cache: &NegativeCache,
        input: TurnInput,
    ) -> (ReplayOutcome, Collected) {
        let began = Instant::now();
        let collected = collect(source, negative_cache, input).await;
        (self.prepared(&collected, began), collected)
    }

    fn prepared(&self, collected: &Collected, began: Instant) -> ReplayOutcome {
        let trigger = collected.trigger();
        let channel = self.recording.channel(trigger.channel);
        let names = RecordedNames {
            recording: self.recording,
            guild: channel.and_then(|channel| channel.guild),
        };
        let scope = scope(trigger.channel);
        let input = PromptInput {
            directory: &names,
            ..PromptInput::new("", SECRET, &scope)
        };
        let prepared = prepare(collected, &input);
        ReplayOutcome {
            took: began.elapsed(),
            asker: prepared.asker,
            channel: channel.map_or_else(String::new, |channel| channel.name.clone()),
            scene: collected.scene,
            target: collected.target.reply_to.as_ref().map(|target| target.id),
            block: prepared.block,
            fetches: collected.fetches,
            links: LinkCounts::of(collected),
            fallbacks: collected.fallbacks.clone(),
            trigger: Arc::clone(trigger),
        }
    }
}

/// A bot that has seen every message so far.
pub(super) struct Warm<'a> {
    turns: ReplayTurns<'a>,
    window: Window,
    negative_cache: NegativeCache,
}

impl<'a> Warm<'a> {
    pub(super) fn new(turns: ReplayTurns<'a>) -> Self {
        let mut limits = turns.caps.window;
        // The window must hold at least a message and its trigger.
        limits.per_channel = limits.per_channel.max(2);
        Self {
            turns,
            window: Window::new(limits),
            negative_cache: NegativeCache::default(),
        }
    }

    /// Feeds the window with a message as it is posted. The message that it
    /// replies to is read, and carried, only if the window does not hold it.
    pub(super) fn feed(&mut self, event: TimelineEvent<'_>) -> Result<Message, ArchiveError> {
        let (channel, mut message) = (event.channel, event.message);
        if event.first {
            self.window.opened(channel.id, channel.guild);
        }
        let parent = message.replies_to();
        let held = parent.and_then(|parent| self.window.message(channel.id, parent));
        if held.is_none() {
            self.turns.recording.carry(&mut message)?;
        }
        self.window.created(message.clone());
        Ok(message)
    }

    /// Replays the message last fed as a trigger.
    pub(super) async fn turn(
        &mut self,
        mut trigger: Message,
        cause: Cause,
    ) -> Result<ReplayOutcome, ReplayError> {
        self.turns.recording.carry(&mut trigger)?;
        let view = self.window.view(trigger.channel);
        let channel = self.turns.recording.channel(trigger.channel);
        let parent = channel.and_then(|channel| channel.parent);
        let starter =
            parent.and_then(|parent| self.window.message(parent, trigger.channel.starter()));
        let source = RecordedSource::new(self.turns.recording, trigger.id);
        let input = self.turns.input(Arc::new(trigger), cause, view, starter);
        let turn = self.turns.turn(&source, &self.negative_cache, input);
        let (outcome, collected) = turn.await;
        source.finish()?;
        // Fetched messages stay in the window, as in the bot.
        collected.update(&mut self.window);
        Ok(outcome)
    }
}

/// The block inside its frame, as a model would read it; empty if there is none.
pub(super) fn framed(outcome: &ReplayOutcome) -> String {
    let block = &outcome.block;
    if block.entries.is_empty() && block.title.is_none() {
        return String::new();
    }
    let texts = block.entries.iter().flat_map(|entry| match entry {
        BlockEntry::Message(item) => [item.name.as_str(), item.text.as_str()],
        BlockEntry::Marker(_) => [""; 2],
        BlockEntry::Heading(heading) => [heading.as_str(), ""],
    });
    let texts = texts.chain(block.title.as_deref());
    let nonce = nonce::derive(SECRET, &scope(outcome.trigger.channel), texts);
    frame::wrap(FrameKind::Context, &nonce, &frame::block(block))
}

fn scope(channel: ChannelId) -> String {
    format!("channel:{channel}")
}
