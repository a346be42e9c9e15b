//! `/context clear|show|save`.

use clew_simulator::Fault;
use serde_json::json;

use super::{assert_refused, assert_says, field, outcomes, place};
use crate::support::bot::details;
use crate::support::model::Behaviour;

#[tokio::test(flavor = "multi_thread")]
async fn context_clear_command_advances_clear_time() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "the pump is called Bertha").await;
    p.talk(p.boris, p.channel, "mine is called Carl").await;
    assert_eq!(p.remembered(p.ada, p.channel).await, 2);
    let shown = p.plain(p.ada, "context clear").await;
    assert_says(
        &shown,
        "Starting fresh for you in every channel here. Nothing was deleted.",
    );
    assert_eq!(p.remembered(p.ada, p.channel).await, 0);
    assert_eq!(p.stored(p.ada, p.channel).await, 2, "rows stay");
    assert_eq!(p.remembered(p.boris, p.channel).await, 2, "Boris's stays");
    p.talk(p.ada, p.channel, "and now?").await;
    assert!(!p.prompts()[2].contains("Bertha"), "{}", p.prompts()[2]);
    assert_eq!(p.remembered(p.ada, p.channel).await, 2);
    p.talk(p.ada, p.channel, "and then?").await;
    assert!(p.prompts()[3].contains("and now?"));
    assert_eq!(outcomes(&bot.stop().await, "context_clear"), ["done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn clearing_for_everyone_needs_manage_server() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "hello").await;
    let everyone = json!({"everyone": true});
    let refused = p.call(p.boris, p.channel, "context clear", everyone.clone());
    assert_refused(&refused.await, "need Manage Server");
    assert_eq!(p.remembered(p.ada, p.channel).await, 2);
    let done = p.call(p.maria, p.channel, "context clear", everyone.clone());
    assert_says(
        &done.await,
        "Starting fresh for everyone in every channel here. Nothing was deleted.",
    );
    assert_eq!(p.remembered(p.ada, p.channel).await, 0);
    let direct = p.direct(p.ada);
    let done = p.call(p.ada, direct, "context clear", everyone);
    assert_says(&done.await, "Starting fresh. Nothing was deleted.");
    let lines = bot.stop().await;
    assert_eq!(
        outcomes(&lines, "context_clear"),
        ["refused", "done", "done"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn show_says_what_there_is() {
    let (p, bot) = place(&[]).await;
    let shown = p.plain(p.ada, "context show").await;
    assert_eq!(field(&shown, "Stored"), "nothing");
    assert_eq!(field(&shown, "Agent"), "`default`");
    assert!(field(&shown, "I go back to").ends_with("(at most 24 hours)"));
    p.talk(p.ada, p.channel, "hello").await;
    let shown = p.plain(p.ada, "context show").await;
    assert_eq!(field(&shown, "Stored"), "2 messages, kept over restarts");
    assert_eq!(field(&shown, "In my next answer"), "2 messages");
    assert_eq!(
        field(&shown, "Whose conversation"),
        "yours alone, of this channel"
    );
    assert_eq!(field(&shown, "Saved by you here"), "0 conversations");
    bot.stop().await;
}

/// Files keep messages for a limited time, which is shown.
#[tokio::test(flavor = "multi_thread")]
async fn show_says_when_files_expire_and_that_saving_needs_a_database() {
    let folder = tempfile::TempDir::new().unwrap();
    let store = format!("files:{}", folder.path().display());
    let (p, bot) = place(&[("CONTEXT_STORE", &store)]).await;
    p.talk(p.ada, p.channel, "hello").await;
    let shown = p.plain(p.ada, "context show").await;
    let stored = "2 messages, gone in about 24 hours, kept over restarts";
    assert_eq!(field(&shown, "Stored"), stored);
    assert_eq!(
        field(&shown, "Saved by you here"),
        "saving needs a database"
    );
    let refused = p.plain(p.ada, "context history").await;
    assert_refused(&refused, "need a database");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn context_save_command_creates_snapshot() {
    let (p, bot) = place(&[]).await;
    assert_refused(&p.plain(p.ada, "context save").await, "Nothing to save");
    p.talk(p.ada, p.channel, "the pump is called Bertha").await;
    let summary = "Ada named her pump. Nothing is left to do.";
    p.stage.model.script(Behaviour::text(&[summary]));
    let options = json!({"description": "pumps"});
    let shown = p.call(p.ada, p.channel, "context save", options).await;
    assert_says(&shown, "Saved 2 messages (\"pumps\") as `");
    assert_says(&shown, summary);
    let asked = p.prompts().pop().unwrap();
    assert!(asked.starts_with("Summarize this conversation"), "{asked}");
    assert!(asked.contains("Bertha"), "{asked}");
    assert_eq!(
        p.remembered(p.ada, p.channel).await,
        2,
        "nothing is cleared"
    );
    let sessions = p.stage.folder.path().join("agents/default/sessions");
    assert_eq!(std::fs::read_dir(sessions).unwrap().count(), 1);
    let lines = bot.stop().await;
    assert_eq!(outcomes(&lines, "context_save"), ["refused", "done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_fails_is_said_and_the_rest_is_saved() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "hello").await;
    p.stage.model.script(Behaviour::status(400, "no"));
    let shown = p.plain(p.ada, "context save").await;
    assert_says(&shown, "Saved 2 messages");
    assert_says(&shown, "(summary generation failed)");
    bot.stop().await;
}

/// A summary counts against the same limit as an answer.
#[tokio::test(flavor = "multi_thread")]
async fn saving_counts_as_a_question() {
    let (p, bot) = place(&[("USER_TURNS_PER_MIN", "2")]).await;
    p.talk(p.ada, p.channel, "hello").await;
    assert_says(&p.plain(p.ada, "context save").await, "Saved 2 messages");
    let refused = p.plain(p.ada, "context save").await;
    assert_refused(&refused, "a lot of questions");
    p.plain(p.ada, "context history").await;
    assert_refused(&p.plain(p.boris, "context save").await, "Nothing to save");
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "refused")[0]["reason"], "user_rate");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_model_is_waited_for_behind_thinking() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "hello").await;
    let (slow, gate) = Behaviour::gated(&["In the end."]);
    p.stage.model.script(slow);
    let discord = &p.stage.discord;
    let called = discord.call(p.ada, p.channel, "context save", json!({}));
    let called = called.await.unwrap();
    discord.clear_requests();
    p.stage.model.wait_requests(2).await;
    let thinking = discord.wait_request("POST", "/callback", 1).await;
    thinking.unwrap();
    gate.open();
    assert_says(&called.answer().await.unwrap(), "In the end.");
    assert_eq!(called.callback(), Some(5), "thinking came first");
    let lines = bot.stop().await;
    let answered = details(&lines, "answered");
    let saved = answered.iter().find(|one| one["command"] == "context_save");
    assert_eq!(saved.unwrap()["deferred"], true);
    let shown = answered.iter().find(|one| one["command"] == "context_show");
    assert_eq!(shown.unwrap()["deferred"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_memory_only_nothing_is_saved_and_that_is_said() {
    let (p, bot) = place(&[("IN_MEMORY_CONTEXT_ONLY", "true")]).await;
    p.talk(p.ada, p.channel, "kumquat").await;
    let shown = p.plain(p.ada, "context show").await;
    let stored = "2 messages, in memory only: gone when I restart";
    assert_eq!(field(&shown, "Stored"), stored);
    assert_refused(&p.plain(p.ada, "context save").await, "Saving is off");
    bot.stop().await;
    assert!(!p.on_disk("kumquat"));
}

#[tokio::test(flavor = "multi_thread")]
async fn context_commands_no_active_agent_in_channel() {
    let (p, bot) = place(&[("DEFAULT_AGENT", "off")]).await;
    for (command, options) in [
        ("context clear", json!({})),
        ("context show", json!({})),
        ("context save", json!({})),
        ("context history", json!({})),
        ("context restore", json!({"snapshot": "x"})),
    ] {
        let shown = p.call(p.ada, p.channel, command, options).await;
        assert_refused(&shown, "No agent answers in this channel");
    }
    bot.stop().await;
}

/// When Discord takes the first response late or not at all, the work is still done and the bot keeps running.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_discord_refuses_breaks_nothing() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "hello").await;
    let discord = &p.stage.discord;
    discord.fault(Fault::status("POST", "/callback", 404, 10_062, "Unknown").once());
    discord.clear_requests();
    let called = discord.call(p.ada, p.channel, "context clear", json!({}));
    called.await.unwrap();
    let sent = discord.wait_request("POST", "/callback", 1).await;
    sent.unwrap();
    assert_eq!(p.remembered(p.ada, p.channel).await, 0);
    bot.stop().await;
}
