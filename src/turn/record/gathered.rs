//! The events of what an attempt gathered.

use std::collections::BTreeSet;

use crate::telemetry::Ms;
use crate::telemetry::event::{
    CauseWord, CollectFallback, CollectOk, CollectTruncated, Event, MergeOk, OmitCounts,
    SourceWord, TailFallback, TailOk, Trigger,
};
use crate::turn::Turn;
use crate::turn::gather::TurnMaterial;
use clew_context::engine::window::View;
use clew_context::model::{Block, MessageId, Scene, Stage};

/// The events of a turn before the model is asked.
pub(super) fn events(turn: &Turn<'_>, material: &TurnMaterial) -> Vec<Event> {
    let case = material.collected.scene;
    let failed = material.fallbacks.iter().map(|(stage, reason)| {
        let (reason, stage) = (*reason, *stage);
        Event::from(CollectFallback {
            case,
            reason,
            stage,
        })
    });
    let truncated = CollectTruncated::of(material.block());
    let mut events: Vec<Event> = vec![trigger(turn, material).into()];
    events.extend(failed);
    events.push(collect_ok(material).into());
    events.extend(truncated.into_iter().map(Event::from));
    events.extend(tail(material));
    events.push(merge_ok(material).into());
    events
}

fn trigger(turn: &Turn<'_>, material: &TurnMaterial) -> Trigger {
    let collected = &material.collected;
    let channel = collected.turn.channel.as_ref();
    let thread = channel.filter(|channel| channel.kind.is_thread());
    let target = &collected.target;
    Trigger {
        scene: collected.scene,
        cause: CauseWord::from(&turn.job.request.cause),
        target: target.reply_to.as_ref().map(|message| message.id),
        adopted: target.adopted.is_some(),
        queued_ms: Ms::from(turn.started - turn.job.came),
        parent_channel_id: thread.and_then(|thread| thread.parent),
        agent: material.agent_name(),
    }
}

fn collect_ok(material: &TurnMaterial) -> CollectOk {
    let (collected, block) = (&material.collected, material.block());
    CollectOk {
        case: collected.scene,
        msgs: block.items().count(),
        chars: block.chars,
        ms: Ms::from(material.collected_in),
        fetches: collected.fetches,
        source: source(block, &collected.turn.view),
        omitted: OmitCounts::from(block),
    }
}

/// The event about a thread's tail: what was read, or why it could not be.
fn tail(material: &TurnMaterial) -> Option<Event> {
    let collected = &material.collected;
    if collected.scene != Scene::Thread {
        return None;
    }
    let (count, k) = (material.prompt.prepared.tail, collected.turn.limits.tail);
    let mut fallbacks = material.fallbacks.iter();
    let failed = fallbacks
        .find(|(stage, _)| matches!(stage, Stage::History | Stage::Asker))
        .filter(|_| count < k);
    Some(match failed {
        Some((_, reason)) => TailFallback { reason: *reason }.into(),
        None => TailOk {
            k,
            reply_target: collected.target.reply_to.as_ref().map(|message| message.id),
            count,
        }
        .into(),
    })
}

fn merge_ok(material: &TurnMaterial) -> MergeOk {
    let prepared = &material.prompt.prepared;
    let (user_facts, server_facts) = prepared.facts;
    MergeOk {
        block_msgs: prepared.block.items().count(),
        user_facts,
        server_facts,
        history_msgs: prepared.prompt.history,
        dedup: prepared.prompt.dedup,
        chars: prepared.prompt.chars,
    }
}

fn source(block: &Block, view: &View) -> SourceWord {
    let recent = view.recent.iter().map(|message| message.id);
    let held: BTreeSet<MessageId> = recent.chain(view.linked.keys().copied()).collect();
    let shown = block.items();
    let from_window = shown.filter(|item| held.contains(&item.message.id));
    match (from_window.count(), block.items().count()) {
        (_, 0) => SourceWord::None,
        (0, _) => SourceWord::Fetched,
        (window, all) if window == all => SourceWord::Window,
        _ => SourceWord::Mixed,
    }
}
