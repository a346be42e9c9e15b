//! Recording: stores an answered turn, and keeps what facts may be extracted from.
//! What telemetry is told of a turn is below.

mod gathered;
mod report;

use super::ask::ToolsUsed;
use super::deliver::{Delivered, PostedAnswer};
use super::extract::Extraction;
use super::{EndedTurn, Turn, TurnMaterial};
use crate::memory::Exchange;
use crate::model::{ReadSource, Receipt};
use crate::telemetry::event::Outcome;

pub(super) use gathered::omitted;
pub(super) use report::TurnReport;

/// Stores the asker's own words and the model's whole answer, if there is one. Only
/// then facts may be extracted from the turn. Of a private turn only the receipt is
/// stored: what it was made from only the asker may read, and others read the history. Of
/// a turn for who asks through an app nothing is.
pub(super) async fn record(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    delivered: Delivered,
    tools: ToolsUsed,
    posted: &PostedAnswer<'_>,
) -> EndedTurn {
    let Delivered { outcome, answer } = delivered;
    if turn.proxy().is_some() {
        return outcome.into();
    }
    let answer = answer.filter(|_| !turn.job.request.is_private);
    let services = turn.services;
    let keeps_receipts = services.memory.settings().receipts.is_some();
    let receipt = turn.report.receipt().filter(|_| keeps_receipts);
    let receipt = receipt.map(|receipt| Receipt {
        read: tools.sources.iter().map(ReadSource::from).collect(),
        ..receipt
    });
    let background = match &material.background {
        Some(background) if answer.is_some() || receipt.is_some() => background,
        _ => return outcome.into(),
    };
    let is_whole = answer.is_some();
    let target = material.collected.target.reply_to.as_ref();
    let mut sources = material.linked(turn);
    sources.extend(tools.sources);
    let exchange = Exchange {
        turn: turn.job.request.turn(),
        trigger: turn.job.request.posted_trigger(),
        asker_name: material.prompt.prepared.asker.clone(),
        words: services.own_words(turn.ids.guild, turn.trigger()),
        target: target.map(|message| message.id),
        asked: turn.asked,
        answer: answer.unwrap_or_default(),
        messages: posted.parts().map(|(id, _)| id).collect(),
        sources: sources.into_iter().collect(),
        inherited: background.inherited.sources().collect(),
        tools: tools.rounds,
        receipt,
    };
    let memory = &services.memory;
    memory.record(&turn.ids, &background.place, &exchange).await;
    if outcome == Outcome::Answered && exchange.receipt.is_some() {
        offer_receipt(turn, posted).await;
    }
    let extraction = || Extraction::of(turn, material, background).map(Box::new);
    EndedTurn {
        outcome,
        extraction: is_whole.then(extraction).flatten(),
    }
}

/// With `RECEIPT_BUTTON` a button under the answer shows its receipt.
async fn offer_receipt(turn: &Turn<'_>, posted: &PostedAnswer<'_>) {
    let services = turn.services;
    let is_kept = !services.memory.opted_out(turn.job.request.asker());
    if services.settings.receipt_button
        && is_kept
        && let Err(error) = posted.add_receipt_button().await
    {
        tracing::info!(%error, "an answer has no button for its receipt");
    }
}
