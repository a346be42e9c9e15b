//! Delivering: posts the answer, or tells in another way that it could not be.

mod persist;
mod posted;
mod refused;

use std::time::Duration;

use tokio::time::Instant;

use super::answer::TurnAnswer;
use super::control::Order;
use super::gather::TurnMaterial;
use super::{Turn, line};
use crate::engine::deliver;
use crate::llm::{Completion, FinishReason};
use crate::telemetry::event::Outcome;
use clew_context::discord::error::RestError;
use clew_context::model::{Cause, Message, MessageFlags, MessageKind, Referenced};

pub(super) use posted::{PostedAnswer, delete};
pub(super) use refused::cannot_write;

/// How long showing part of an agent run's answer may take...
const PART_PATIENCE: Duration = Duration::from_secs(15);
/// ...and at the end of the process, which leaves five seconds, the run's last edit included.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// What became of an answer, and the model's whole answer as far as it is shown: what is stored.
pub(super) type Delivered = (Outcome, Option<String>);

/// Posts an answer, of which part may be shown already.
pub(super) async fn deliver(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    answer: TurnAnswer,
    posted: &mut PostedAnswer<'_>,
) -> Delivered {
    match answer {
        TurnAnswer::Line(line, outcome) => {
            // The answer before stays.
            turn.before.lock().clear();
            let said = posted.say(&line).await;
            (ended(turn, said, outcome).await, None)
        }
        TurnAnswer::Inspected(text) => {
            posted.is_cut = Some(false);
            (post(turn, posted, &text).await, None)
        }
        TurnAnswer::Whole(completion) => post_whole(turn, material, posted, completion).await,
        TurnAnswer::BrokenOff(text, why) => {
            posted.is_cut = Some(true);
            let text = deliver::closed(text);
            post(turn, posted, &format!("{text}\n{why}")).await;
            (Outcome::Failed, None)
        }
        TurnAnswer::Part(text, order) => {
            posted.is_cut = Some(true);
            post_part(turn, posted, &text, &order).await;
            (Outcome::Cancelled, None)
        }
        TurnAnswer::Unpostable(error) => (ended(turn, Err(error), Outcome::Failed).await, None),
    }
}

/// Posts the model's whole answer.
async fn post_whole(
    turn: &Turn<'_>,
    material: &TurnMaterial,
    posted: &mut PostedAnswer<'_>,
    completion: Completion,
) -> Delivered {
    let text = match completion.end.finish_reason {
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other => completion.text,
        FinishReason::CutOff | FinishReason::Length | FinishReason::ContentFilter => {
            deliver::with_spoiler_closed(completion.text)
        }
    };
    posted.is_cut = Some(completion.end.finish_reason == FinishReason::Length);
    let outcome = post(turn, posted, &text).await;
    if outcome != Outcome::Answered {
        return (outcome, None);
    }
    let cut = match completion.end.finish_reason {
        // It was cut once more by us, and says so.
        _ if posted.cut().is_some() => None,
        FinishReason::CutOff => Some(line::CUT_OFF),
        FinishReason::Length => Some(line::TOKEN_LIMIT),
        FinishReason::ContentFilter => Some(line::FILTERED),
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other => None,
    };
    let closed = material.collected.links.closed.then_some(line::CLOSED_LINK);
    for note in [cut, closed].into_iter().flatten() {
        // The answer is fine without it.
        if let Err(error) = posted.say(note).await {
            tracing::info!(%error, note, "a note could not be added to an answer");
        }
    }
    (outcome, Some(posted.shown(&text).to_owned()))
}

/// Posts what was said until an order ended it; tried for a short time only.
async fn post_part(turn: &Turn<'_>, posted: &mut PostedAnswer<'_>, text: &str, order: &Order) {
    let patience = match order {
        Order::Abandon { .. } => LAST_PATIENCE,
        _ => PART_PATIENCE,
    };
    posted.give_up_at(Instant::now() + patience);
    let line = match order {
        _ if turn.job.run.is_some() => line::PART_OF_RUN,
        _ => line::STOPPED,
    };
    let text = deliver::closed(text.trim_end().to_owned());
    let text = format!("{text}\n{line}");
    match posted.show(&text, true).await {
        Ok(()) => shown(turn, posted, &text),
        Err(error) => tracing::info!(%error, "part of an answer was not shown"),
    }
}

fn shown(turn: &Turn<'_>, posted: &PostedAnswer<'_>, text: &str) {
    put_into_window(turn, posted);
    turn.report.sent(posted, text);
}

/// Shows a whole text.
async fn post(turn: &Turn<'_>, posted: &mut PostedAnswer<'_>, text: &str) -> Outcome {
    let is_shown = persist::show(posted, text).await;
    if is_shown.is_ok() {
        shown(turn, posted, text);
    }
    ended(turn, is_shown, Outcome::Answered).await
}

/// The outcome of the turn, depending on whether its words could be shown.
async fn ended(turn: &Turn<'_>, shown: Result<(), RestError>, otherwise: Outcome) -> Outcome {
    match shown {
        Ok(()) => otherwise,
        Err(error) => {
            refused::undelivered(turn, &error).await;
            Outcome::Failed
        }
    }
}

/// The next turn here may start before the gateway delivers the answer. One that only
/// the asker sees is not part of the conversation.
fn put_into_window(turn: &Turn<'_>, posted: &PostedAnswer<'_>) {
    if turn.job.request.is_private {
        return;
    }
    let us = turn.services.us(turn.ids.guild);
    let kind = match turn.job.request.cause {
        Cause::Mention | Cause::Direct | Cause::AutoReply | Cause::AgentRun => MessageKind::Default,
        Cause::Ask(_) => MessageKind::ChatInputCommand,
        Cause::AskAbout(..) => MessageKind::ContextMenuCommand,
    };
    let mut window = turn.services.window();
    for (id, content) in posted.parts() {
        window.posted(Message {
            id,
            channel: turn.trigger().channel,
            guild: turn.ids.guild,
            kind,
            author: us.author(),
            timestamp: id.created(),
            edited: None,
            flags: MessageFlags::default(),
            content: content.into(),
            reference: None,
            referenced: Referenced::Absent,
            mentions: Box::default(),
            mention_roles: Box::default(),
            extras: None,
            withheld: false,
        });
    }
}

/// Takes back what was posted. Returns whether it is gone.
pub(super) async fn take_back(
    turn: &Turn<'_>,
    posted: &mut PostedAnswer<'_>,
    order: &Order,
) -> bool {
    if posted.messages() > 0 {
        let ids = turn.services.telemetry.styled(&turn.ids);
        tracing::info!(
            channel = ids.channel.map(display),
            trigger = ids.message.map(display),
            because = order.why(),
            "1 answer was taken back"
        );
    }
    posted.remove(order).await
}

/// Nothing is posted yet, but a command shows that we are thinking.
pub(super) async fn interrupted(turn: &Turn<'_>, order: &Order) {
    if turn.interaction().is_some() && matches!(order, Order::Cancel | Order::Abandon { .. }) {
        PostedAnswer::new(turn, None).remove(order).await;
    }
}
