//! Recording: stores a turn before its answer's last post, confirms it afterwards, and keeps what
//! facts may be extracted from.
//! What telemetry is told of a turn is below.

mod gathered;
mod report;

use super::answer::TurnAnswer;
use super::ask::ToolsUsed;
use super::deliver::{Delivered, PostedAnswer};
use super::extract::Extraction;
use super::gather::TurnMaterial;
use super::{EndedTurn, Turn};
use crate::memory::{DiscordChange, EarlyTurn, Exchange};
use crate::model::{ReadSource, Receipt};
use crate::telemetry::event::Outcome;
use clew_context::model::Fallback;

pub(super) use gathered::omitted;
pub(super) use report::TurnReport;

/// What is stored of a turn, and what the store has of it already.
pub(super) struct Recording<'a> {
    exchange: Exchange,
    /// What tools read, for the receipt.
    read: Vec<ReadSource>,
    /// Those of them that the answer cites.
    cited: Vec<ReadSource>,
    early: Option<EarlyTurn<'a>>,
}

/// Before the answer's last post: stores the asker's own words and the model's whole answer, if
/// there is one, so that a kill right after the post does not lose them. Dropped without
/// [`record`], it is taken back. Of a private turn only the receipt will be stored: what it was
/// made from only the asker may read, and others read the history. Of a turn for who asks
/// through an app nothing is.
pub(super) async fn begin<'a>(
    turn: &Turn<'a>,
    material: &TurnMaterial,
    answer: &TurnAnswer,
    tools: ToolsUsed,
    posted: &PostedAnswer<'_>,
) -> Option<Box<Recording<'a>>> {
    let background = material.background.as_ref();
    let background = background.filter(|_| turn.proxy().is_none())?;
    let is_private = turn.job.request.is_private;
    let answer = match answer {
        TurnAnswer::Whole(completion) if !is_private => completion.text.clone(),
        _ => String::new(),
    };
    let services = turn.services;
    let memory = &services.memory;
    let target = material.collected.target.reply_to.as_ref();
    let [read, cited] = [&tools.sources, &tools.cited]
        .map(|sources| sources.iter().map(ReadSource::from).collect());
    let mut sources = material.linked(turn);
    sources.extend(tools.sources);
    let exchange = Exchange {
        turn: turn.job.request.turn(),
        trigger: turn.job.request.posted_trigger(),
        asker_name: material.prompt.prepared.asker.clone(),
        words: services.own_words(turn.ids.guild, turn.trigger()),
        target: target.map(|message| message.id),
        asked: turn.job.asked,
        answered: memory.now(),
        answer,
        messages: posted.parts().map(|(id, _)| id).collect(),
        sources: sources.into_iter().collect(),
        inherited: background.inherited.sources().collect(),
        tools: tools.rounds,
        receipt: None,
    };
    let early = memory.record_early(&turn.ids, &background.place, &exchange);
    Some(Box::new(Recording {
        early: early.await,
        exchange,
        read,
        cited,
    }))
}

/// Stores the turn, if its answer is posted; only then facts may be extracted from it.
pub(super) async fn record(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    (outcome, answer): Delivered,
    recording: Option<Box<Recording<'_>>>,
    posted: &PostedAnswer<'_>,
) -> EndedTurn {
    let (Some(recording), Some(background)) = (recording, &material.background) else {
        return outcome.into();
    };
    let answer = answer.filter(|_| !turn.job.request.is_private);
    if answer.is_none() && posted.is_cut.is_some() && posted.messages() > 0 {
        forget_before(turn);
    }
    let memory = &turn.services.memory;
    let keeps_receipts = memory.settings().receipts.is_some();
    let receipt = turn.report.receipt().filter(|_| keeps_receipts);
    // An answer that could not be given anew stays, with what it was made from.
    let stays = turn.job.again.is_some() && posted.is_cut.is_none();
    if answer.is_none() && (receipt.is_none() || stays) {
        offer(turn, posted, false).await;
        return outcome.into();
    }
    let is_whole = answer.is_some();
    let Recording {
        exchange,
        read,
        cited,
        early,
    } = *recording;
    let exchange = Exchange {
        answer: answer.unwrap_or_default(),
        messages: posted.parts().map(|(id, _)| id).collect(),
        receipt: receipt.map(|receipt| Receipt {
            read,
            cited,
            ..receipt
        }),
        ..exchange
    };
    let (ids, place) = (&turn.ids, &background.place);
    memory.record(ids, place, &exchange, early).await;
    let has_receipt = outcome == Outcome::Answered && exchange.receipt.is_some();
    offer(turn, posted, has_receipt).await;
    // Whose question is deleted by now is not learnt from.
    let is_whole = is_whole && posted.reference_dropped != Some(Fallback::Deleted);
    let extraction = || Extraction::of(turn, material, background).map(Box::new);
    EndedTurn {
        outcome,
        extraction: is_whole.then(extraction).flatten(),
    }
}

/// Where an answer that is given anew is not stored, neither is the one that it replaced.
fn forget_before(turn: &Turn<'_>) {
    if let Some(again) = &turn.job.again {
        turn.services.memory.reconcile(DiscordChange::Deleted {
            guild: turn.ids.guild,
            channel: turn.trigger().channel,
            ids: again.messages.clone(),
        });
    }
}

/// Puts the buttons under an answer: where the server wants them those that steer it, and with
/// `RECEIPT_BUTTON` one that shows its receipt.
async fn offer(turn: &Turn<'_>, posted: &PostedAnswer<'_>, has_receipt: bool) {
    let services = turn.services;
    let is_kept = || !services.memory.opted_out(turn.job.request.asker());
    let shows_receipt = has_receipt && services.settings.receipt_button && is_kept();
    if let Err(error) = posted.add_buttons(shows_receipt).await {
        tracing::info!(%error, "an answer has no buttons");
    }
}
