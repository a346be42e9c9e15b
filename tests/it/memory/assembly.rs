//! What a model call is made of: system prompt, docs, status of the other turns,
//! window.

use std::fs;

use clew_simulator::{Id, Shown};
use serde_json::{Value, json};

use super::place::{
    DAY, HOUR, Kind, Place, assert_says, assert_says_nothing_of, on_each_database, on_each_store,
};
use crate::support::model::Behaviour;

on_each_store! {
    context_includes_thread_status
    context_includes_rolling_window_messages
    context_window_bounded_by_clear_time_or_rolling_window
    new_threads_see_only_what_came_after_a_clear
}

on_each_database! {
    context_includes_system_prompt
    context_includes_agent_docs
    save_generates_summary
    generate_summary_calls_llm
    generate_summary_returns_short_text
    generate_summary_handles_llm_failure_gracefully
}

/// An agent for `help`.
fn plumber(p: &Place) {
    let folder = p.path("agents/plumber");
    fs::create_dir_all(folder.join("docs")).unwrap();
    let agent = json!({"system_prompt": "You are a plumber.", "channels": [p.help.to_string()]});
    fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    fs::write(folder.join("docs/1-pipes.md"), "Pipes are round.").unwrap();
    fs::write(folder.join("docs/2-bends.md"), "Bends are not.").unwrap();
}

/// What the caller of a command is shown.
async fn call(p: &Place, who: Id, command: &str, options: Value) -> Shown {
    let called = p.stage.discord.call(who, p.help, command, options).await;
    called.unwrap().answer().await.unwrap()
}

async fn clear(p: &Place) {
    let shown = call(p, p.ada, "context clear", json!({})).await;
    assert!(shown.text().contains("Starting fresh"), "{}", shown.text());
}

/// The system message of the last model call.
fn system(p: &Place) -> String {
    let request = p.stage.model.requests().pop().unwrap();
    let first = &request["messages"][0];
    assert_eq!(first["role"], "system");
    first["content"].as_str().unwrap().to_owned()
}

async fn context_includes_system_prompt(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    plumber(&p);
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    assert!(
        system(&p).starts_with("You are a plumber."),
        "{}",
        system(&p)
    );
    p.ask(p.pumps, p.ada, "ginger").await;
    assert_says_nothing_of(&system(&p), &["plumber"]);
    bot.stop().await;
}

/// The docs come after the prompt, sorted by name.
async fn context_includes_agent_docs(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    plumber(&p);
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let parts = ["plumber", "Pipes are round.", "Bends are not."];
    assert_says(&system(&p), &parts);
    p.ask(p.pumps, p.ada, "ginger").await;
    assert_says_nothing_of(&system(&p), &["Pipes", "Bends"]);
    bot.stop().await;
}

/// Only the place of a running turn is told, and nothing of a turn that has ended.
async fn context_includes_thread_status(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let (slow, gate) = Behaviour::gated(&["slow"]);
    p.stage.model.script(slow);
    p.say(p.pumps, p.boris, "saffron");
    p.stage.model.wait_requests(1).await;
    p.ask(p.help, p.ada, "ginger").await;
    assert_says(
        &system(&p),
        &["Right now you are also answering in", "pumps"],
    );
    assert_says_nothing_of(&system(&p), &["saffron"]);
    gate.open();
    p.until("two stored turns", || p.event_count("recorded") == 2)
        .await;
    p.ask(p.help, p.ada, "cumin").await;
    assert_says_nothing_of(&system(&p), &["also answering"]);
    bot.stop().await;
}

/// The stored messages are separate messages, oldest first, after everything else and before the question.
async fn context_includes_rolling_window_messages(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.ada, "ginger").await;
    p.prompt(p.help, p.ada).await;
    let request = p.stage.model.requests().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|one| one["role"].as_str()).collect();
    let [user, assistant] = [Some("user"), Some("assistant")];
    assert_eq!(
        roles,
        [Some("system"), user, assistant, user, assistant, user]
    );
    let parts = ["saffron", "so: saffron", "ginger", "so: ginger", "go on"];
    for (message, part) in messages[1..].iter().zip(parts) {
        assert_says(message["content"].as_str().unwrap(), &[part]);
    }
    bot.stop().await;
}

/// `max(last clear, now - rolling window)`: the later one counts.
async fn context_window_bounded_by_clear_time_or_rolling_window(kind: Kind) {
    let settings = [
        ("CONTEXT_ROLLING_WINDOW_S", "7200"),
        ("RECALL_MESSAGES", "0"),
    ];
    let p = Place::new(kind, &settings).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.time.pass(HOUR);
    // The clear is later than the beginning of the window.
    clear(&p).await;
    p.ask(p.help, p.ada, "ginger").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["so: ginger"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    // The beginning of the window is later than the clear.
    p.time.pass(HOUR);
    p.ask(p.help, p.ada, "cumin").await;
    p.time.pass(HOUR + 60_000);
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["so: cumin"]);
    assert_says_nothing_of(&prompt, &["saffron", "ginger"]);
    bot.stop().await;
}

/// A clear applies to the agent in all channels; the rows stay, and both survive a
/// restart.
async fn new_threads_see_only_what_came_after_a_clear(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.pumps, p.ada, "turmeric").await;
    p.ask(p.help, p.boris, "cinnamon").await;
    clear(&p).await;
    for channel in [p.help, p.pumps, p.thread] {
        let prompt = p.prompt(channel, p.ada).await;
        assert_says_nothing_of(&prompt, &["saffron", "turmeric"]);
    }
    assert_says(&p.prompt(p.help, p.boris).await, &["so: cinnamon"]);
    let bot = p.restart(bot).await;
    p.time.pass(DAY / 2);
    let prompt = p.prompt(p.pumps, p.ada).await;
    assert_says(&prompt, &["go on"]);
    assert_says_nothing_of(&prompt, &["turmeric"]);
    bot.stop().await;
    for word in ["saffron", "turmeric"] {
        assert!(!p.traces(word).is_empty(), "{word} is kept");
    }
}

/// Saves a conversation; returns what was shown, and the file.
async fn saved(p: &Place, summary: Behaviour) -> (String, Value) {
    p.stage.model.script(summary);
    let shown = call(p, p.ada, "context save", json!({})).await;
    let sessions = fs::read_dir(p.path("agents/default/sessions")).unwrap();
    let files: Vec<_> = sessions.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(&files[0]).unwrap();
    (shown.text(), serde_json::from_str(&text).unwrap())
}

async fn save_generates_summary(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let (shown, file) = saved(&p, Behaviour::text(&["They spoke ", "of spices."])).await;
    assert_says(&shown, &["They spoke of spices."]);
    assert_eq!(file["summary"], "They spoke of spices.");
    let listed = call(&p, p.ada, "context history", json!({})).await.text();
    assert_says(&listed, &["They spoke of spices."]);
    bot.stop().await;
}

/// The model is called once, with one instruction and only the caller's conversation.
async fn generate_summary_calls_llm(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.boris, "cinnamon").await;
    saved(&p, Behaviour::text(&["Spices."])).await;
    assert_eq!(p.stage.model.requests().len(), 3);
    let instruction = "Summarize this conversation in 2-4 sentences. Focus on what was \
                       accomplished, decisions made, and any unfinished work.";
    assert!(system(&p).starts_with(instruction), "{}", system(&p));
    let request = p.stage.model.requests().pop().unwrap();
    let material = request["messages"][1]["content"].as_str().unwrap();
    assert_says(material, &["saffron", "so: saffron"]);
    assert_says_nothing_of(material, &["cinnamon"]);
    bot.stop().await;
}

/// The summary is short, however long the model's text is.
async fn generate_summary_returns_short_text(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let long = "Spices and again spices. ".repeat(400);
    let (_, file) = saved(&p, Behaviour::text(&[&long])).await;
    let summary = file["summary"].as_str().unwrap();
    assert!(long.starts_with(summary));
    assert_eq!(summary.chars().count(), 1_000);
    bot.stop().await;
}

/// The conversation is saved nevertheless.
async fn generate_summary_handles_llm_failure_gracefully(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let (shown, file) = saved(&p, Behaviour::status(400, "no")).await;
    assert_says(&shown, &["Saved 2 messages", "(summary generation failed)"]);
    assert_eq!(file["summary"], "(summary generation failed)");
    assert_eq!(file["message_count"], 2);
    let messages = file["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "saffron");
    bot.stop().await;
}
