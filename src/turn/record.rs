//! Recording: stores an answered turn, and keeps what facts may be extracted from.
//! What telemetry is told of a turn is below.

mod gathered;
mod report;

use super::ask::ToolsUsed;
use super::deliver::{Delivered, PostedAnswer};
use super::extract::Extraction;
use super::{EndedTurn, Turn, TurnMaterial};
use crate::memory::Exchange;

pub(super) use report::TurnReport;

/// Stores the asker's own words and the model's whole answer, if there is one. Only
/// then facts may be extracted from the turn.
pub(super) async fn record(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    delivered: Delivered,
    tools: ToolsUsed,
    posted: &PostedAnswer<'_>,
) -> EndedTurn {
    let Delivered { outcome, answer } = delivered;
    let (Some(answer), Some(background)) = (answer, &material.background) else {
        return outcome.into();
    };
    let services = turn.services;
    let target = material.collected.target.reply_to.as_ref();
    let exchange = Exchange {
        turn: turn.job.request.turn(),
        trigger: turn.job.request.posted_trigger(),
        asker_name: material.prompt.prepared.asker.clone(),
        words: services.own_words(turn.ids.guild, turn.trigger()),
        target: target.map(|message| message.id),
        asked: turn.asked,
        answer,
        messages: posted.parts().map(|(id, _)| id).collect(),
        tools: tools.rounds,
        sources: tools.sources,
    };
    let memory = &services.memory;
    memory.record(&turn.ids, &background.place, &exchange).await;
    EndedTurn {
        outcome,
        extraction: Extraction::of(turn, material, background).map(Box::new),
    }
}
