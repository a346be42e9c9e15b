//! What became of a question unheard: whether an earlier process, which had begun to answer it,
//! left something, so that it has one answer; and whether it still stands.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Turn;
use super::deliver;
use super::patience::{Tries, insist};
use crate::telemetry::event::AnswerLeft;
use clew_context::collect::{PAGE_LIMIT, PageCursor};
use clew_context::model::{Fallback, Message, MessageId, MessageKind};
use clew_discord::session::Unfinished;

/// How long Discord certainly knows a nonce ("a few minutes", its reference says).
const NONCE: Duration = Duration::from_mins(2);
/// How long one request may take.
const LOOK_TIMEOUT: Duration = Duration::from_secs(10);

/// Whether the question is answered already. Otherwise what was posted is taken back, or will
/// be found under its nonce, and the question is to be asked.
pub(super) async fn is_answered(turn: &mut Turn<'_>) -> bool {
    let Some(mut left) = turn.job.left.take() else {
        return false;
    };
    let (services, question) = (turn.services, turn.trigger().id);
    let found = find(turn, &mut left).await;
    let channel = turn.trigger().channel;
    tracing::info!(%channel, trigger = %question, found = found.map(AnswerLeft::as_str),
        "an earlier process had begun to answer a question");
    turn.report.left(found);
    match found {
        Some(AnswerLeft::Answer | AnswerLeft::Unexplained) => {
            services.claims.over(question, services.memory.now()).await;
            return true;
        }
        Some(AnswerLeft::Part) => {
            if !take_back(turn, &left).await {
                // Rather a part of an answer than two answers.
                services.claims.over(question, services.memory.now()).await;
                return true;
            }
            turn.restarts = left.restarts + 1;
        }
        Some(AnswerLeft::Nonce) => {
            turn.restarts = left.restarts;
            turn.is_sent_again = true;
        }
        None => turn.restarts = left.restarts + 1,
    }
    false
}

/// Whether a question that waited while events were missed is still there; it is asked as it
/// reads now. If Discord does not say, it stands.
pub(super) async fn stands(turn: &mut Turn<'_>) -> bool {
    let (services, request) = (turn.services, &turn.job.request);
    let trigger = &request.trigger;
    let (guild, channel, id) = (trigger.guild, trigger.channel, trigger.id);
    let is_heard = !services
        .memory
        .is_before_gap(guild, (channel, id), turn.job.asked);
    if is_heard || !request.cause.is_posted() {
        return true;
    }
    let deadline = Instant::now() + LOOK_TIMEOUT;
    match services.rest.reader().check(channel, id, deadline).await {
        Ok(now) => {
            if now.edited > trigger.edited {
                turn.job.request.trigger = Arc::new(Message { guild, ..now });
            }
            true
        }
        Err(error) => error.reason != Fallback::Deleted,
    }
}

async fn find(turn: &Turn<'_>, left: &mut Unfinished) -> Option<AnswerLeft> {
    let (services, question) = (turn.services, turn.trigger().id);
    let us = services.us(None).user;
    let (rest, request) = (&services.rest, &turn.job.request);
    if services.memory.settle_left(rest, us, request.turn()).await {
        Some(AnswerLeft::Answer)
    } else if !left.posted.is_empty() {
        Some(AnswerLeft::Part)
    } else if left.at > services.memory.now().before(NONCE) {
        // If our clock was set back, Discord may know the nonce no more: what stands there is
        // taken back.
        let is_reply = |one: &&Message| one.replies_to() == Some(question);
        let ours = unexplained(turn).await;
        if ours.is_none() && is_gone(turn).await {
            // Nobody waits for an answer, and one may stand there.
            return Some(AnswerLeft::Unexplained);
        }
        let ours = ours.unwrap_or_default();
        left.posted = ours.iter().filter(is_reply).map(|one| one.id).collect();
        if left.posted.is_empty() {
            Some(AnswerLeft::Nonce)
        } else {
            Some(AnswerLeft::Part)
        }
    } else {
        match unexplained(turn).await {
            Some(ours) if !ours.iter().any(|one| may_answer(one, question)) => None,
            // If nobody knows: rather no answer than two.
            _ => Some(AnswerLeft::Unexplained),
        }
    }
}

/// Whether Discord says that the question was deleted.
async fn is_gone(turn: &Turn<'_>) -> bool {
    let (trigger, deadline) = (turn.trigger(), Instant::now() + LOOK_TIMEOUT);
    let reader = turn.services.rest.reader();
    let found = reader.check(trigger.channel, trigger.id, deadline).await;
    found.is_err_and(|error| error.reason == Fallback::Deleted)
}

/// Takes back the parts of an answer. Returns whether all are gone.
async fn take_back(turn: &Turn<'_>, left: &Unfinished) -> bool {
    let (services, trigger) = (turn.services, turn.trigger());
    let parts = left.posted.iter().copied();
    let gone = deliver::delete(&services.rest, trigger.channel, parts, Tries::All).await;
    if let Err(error) = gone {
        tracing::warn!(%error, "part of an earlier process's answer could not be removed: it stays");
        return false;
    }
    let now = services.memory.now();
    services.claims.taken_back(trigger.id, now).await;
    true
}

/// The messages of ours after the question that no other question explains; `None` if nobody
/// knows. A page without the question itself proves nothing: where we may not read the history it
/// is empty.
async fn unexplained(turn: &Turn<'_>) -> Option<Vec<Message>> {
    let (services, trigger) = (turn.services, turn.trigger());
    let us = services.us(turn.ids.guild).user;
    let before = MessageId::new(trigger.id.get().saturating_sub(1));
    let (after, reader) = (PageCursor::After(before), services.rest.reader());
    let page = insist(Tries::All, || {
        let deadline = Instant::now() + LOOK_TIMEOUT;
        reader.page(trigger.channel, after, PAGE_LIMIT, deadline)
    });
    let mut ours = page.await.ok()?.messages;
    if turn.job.request.cause.is_posted() && ours.iter().all(|one| one.id != trigger.id) {
        return None;
    }
    ours.retain(|one| one.author.id == us && !services.claims.explains(one.id));
    Some(ours)
}

/// Whether a message of ours may be the answer: one that replies to another question is that
/// one's, one of a command is nobody's, and small print is a note. An answer to a question that
/// is deleted, or to a bot in a thread, replies to nothing.
fn may_answer(ours: &Message, question: MessageId) -> bool {
    let reference = ours.reference.as_ref();
    match reference.and_then(|reference| reference.message) {
        Some(replied) => replied == question,
        None => ours.kind == MessageKind::Default && !ours.content.starts_with("-# "),
    }
}

#[cfg(test)]
mod tests {
    use clew_context::discord::convert;
    use serde_json::{Value, json};

    use super::*;

    /// A busy channel is full of answers to others, some of which a kill left unexplained.
    #[test]
    fn what_replies_to_another_question_answers_that_one() {
        let may_answer_7 = |reference: Value, kind: u8, content: &str| {
            let ours = json!({
                "id": "9", "channel_id": "5", "content": content, "type": kind,
                "author": {"id": "1", "username": "clew"}, "message_reference": reference,
            });
            let ours = convert::message(&ours.to_string()).unwrap();
            may_answer(&ours, MessageId::new(7))
        };
        let to = |id: &str| json!({"message_id": id, "channel_id": "5"});
        assert!(may_answer_7(to("7"), 19, "so"));
        assert!(may_answer_7(to("7"), 19, "-# so"));
        assert!(may_answer_7(Value::Null, 0, "so"));
        assert!(!may_answer_7(to("8"), 19, "so"));
        assert!(!may_answer_7(Value::Null, 20, "Started."));
        assert!(!may_answer_7(Value::Null, 0, "-# Noted 1 thing."));
    }
}
