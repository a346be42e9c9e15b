//! What an attempt gathered: the receipt of it, and the events that are taken from that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::llm;
use crate::model::{
    CollectorReceipt, ModelReceipt, OmittedMessage, PromptReceipt, Receipt, ShownMessage,
};
use crate::telemetry::Ms;
use crate::telemetry::event::{
    BlockAges, Capped, CauseWord, CollectFallback, CollectOk, CollectTruncated, Event, LinkCounts,
    MergeOk, OmitCounts, SourceWord, StageCounts, TailFallback, TailOk, Trigger,
};
use crate::turn::Turn;
use crate::turn::gather::TurnMaterial;
use crate::turn::gather::prompt::FittedPrompt;
use clew_context::engine::select::Gathered;
use clew_context::engine::turn::Collected;
use clew_context::engine::window::View;
use clew_context::model::{Block, Message, MessageId, OmitReason, Scene, Stage};

/// The most messages left out that a receipt names.
const MAX_OMITTED: usize = 100;
/// The most passages of docs that it names.
const MAX_PASSAGES: usize = 40;

/// The receipt before the model is asked.
pub(super) fn receipt(turn: &Turn<'_>, material: &TurnMaterial) -> Receipt {
    let collected = &material.collected;
    let collectors = collected.stages.iter().map(|one| CollectorReceipt {
        stage: one.stage,
        fetches: one.fetches,
        took: one.took,
    });
    let background = material.background.as_ref();
    let model = material.model.as_ref().map(llm::ModelServers::first);
    Receipt {
        scene: collected.scene,
        agent: background.map(|background| background.agent.name.to_string()),
        target: collected.target.reply_to.as_ref().map(|message| message.id),
        adopted: collected.target.adopted.is_some(),
        is_private: turn.job.request.is_private,
        collected_in: material.collected_in,
        collectors: collectors.collect(),
        missing: material.fallbacks.clone(),
        tools: Vec::new(),
        read: Vec::new(),
        cited: Vec::new(),
        prompt: prompt(&material.prompt, collected),
        model: model.map(|model| ModelReceipt {
            name: model.model().to_owned(),
            ..ModelReceipt::default()
        }),
        took: Duration::ZERO,
    }
}

/// What a prompt was made of.
pub(super) fn prompt(prompt: &FittedPrompt, collected: &Collected) -> PromptReceipt {
    let prepared = &prompt.prepared;
    let block = PromptReceipt::of_block(&prepared.block);
    let is_shown = |id| block.shown.iter().any(|message| message.id == id);
    let quoted = prepared.adopted.as_ref().map(ShownMessage::from);
    let (user_facts, server_facts) = prepared.facts;
    PromptReceipt {
        quoted: quoted.filter(|message| !is_shown(message.id)),
        tail: prepared.tail.shown,
        user_facts,
        server_facts,
        history: prepared.prompt.history,
        recalled: prepared.prompt.recalled,
        dedup: prepared.prompt.dedup,
        server_prompt: prompt.server_prompt,
        halvings: prompt.halvings as usize,
        chars: prepared.prompt.chars,
        omitted: omitted(&prepared.block, collected),
        passages: prompt.passages.iter().take(MAX_PASSAGES).cloned().collect(),
        ..block
    }
}

/// The newest messages that the block leaves out. Those of who opted out are not named, and
/// what we do not have, for it was deleted, cannot be.
pub(in crate::turn) fn omitted(block: &Block, collected: &Collected) -> Vec<OmittedMessage> {
    if block.omitted.is_empty() {
        return Vec::new();
    }
    let known = collected.messages().map(|message| (message.id, &**message));
    let known: BTreeMap<MessageId, &Message> = known.collect();
    let newest = block.omitted.iter().rev();
    let named = newest.filter(|one| one.reason != OmitReason::OptedOut);
    let named = named.filter_map(|one| {
        let message = known.get(&one.id)?;
        Some(OmittedMessage {
            channel: message.channel,
            id: one.id,
            author: message.author.id,
            reason: one.reason,
        })
    });
    let mut omitted: Vec<OmittedMessage> = named.take(MAX_OMITTED).collect();
    omitted.reverse();
    omitted
}

/// The events of a turn before the model is asked.
pub(super) fn events(turn: &Turn<'_>, material: &TurnMaterial, receipt: &Receipt) -> Vec<Event> {
    let case = receipt.scene;
    let failed = receipt.missing.iter().map(|(stage, reason)| {
        let (reason, stage) = (*reason, *stage);
        Event::from(CollectFallback {
            case,
            reason,
            stage,
        })
    });
    let truncated = CollectTruncated::of(&receipt.prompt);
    let mut events: Vec<Event> = vec![trigger(turn, material, receipt).into()];
    events.extend(failed);
    events.extend(collect_ok(material, receipt).map(Event::from));
    events.extend(truncated.into_iter().map(Event::from));
    events.extend(tail(material, receipt));
    events.extend(MergeOk::of(&receipt.prompt).map(Event::from));
    events
}

fn trigger(turn: &Turn<'_>, material: &TurnMaterial, receipt: &Receipt) -> Trigger {
    let channel = material.collected.turn.channel.as_ref();
    let thread = channel.filter(|channel| channel.kind.is_thread());
    Trigger {
        scene: receipt.scene,
        cause: CauseWord::from(&turn.job.request.cause),
        target: receipt.target,
        adopted: receipt.adopted,
        queued_ms: Ms::from(turn.started - turn.job.came),
        parent_channel_id: thread.and_then(|thread| thread.parent),
        agent: receipt.agent.clone(),
    }
}

/// None where nothing stands around the question and nobody was asked: of a mention with words
/// outside threads, of a direct message, of an agent run.
fn collect_ok(material: &TurnMaterial, receipt: &Receipt) -> Option<CollectOk> {
    let (prompt, collected) = (&receipt.prompt, &material.collected);
    let looks_around = collected.gathered != Gathered::Nothing
        || !collected.links.is_empty()
        || !collected.place.is_empty();
    (looks_around || collected.fetches > 0).then(|| CollectOk {
        case: receipt.scene,
        msgs: prompt.shown.len(),
        chars: prompt.block_chars,
        ms: Ms::from(receipt.collected_in),
        fetches: receipt.collectors.iter().map(|one| one.fetches).sum(),
        source: source(prompt, &collected.turn.view),
        omitted: OmitCounts::from(prompt),
        links: LinkCounts::of(collected),
        age_s: BlockAges::of(material.block(), collected.trigger().timestamp),
        stages: StageCounts::of(&collected.stages),
        caps: Capped::from(&material.prompt.prepared.limits),
    })
}

/// The event about a thread's tail: what is shown of it, or why it could not be read.
fn tail(material: &TurnMaterial, receipt: &Receipt) -> Option<Event> {
    let collected = &material.collected;
    if receipt.scene != Scene::Thread || collected.gathered == Gathered::Nothing {
        return None;
    }
    let (k, found) = (
        collected.turn.limits.tail,
        material.prompt.prepared.tail.found,
    );
    let mut missing = receipt.missing.iter();
    let failed = missing
        .find(|(stage, _)| matches!(stage, Stage::History | Stage::Asker))
        .filter(|_| found < k);
    Some(match failed {
        Some((_, reason)) => TailFallback { reason: *reason }.into(),
        None => TailOk {
            k,
            reply_target: receipt.target,
            count: receipt.prompt.tail,
        }
        .into(),
    })
}

fn source(prompt: &PromptReceipt, view: &View) -> SourceWord {
    let recent = view.recent.iter().map(|message| message.id);
    let pins = view.pins.iter().flatten().map(|message| message.id);
    let known = recent.chain(view.linked.keys().copied());
    let held: BTreeSet<MessageId> = known.chain(pins).collect();
    let shown = prompt.shown.iter();
    let from_window = shown.filter(|message| held.contains(&message.id));
    match (from_window.count(), prompt.shown.len()) {
        (_, 0) => SourceWord::None,
        (0, _) => SourceWord::Fetched,
        (window, all) if window == all => SourceWord::Window,
        _ => SourceWord::Mixed,
    }
}
