//! The trigger is edited or deleted before its answer is complete.

use std::time::Duration;

use clew_simulator::{Draft, Fault, FaultKind, Id};
use serde_json::json;

use super::{Place, only, place, place_with};
use crate::support::bot::details;
use crate::support::model::{Behaviour, Gate};

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_starts_over_and_takes_back_what_is_posted() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["Paris is\n", "the capital."]);
    p.stage.model.script(behaviour);
    p.stage.model.script(Behaviour::text(&["Rome."]));
    let trigger = p.post(p.channel, p.ada, p.to_us("capital of France?"));
    gate.step(1);
    let partial = p.answer(p.channel, 1).await;
    assert_eq!(partial, "Paris is");
    p.stage
        .discord
        .edit(p.channel, trigger, &p.to_us("capital of Italy?"));
    let answer = p.wait_for(p.channel, "Rome.").await;
    assert_eq!(answer.reference.unwrap().message, Some(trigger));
    assert!(p.prompt(2).await.ends_with("capital of Italy?"));
    p.stage.model.wait_ended(2).await;
    let lines = bot.stop().await;
    assert_eq!(
        p.stage.discord.answers(p.channel).len(),
        1,
        "the partial one is gone"
    );
    assert_eq!(only(&lines, "turn_done")["outcome"], "answered");
    let given_up = only(&lines, "request_failed");
    assert_eq!(given_up["reason"], "cancelled");
    assert_eq!(given_up["model"], "fake");
    only(&lines, "request_ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_a_waiting_trigger_is_what_is_asked() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["first"]);
    p.stage.model.script(behaviour);
    p.post(p.channel, p.ada, p.to_us("one"));
    p.stage.model.wait_requests(1).await;
    let second = p.post(p.channel, p.ada, p.to_us("tow"));
    p.stage.discord.edit(p.channel, second, &p.to_us("two"));
    p.seen().await;
    gate.open();
    p.answer(p.channel, 2).await;
    assert!(p.prompt(2).await.ends_with("two"));
    assert_eq!(p.stage.model.requests().len(), 2);
    bot.stop().await;
}

/// A link's preview is an update without an edit.
#[tokio::test(flavor = "multi_thread")]
async fn an_unfurled_link_is_no_edit() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["It says hello."]);
    p.stage.model.script(behaviour);
    let trigger = p.post(
        p.channel,
        p.ada,
        p.to_us("what does https://example.com say?"),
    );
    p.stage.model.wait_requests(1).await;
    let embed = json!({"title": "Example", "url": "https://example.com"});
    p.stage.discord.unfurl(p.channel, trigger, embed);
    p.seen().await;
    gate.open();
    assert_eq!(p.answer(p.channel, 1).await, "It says hello.");
    bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 1);
}

/// The edited text is asked, even if only the mention is left.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_leaves_no_words_points_at_the_conversation() {
    let (p, thread) = place_with(&[], |world, seeds| {
        let thread = seeds.thread(world, "pump");
        world.seed(thread, seeds.boris, "is 3 bar normal?");
        thread
    })
    .await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["never shown"]);
    p.stage.model.script(behaviour);
    let trigger = p.post(thread, p.ada, p.to_us("forget it"));
    p.stage.model.wait_requests(1).await;
    p.stage.discord.edit(thread, trigger, &p.to_us(""));
    assert_eq!(p.answer(thread, 1).await, "ok");
    let prompt = p.prompt(2).await;
    assert!(
        prompt.contains("is 3 bar normal?") && !prompt.contains("forget it"),
        "{prompt}"
    );
    gate.open();
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_trigger_gets_no_answer_and_a_partial_one_is_removed() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, gate) = Behaviour::gated(&["Paris is\n", "the capital."]);
    p.stage.model.script(behaviour);
    let trigger = p.post(p.channel, p.ada, p.to_us("capital of France?"));
    let waiting = p.post(p.channel, p.ada, p.to_us("and of Italy?"));
    gate.step(1);
    p.answer(p.channel, 1).await;
    p.stage.discord.bulk_delete(p.channel, &[trigger, waiting]);
    p.stage.model.wait_ended(1).await;
    let removed = p
        .stage
        .discord
        .wait_request("DELETE", "/messages/", 1)
        .await;
    removed.unwrap();
    let lines = bot.stop().await;
    assert!(p.stage.discord.answers(p.channel).is_empty());
    assert_eq!(only(&lines, "turn_done")["outcome"], "cancelled");
    assert_eq!(p.stage.model.requests().len(), 1);
}

/// The trigger is deleted while the whole answer is being posted.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_during_the_last_step_counts() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let slow = FaultKind::Latency(Duration::from_millis(300));
    let posting = Fault::new("POST", "/channels/*/messages", slow);
    p.stage.discord.fault(posting);
    let trigger = p.post(p.channel, p.ada, p.to_us("why?"));
    let path = "/channels/*/messages";
    p.stage.discord.wait_request("POST", path, 1).await.unwrap();
    p.stage.discord.delete(p.channel, trigger);
    p.stage
        .discord
        .wait_request("DELETE", "/messages/", 1)
        .await
        .unwrap();
    let lines = bot.stop().await;
    assert!(p.stage.discord.answers(p.channel).is_empty());
    assert_eq!(only(&lines, "turn_done")["outcome"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_after_the_answer_changes_nothing() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let trigger = p.post(p.channel, p.ada, p.to_us("why?"));
    p.answer(p.channel, 1).await;
    // The next turn of the same person ends after the first one.
    p.post(p.channel, p.ada, Draft::new(p.to_us("and?")));
    p.answer(p.channel, 2).await;
    p.stage
        .discord
        .edit(p.channel, trigger, &p.to_us("why not?"));
    p.seen().await;
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "turn_done").len(), 2);
    assert_eq!(p.stage.model.requests().len(), 2);
}

/// Several edits in a row lead to one restart, with the text of the last one.
#[tokio::test(flavor = "multi_thread")]
async fn edits_in_a_row_are_one_restart_and_the_first_cancels_the_request() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, _gate) = Behaviour::gated(&["never shown"]);
    p.stage.model.script(behaviour);
    let trigger = p.post(p.channel, p.ada, p.to_us("one?"));
    p.stage.model.wait_requests(1).await;
    for text in ["two?", "three?", "four?"] {
        p.stage.discord.edit(p.channel, trigger, &p.to_us(text));
        p.stage.model.wait_ended(1).await;
    }
    assert_eq!(p.answer(p.channel, 1).await, "ok");
    assert!(p.prompt(2).await.ends_with("four?"));
    let lines = bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 2);
    assert_eq!(only(&lines, "turn_done")["outcome"], "answered");
}

/// The request to the model is cancelled at once, even while a message is being
/// posted.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_cancels_the_request_while_a_part_is_being_posted() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let slow = FaultKind::Latency(Duration::from_secs(3));
    let path = "/channels/*/messages";
    p.stage.discord.fault(Fault::new("POST", path, slow));
    let (behaviour, gate) = Behaviour::gated(&["Paris is\n", "the capital."]);
    p.stage.model.script(behaviour);
    let trigger = p.post(p.channel, p.ada, p.to_us("capital of France?"));
    gate.step(1);
    p.stage.discord.wait_request("POST", path, 1).await.unwrap();
    p.stage
        .discord
        .edit(p.channel, trigger, &p.to_us("capital of Italy?"));
    p.stage.model.wait_ended(1).await;
    let posting = p.stage.discord.requests_to("POST", path);
    assert_eq!(posting[0].status, None, "still on its way");
    p.wait_for(p.channel, "ok").await;
    bot.stop().await;
    assert_eq!(p.stage.discord.answers(p.channel).len(), 1);
}

/// A question, of whose answer Discord has posted a part and never told its id.
async fn untold_part(p: &Place) -> (Id, Gate) {
    let path = "/channels/*/messages";
    let untold = Fault::new("POST", path, FaultKind::DroppedAfter).times(3);
    p.stage.discord.fault(untold);
    let (behaviour, gate) = Behaviour::gated(&["Paris is\n", "the capital."]);
    p.stage.model.script(behaviour);
    let trigger = p.post(p.channel, p.ada, p.to_us("capital of France?"));
    gate.step(1);
    p.stage.discord.wait_request("POST", path, 3).await.unwrap();
    assert_eq!(p.stage.discord.answers(p.channel)[0].content, "Paris is");
    (trigger, gate)
}

/// Discord posts a part and never tells its id: it is found by its nonce, to be taken back.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_whose_id_was_not_told_is_taken_back() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (trigger, _gate) = untold_part(&p).await;
    p.stage.model.script(Behaviour::text(&["Rome."]));
    let again = p.to_us("capital of Italy?");
    p.stage.discord.edit(p.channel, trigger, &again);
    p.wait_for(p.channel, "Rome.").await;
    bot.stop().await;
    assert_eq!(p.stage.discord.answers(p.channel).len(), 1);
}

/// What is posted again under its nonce stands there with its first words: it gets the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_part_whose_id_was_not_told_grows_all_the_same() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (_, gate) = untold_part(&p).await;
    gate.open();
    p.wait_for(p.channel, "Paris is\nthe capital.").await;
    bot.stop().await;
    assert_eq!(p.stage.discord.answers(p.channel).len(), 1);
}

const TOO_MANY: &str = "-# That's a lot of questions. Try again in a minute.";

/// Edits a running question whenever the model has been asked, until the question is
/// refused. Returns how often the model was asked.
async fn edited_until_refused(settings: &[(&str, &str)]) -> usize {
    let p = place(settings).await;
    let bot = p.start().await;
    let mut gates = Vec::new();
    for _ in 0..10 {
        let (behaviour, gate) = Behaviour::gated(&["Partly\n", "never"]);
        p.stage.model.script(behaviour);
        gate.step(1);
        gates.push(gate);
    }
    let trigger = p.post(p.channel, p.ada, p.to_us("why?"));
    let mut asked = 0;
    loop {
        asked += 1;
        tokio::select! {
            _ = p.wait_for(p.channel, TOO_MANY) => break,
            _ = p.stage.model.wait_requests(asked) => {
                p.answer(p.channel, 1).await;
                let again = p.to_us(&format!("why {asked}?"));
                p.stage.discord.edit(p.channel, trigger, &again);
            }
        }
    }
    let lines = bot.stop().await;
    let left = p.stage.discord.answers(p.channel);
    assert_eq!(left.len(), 1, "nothing of an answer is left: {left:?}");
    assert_eq!(only(&lines, "turn_done")["outcome"], "cancelled");
    assert_eq!(only(&lines, "refused")["reason"], "user_rate");
    p.stage.model.requests().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_restart_counts_as_a_question_of_the_asker() {
    assert_eq!(
        edited_until_refused(&[("USER_TURNS_PER_MIN", "3")]).await,
        3
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_asked_again_five_times_and_then_refused() {
    assert_eq!(
        edited_until_refused(&[("USER_TURNS_PER_MIN", "0")]).await,
        6
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_is_deleted_before_it_is_asked_again_ends() {
    let p = place(&[]).await;
    let bot = p.start().await;
    let (behaviour, _gate) = Behaviour::gated(&["never shown"]);
    p.stage.model.script(behaviour);
    let trigger = p.post(p.channel, p.ada, p.to_us("why?"));
    p.stage.model.wait_requests(1).await;
    p.stage
        .discord
        .edit(p.channel, trigger, &p.to_us("why not?"));
    p.stage.model.wait_ended(1).await;
    p.stage.discord.delete(p.channel, trigger);
    // The next question of the same person waits for the end of the first.
    p.post(p.channel, p.ada, p.to_us("and?"));
    assert_eq!(p.answer(p.channel, 1).await, "ok");
    let lines = bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 2);
    let outcomes = details(&lines, "turn_done");
    assert_eq!(outcomes[0]["outcome"], "cancelled");
}

/// Whether a message without a channel type is direct is looked up; it is asked as it reads then.
#[tokio::test(flavor = "multi_thread")]
async fn a_direct_message_edited_while_its_channel_is_looked_up_is_asked_as_it_reads_then() {
    let p = place(&[]).await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    let (held, gate) = Fault::held("GET", "/channels/*");
    p.stage.discord.fault(held);
    let mut message = json!({
        "id": "1600000000000000001", "channel_id": direct.to_string(), "type": 0,
        "content": "how tall is it?", "author": {"id": p.ada.to_string(), "username": "ada"},
        "timestamp": "2026-01-01T00:00:00Z", "edited_timestamp": null,
    });
    let discord = &p.stage.discord;
    discord.dispatch_raw("MESSAGE_CREATE", &message.to_string());
    let looked = format!("/channels/{direct}");
    discord.wait_request("GET", &looked, 1).await.unwrap();
    message["content"] = "how wide is it?".into();
    message["edited_timestamp"] = "2026-01-01T00:00:09Z".into();
    discord.dispatch_raw("MESSAGE_UPDATE", &message.to_string());
    p.seen().await;
    gate.open();
    p.answer(direct, 1).await;
    let prompt = p.prompt(1).await;
    assert!(
        prompt.ends_with("how wide is it?") && !prompt.contains("tall"),
        "{prompt}"
    );
    bot.stop().await;
    assert_eq!(p.stage.model.requests().len(), 1);
}
