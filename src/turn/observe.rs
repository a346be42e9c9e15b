//! Tells an observer what a turn gathered, and what it would have been shown with other caps.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::background::Background;
use super::gather::prompt::{self, FittedPrompt};
use super::gather::{NotedCalls, TurnChannels, TurnMaterial, fallbacks, input};
use super::news::{GatheredTurn, SentMessage, TurnContext, TurnNews};
use super::record::omitted;
use super::{Services, Turn, TurnJob};
use crate::llm;
use crate::runs::Activity;
use clew_context::collect::{NegativeCache, collect};
use clew_context::discord::rest::RestReader;
use clew_context::discord::{Live, ReadCall};
use clew_context::engine::turn::TurnInput;
use clew_context::model::{Limits, ReplyTarget, TurnRequest};

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
        let profiles = background.as_ref().map(|one| &one.shown_facts.profiles);
        TurnNews::Gathered(Box::new(GatheredTurn {
            input,
            context: TurnContext::of(
                &material.collected,
                prepared,
                omitted.unwrap_or_default(),
                material.fallbacks.clone(),
            ),
            calls: std::mem::take(&mut *calls.lock()),
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
    let job = TurnJob {
        waited: seen.input.waited,
        other_triggers: seen.input.other_triggers.clone(),
        ..job(services, seen.input.request.clone())
    };
    let turn = Turn::new(services, job);
    let input = TurnInput {
        limits,
        reply_target,
        ..seen.input.clone()
    };
    let nothing = NegativeCache::default();
    look(&turn, input, (reader, &nothing), seen.background.as_ref()).await
}

/// What a question would be answered from. Nothing is posted, stored or counted, and only kept
/// what refused us.
pub async fn context_of(services: &Services, request: TurnRequest) -> TurnContext {
    let turn = Turn::new(services, job(services, request));
    let input = input(&turn);
    let source = (services.rest.reader(), &services.negative_cache);
    let (context, _) = look(&turn, input, source, None).await;
    context
}

/// A turn that begins now.
fn job(services: &Services, request: TurnRequest) -> TurnJob {
    TurnJob {
        request,
        came: Instant::now(),
        asked: services.memory.now(),
        noted: services.memory.noted().revision(),
        newest: None,
        waited: false,
        copies: Vec::new(),
        other_triggers: BTreeSet::new(),
        elsewhere: Vec::new(),
        left: None,
        run: None,
        again: None,
        activity: Arc::<Activity>::default(),
    }
}

/// What a turn would collect, and the calls for it.
async fn look(
    turn: &Turn<'_>,
    input: TurnInput,
    (reader, negative_cache): (&RestReader, &NegativeCache),
    background: Option<&Background>,
) -> (TurnContext, Vec<ReadCall>) {
    let services = turn.services;
    let parents = |id| services.guild_state.parent(id);
    let request = &turn.job.request;
    let others = TurnChannels { services, request };
    let calls = NotedCalls::default();
    let note = |call| calls.lock().push(call);
    let source = Live::new(reader)
        .with_parents(&parents)
        .with_other_channels(&others)
        .with_call_log(&note);
    let collected = Box::pin(collect(&source, negative_cache, input)).await;
    let model = background.and_then(|background| {
        let model = services.model.as_ref()?;
        Some(model.asked_by(turn.payer(), background.agent.model.as_deref()))
    });
    let client = model.as_ref().map(llm::ModelServers::first);
    let FittedPrompt { prepared, .. } = prompt::first(turn, &collected, background, client);
    let omitted = omitted(&prepared.block, &collected);
    let missing = fallbacks(&collected);
    let context = TurnContext::of(&collected, &prepared, omitted, missing);
    (context, calls.into_inner())
}
