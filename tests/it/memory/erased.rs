//! Erasing, and opting out and in again, while a turn, an extraction or a snapshot of that person is under way:
//! afterwards nothing from before is kept.

use clew_simulator::{Id, Invocation};
use serde_json::json;

use super::place::{Kind, Place, assert_says, assert_says_nothing_of, on_each_store};
use crate::support::model::{Behaviour, Gate};

on_each_store! {
    a_turn_that_ends_after_an_erasure_is_not_kept
    a_turn_that_ends_after_opting_out_and_in_is_not_kept
}

/// Calls a command and presses its confirmation button.
async fn confirm(p: &Place, command: &str, label: &str) {
    let discord = &p.stage.discord;
    let called = discord.call(p.ada, p.help, command, json!({})).await;
    let asked = called.unwrap().answer().await.unwrap();
    let pressed = discord.press(p.ada, asked.message, label);
    pressed.answer().await.unwrap();
}

/// Starts a turn of Ada's that waits for the model.
async fn running(p: &Place, channel: Id) -> Gate {
    let requests = p.stage.model.requests().len();
    let (pieces, gate) = Behaviour::gated(&["so: saffron"]);
    p.stage.model.script(pieces);
    p.say(channel, p.ada, "saffron");
    p.stage.model.wait_requests(requests + 1).await;
    gate
}

/// Lets the turn end with its answer.
async fn ends(p: &Place, channel: Id, gate: &Gate) {
    let turns = p.event_count("turn_done");
    gate.open();
    let discord = &p.stage.discord;
    let answered = discord.wait_for_message(channel, |message| message.content == "so: saffron");
    answered.await.unwrap();
    p.until("an end", || p.event_count("turn_done") > turns)
        .await;
}

async fn nothing_is_left(p: &Place) {
    let asked = p.ask(p.help, p.ada, "turmeric").await;
    assert_says_nothing_of(&asked.prompt, &["saffron"]);
    // From then on she is treated like everyone else.
    assert_says(&p.prompt(p.help, p.ada).await, &["turmeric"]);
    assert_eq!(p.traces("saffron"), [""; 0]);
}

async fn a_turn_that_ends_after_an_erasure_is_not_kept(kind: Kind) {
    let mut p = Place::new(kind, &[]).await;
    let logs = p.path("dm-logs").display().to_string();
    p.stage.set("DM_LOGS_DIR", &logs);
    let bot = p.start().await;
    for channel in [p.help, p.direct] {
        p.ask(p.help, p.boris, "cinnamon").await;
        let gate = running(&p, channel).await;
        confirm(&p, "privacy erase", "Erase everything").await;
        ends(&p, channel, &gate).await;
        nothing_is_left(&p).await;
        assert_says(&p.prompt(p.help, p.boris).await, &["cinnamon"]);
    }
    bot.stop().await;
    assert_eq!(p.traces("saffron"), [""; 0]);
}

async fn a_turn_that_ends_after_opting_out_and_in_is_not_kept(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let gate = running(&p, p.help).await;
    confirm(&p, "privacy opt-out", "Opt out and erase").await;
    let discord = &p.stage.discord;
    let called = discord
        .call(p.ada, p.help, "privacy opt-in", json!({}))
        .await;
    called.unwrap().answer().await.unwrap();
    ends(&p, p.help, &gate).await;
    nothing_is_left(&p).await;
    bot.stop().await;
    assert_eq!(p.traces("saffron"), [""; 0]);
}

/// An extraction starts only after the answer.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_learnt_of_what_came_before_an_erasure() {
    let p = Place::new(Kind::Sqlite, &[("MEMORY_LEARN", "model")]).await;
    let bot = p.start().await;
    let fact = json!({"facts": [{"text": "Grows saffron on the roof."}]}).to_string();
    let gate = running(&p, p.help).await;
    p.stage.model.script(Behaviour::text(&[&fact]));
    confirm(&p, "privacy erase", "Erase everything").await;
    ends(&p, p.help, &gate).await;
    bot.stop().await;
    assert_eq!(p.traces("saffron"), [""; 0]);
}

/// `/context save`, while the model is asked for a summary, before anything is written.
async fn saving<'a>(p: &'a Place, summary: &str) -> (Invocation<'a>, Gate) {
    let requests = p.stage.model.requests().len();
    let (pieces, gate) = Behaviour::gated(&[summary]);
    p.stage.model.script(pieces);
    let discord = &p.stage.discord;
    let saving = discord.call(p.ada, p.help, "context save", json!({})).await;
    p.stage.model.wait_requests(requests + 1).await;
    (saving.unwrap(), gate)
}

/// `/context save` asks the model for a summary before it writes.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_ends_after_an_erasure_is_not_kept() {
    for command in ["privacy erase", "privacy opt-out"] {
        let p = Place::new(Kind::Sqlite, &[]).await;
        let bot = p.start().await;
        p.ask(p.help, p.ada, "saffron").await;
        let (saving, gate) = saving(&p, "It was about saffron.").await;
        let label = match command {
            "privacy erase" => "Erase everything",
            _ => "Opt out and erase",
        };
        confirm(&p, command, label).await;
        gate.open();
        saving.answer().await.unwrap();
        bot.stop().await;
        assert_eq!(p.traces("saffron"), [""; 0], "{command}");
    }
}

/// The same for a message that is deleted meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_lacks_what_was_deleted_meanwhile() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    let gone = p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.ada, "turmeric").await;
    let (saving, gate) = saving(&p, "It was about spices.").await;
    let discord = &p.stage.discord;
    discord.delete(p.help, gone.trigger);
    p.until_gone("saffron").await;
    gate.open();
    saving.answer().await.unwrap();
    bot.stop().await;
    assert_eq!(p.traces("saffron"), [""; 0]);
    let of_snapshots = |file: &String| file.contains("sessions");
    assert!(p.traces("turmeric").iter().any(of_snapshots));
}

/// What is edited meanwhile is saved as it reads then, and its answer goes with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_has_what_was_edited_meanwhile_with_its_answer() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    let asked = p.ask_for(p.help, p.ada, "saffron", "it is crimson").await;
    p.ask(p.help, p.ada, "turmeric").await;
    let (saving, gate) = saving(&p, "It was about spices.").await;
    let discord = &p.stage.discord;
    let us = discord.bot();
    discord.edit(p.help, asked.trigger, &format!("<@{us}> cinnamon"));
    p.until_gone("saffron").await;
    gate.open();
    saving.answer().await.unwrap();
    let of_snapshots = |file: &String| file.contains("sessions");
    for words in ["cinnamon", "crimson"] {
        assert!(p.traces(words).iter().any(of_snapshots), "{words}");
    }
    assert!(!p.traces("about spices").iter().any(of_snapshots));
    discord.delete(p.help, asked.trigger);
    p.until_gone("cinnamon").await;
    bot.stop().await;
    assert_eq!(p.traces("crimson"), [""; 0]);
}
