//! The record of one turn: the value that telemetry, inspector and replay report
//! from.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::telemetry::Ms;
use crate::telemetry::event::{
    CauseWord, CollectFallback, CollectOk, CollectTruncated, Event, MergeOk, OmitCounts,
    SourceWord, TailFallback, TailOk, Trigger,
};
use clew_context::engine::chain::Link;
use clew_context::engine::prepare::Prepared;
use clew_context::engine::select::{Found, Gathered};
use clew_context::engine::turn::Collected;
use clew_context::engine::window::View;
use clew_context::model::{
    Block, ChannelId, Fallback, Message, MessageId, Scene, Stage, TurnRequest,
};

/// What one turn looked at, chose and asked.
#[derive(Debug, Clone)]
pub(super) struct TurnRecord {
    /// The trigger and why it is one.
    pub request: TurnRequest,
    /// How long it waited for its turn.
    pub queued: Duration,
    /// What the trigger is.
    pub scene: Scene,
    /// The channel that the thread is in.
    pub parent: Option<ChannelId>,
    /// The message that the answer replies to.
    pub target: Option<MessageId>,
    /// The message whose text stands in for the trigger's.
    pub adopted: Option<MessageId>,
    /// The block.
    pub block: Block,
    /// How many messages of the thread's tail are in it, and how many were asked for.
    pub tail: (usize, usize),
    /// The number of REST calls made for it.
    pub fetches: usize,
    /// How long collecting took.
    pub collected_in: Duration,
    /// Where its messages came from.
    pub source: SourceWord,
    /// What failed.
    pub fallbacks: Vec<(Stage, Fallback)>,
    /// The length of the whole prompt in Unicode scalars.
    pub prompt_chars: usize,
    /// How many stored messages are in it, and how many were left out because the
    /// block shows them.
    pub history: (usize, usize),
    /// How many facts of the asker and of the server are in it.
    pub facts: (usize, usize),
}

impl TurnRecord {
    /// Combines the results of collecting and preparing.
    pub(super) fn new(
        request: &TurnRequest,
        queued: Duration,
        collected: &Collected,
        collected_in: Duration,
        prepared: &Prepared,
    ) -> Self {
        let id = |message: &Arc<Message>| message.id;
        Self {
            request: request.clone(),
            queued,
            scene: collected.scene,
            parent: collected
                .turn
                .channel
                .as_ref()
                .filter(|channel| channel.kind.is_thread())
                .and_then(|channel| channel.parent),
            target: collected.target.reply_to.as_ref().map(id),
            adopted: collected.target.adopted.as_ref().map(id),
            block: prepared.block.clone(),
            tail: (prepared.tail, collected.turn.limits.tail),
            fetches: collected.fetches,
            collected_in,
            source: source(&prepared.block, &collected.turn.view),
            fallbacks: fallbacks(collected),
            prompt_chars: prepared.prompt.chars,
            history: (prepared.prompt.history, prepared.prompt.dedup),
            facts: prepared.facts,
        }
    }

    /// The events of the turn before the model is asked.
    pub(super) fn events(&self, agent: Option<&str>) -> Vec<Event> {
        let mut events: Vec<Event> = vec![self.trigger(agent).into()];
        events.extend(self.fallbacks.iter().map(|(stage, reason)| {
            let (case, reason, stage) = (self.scene, *reason, *stage);
            Event::from(CollectFallback {
                case,
                reason,
                stage,
            })
        }));
        events.push(self.collect_ok().into());
        events.extend(
            CollectTruncated::of(&self.block)
                .into_iter()
                .map(Event::from),
        );
        events.extend(self.tail_event());
        events.push(self.merge_ok().into());
        events
    }

    fn trigger(&self, agent: Option<&str>) -> Trigger {
        Trigger {
            scene: self.scene,
            cause: CauseWord::from(&self.request.cause),
            target: self.target,
            adopted: self.adopted.is_some(),
            queued_ms: Ms::from(self.queued),
            parent_channel_id: self.parent,
            agent: agent.map(str::to_owned),
        }
    }

    fn collect_ok(&self) -> CollectOk {
        CollectOk {
            case: self.scene,
            msgs: self.block.items().count(),
            chars: self.block.chars,
            ms: Ms::from(self.collected_in),
            fetches: self.fetches,
            source: self.source,
            omitted: OmitCounts::from(&self.block),
        }
    }

    /// The event about a thread's tail: what was read, or why it could not be.
    fn tail_event(&self) -> Option<Event> {
        if self.scene != Scene::Thread {
            return None;
        }
        let failed = self
            .fallbacks
            .iter()
            .find(|(stage, _)| matches!(stage, Stage::History | Stage::Asker))
            .filter(|_| self.tail.0 < self.tail.1);
        Some(match failed {
            Some((_, reason)) => TailFallback { reason: *reason }.into(),
            None => TailOk {
                k: self.tail.1,
                reply_target: self.target,
                count: self.tail.0,
            }
            .into(),
        })
    }

    fn merge_ok(&self) -> MergeOk {
        MergeOk {
            block_msgs: self.block.items().count(),
            user_facts: self.facts.0,
            server_facts: self.facts.1,
            history_msgs: self.history.0,
            dedup: self.history.1,
            chars: self.prompt_chars,
        }
    }
}

/// Deleted links and starters are added to what failed.
fn fallbacks(collected: &Collected) -> Vec<(Stage, Fallback)> {
    let mut all = collected.fallbacks.clone();
    match &collected.gathered {
        Gathered::Thread(thread) => {
            if matches!(thread.starter, Found::Deleted(_)) {
                all.push((Stage::Starter, Fallback::Deleted));
            }
            if matches!(thread.pointed_at, Found::Deleted(_)) {
                all.push((Stage::PointedAt, Fallback::Deleted));
            }
        }
        Gathered::Chain { links, .. } => {
            if matches!(links.last(), Some(Link::Deleted(_))) {
                all.push((Stage::Chain, Fallback::Deleted));
            }
        }
        Gathered::Tail(_) | Gathered::Nothing => {}
    }
    all
}

fn source(block: &Block, view: &View) -> SourceWord {
    let held: BTreeSet<MessageId> = view
        .recent
        .iter()
        .map(|message| message.id)
        .chain(view.linked.keys().copied())
        .collect();
    let from_window = block
        .items()
        .filter(|item| held.contains(&item.message.id))
        .count();
    match (from_window, block.items().count()) {
        (_, 0) => SourceWord::None,
        (0, _) => SourceWord::Fetched,
        (window, all) if window == all => SourceWord::Window,
        _ => SourceWord::Mixed,
    }
}
