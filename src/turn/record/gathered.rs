//! What an attempt gathered: the receipt of it, and the events that are taken from that.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::llm;
use crate::model::{
    CollectorReceipt, ModelReceipt, OmittedMessage, PromptReceipt, Receipt, ShownMessage,
};
use crate::telemetry::Ms;
use crate::telemetry::event::{
    CauseWord, CollectFallback, CollectOk, CollectTruncated, Event, LinkCounts, MergeOk,
    OmitCounts, SourceWord, TailFallback, TailOk, Trigger,
};
use crate::turn::Turn;
use crate::turn::gather::TurnMaterial;
use clew_context::engine::prepare::Prepared;
use clew_context::engine::turn::Collected;
use clew_context::engine::window::View;
use clew_context::model::{Block, Message, MessageId, OmitReason, Scene, Stage};

/// The most messages left out that a receipt names.
const MAX_OMITTED: usize = 100;

/// The receipt before the model is asked.
pub(super) fn receipt(turn: &Turn<'_>, material: &TurnMaterial) -> Receipt {
    let collected = &material.collected;
    let collectors = collected.stages.iter().map(|one| CollectorReceipt {
        stage: one.stage,
        fetches: one.fetches,
        took: one.took,
    });
    let model = material.model.as_ref().map(llm::ModelServers::first);
    Receipt {
        scene: collected.scene,
        agent: material.agent_name(),
        target: collected.target.reply_to.as_ref().map(|message| message.id),
        adopted: collected.target.adopted.is_some(),
        is_private: turn.job.request.is_private,
        collected_in: material.collected_in,
        collectors: collectors.collect(),
        missing: material.fallbacks.clone(),
        tools: Vec::new(),
        read: Vec::new(),
        prompt: prompt(&material.prompt.prepared, collected),
        model: model.map(|model| ModelReceipt {
            name: model.model().to_owned(),
            ..ModelReceipt::default()
        }),
        took: Duration::ZERO,
    }
}

/// What a prompt was made of.
pub(super) fn prompt(prepared: &Prepared, collected: &Collected) -> PromptReceipt {
    let block = PromptReceipt::of_block(&prepared.block);
    let is_shown = |id| block.shown.iter().any(|message| message.id == id);
    let quoted = prepared.adopted.as_ref().map(ShownMessage::from);
    let (user_facts, server_facts) = prepared.facts;
    PromptReceipt {
        quoted: quoted.filter(|message| !is_shown(message.id)),
        tail: prepared.tail,
        user_facts,
        server_facts,
        history: prepared.prompt.history,
        recalled: prepared.prompt.recalled,
        dedup: prepared.prompt.dedup,
        chars: prepared.prompt.chars,
        omitted: omitted(&prepared.block, collected),
        ..block
    }
}

/// The newest messages that the block leaves out. Those of who opted out are not named, and
/// what we do not have, for it was deleted, cannot be.
pub(in crate::turn) fn omitted(block: &Block, collected: &Collected) -> Vec<OmittedMessage> {
    if block.omitted.is_empty() {
        return Vec::new();
    }
    let gathered = collected.gathered.messages().into_iter();
    let known: BTreeMap<MessageId, &Message> = gathered
        .chain(collected.links.messages())
        .map(|message| (message.id, &**message))
        .collect();
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
    events.push(collect_ok(material, receipt).into());
    events.extend(truncated.into_iter().map(Event::from));
    events.extend(tail(material, receipt));
    events.push(merge_ok(&receipt.prompt).into());
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

fn collect_ok(material: &TurnMaterial, receipt: &Receipt) -> CollectOk {
    let prompt = &receipt.prompt;
    CollectOk {
        case: receipt.scene,
        msgs: prompt.shown.len(),
        chars: prompt.block_chars,
        ms: Ms::from(receipt.collected_in),
        fetches: receipt.collectors.iter().map(|one| one.fetches).sum(),
        source: source(prompt, &material.collected.turn.view),
        omitted: OmitCounts::from(prompt),
        links: LinkCounts::of(&material.collected),
    }
}

/// The event about a thread's tail: what was read, or why it could not be.
fn tail(material: &TurnMaterial, receipt: &Receipt) -> Option<Event> {
    if receipt.scene != Scene::Thread {
        return None;
    }
    let (count, k) = (receipt.prompt.tail, material.collected.turn.limits.tail);
    let mut missing = receipt.missing.iter();
    let failed = missing
        .find(|(stage, _)| matches!(stage, Stage::History | Stage::Asker))
        .filter(|_| count < k);
    Some(match failed {
        Some((_, reason)) => TailFallback { reason: *reason }.into(),
        None => TailOk {
            k,
            reply_target: receipt.target,
            count,
        }
        .into(),
    })
}

fn merge_ok(prompt: &PromptReceipt) -> MergeOk {
    MergeOk {
        block_msgs: prompt.shown.len(),
        user_facts: prompt.user_facts,
        server_facts: prompt.server_facts,
        history_msgs: prompt.history,
        recalled_msgs: prompt.recalled,
        dedup: prompt.dedup,
        chars: prompt.chars,
    }
}

fn source(prompt: &PromptReceipt, view: &View) -> SourceWord {
    let recent = view.recent.iter().map(|message| message.id);
    let held: BTreeSet<MessageId> = recent.chain(view.linked.keys().copied()).collect();
    let shown = prompt.shown.iter();
    let from_window = shown.filter(|message| held.contains(&message.id));
    match (from_window.count(), prompt.shown.len()) {
        (_, 0) => SourceWord::None,
        (0, _) => SourceWord::Fetched,
        (window, all) if window == all => SourceWord::Window,
        _ => SourceWord::Mixed,
    }
}
