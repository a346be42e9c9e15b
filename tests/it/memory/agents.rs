//! Agents in whole turns: whose prompt, docs, model and memory are used, and what
//! an agent is told of its other turns.

use std::fs;
use std::time::Duration;

use clew_simulator::{Id, OverwriteOf, Permissions};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::place::{HOUR, Kind, Place, assert_says, assert_says_nothing_of, on_each_database};
use crate::support::model::Behaviour;

on_each_database! {
    two_agents_in_two_channels
}

fn write(p: &Place, path: &str, text: &str) {
    let path = p.path("agents").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn write_agent(p: &Place, name: &str, channel: Id, fields: &Value) {
    let mut agent = json!({
        "system_prompt": format!("You are {name}."),
        "channels": [channel.to_string()],
    });
    for (key, value) in fields.as_object().unwrap() {
        agent[key] = value.clone();
    }
    write(p, &format!("{name}/agent.json"), &agent.to_string());
}

fn model_of_last(p: &Place) -> Value {
    p.stage.model.requests().last().unwrap()["model"].clone()
}

/// The expected order is prompt, docs, status, window.
async fn two_agents_in_two_channels(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    write_agent(&p, "plumber", p.help, &json!({"rolling_window_s": 3600}));
    write(&p, "plumber/docs/pipes.md", "Pipes are round.");
    let baker = json!({"model": "large", "scope": "user"});
    write_agent(&p, "baker", p.pumps, &baker);
    let bot = p.start().await;

    // test_context_includes_system_prompt, test_context_includes_agent_docs
    p.ask(p.help, p.ada, "saffron").await;
    let plumber = p.ask(p.help, p.ada, "turmeric").await.prompt;
    assert_says(
        &plumber,
        &[
            "You are plumber.",
            "# pipes.md",
            "Pipes are round.",
            "so: saffron",
            "turmeric",
        ],
    );
    assert_eq!(model_of_last(&p), "fake");

    // It has its own model and its own scope.
    let asked = p.ask(p.pumps, p.ada, "cinnamon").await;
    assert_says(&asked.prompt, &["You are baker."]);
    assert_says_nothing_of(&asked.prompt, &["saffron", "plumber", "Pipes"]);
    assert_eq!(model_of_last(&p), "large");

    // Where no agent is assigned, the built-in one answers, without knowing what
    // the others heard.
    let asked = p.prompt(p.abroad, p.ada).await;
    assert_says_nothing_of(&asked, &["plumber", "baker", "saffron", "cinnamon"]);

    // test_rolling_window_configurable
    p.time.pass(2 * HOUR);
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    assert_says(&p.prompt(p.pumps, p.ada).await, &["cinnamon"]);

    // A thread belongs to the agent of its channel.
    assert_says(&p.prompt(p.thread, p.ada).await, &["You are plumber."]);
    let bot = p.restart(bot).await;
    assert_says(
        &p.prompt(p.pumps, p.ada).await,
        &["You are baker.", "cinnamon"],
    );
    bot.stop().await;
}

/// Asks until the prompt says so: the folder is looked at only every two seconds.
async fn until_prompt_says(p: &Place, channel: Id, mark: &str) -> String {
    for _ in 0..50 {
        let prompt = p.prompt(channel, p.ada).await;
        if prompt.contains(mark) {
            return prompt;
        }
        sleep(Duration::from_millis(200)).await;
    }
    panic!("no prompt says {mark:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_change_while_the_bot_runs() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    write_agent(&p, "plumber", p.help, &json!({}));
    let bot = p.start().await;
    assert_says(&p.prompt(p.help, p.ada).await, &["You are plumber."]);
    let changed = json!({"system_prompt": "You are a changed plumber."});
    write_agent(&p, "plumber", p.help, &changed);
    until_prompt_says(&p, p.help, "You are a changed plumber.").await;
    // A file that cannot be used changes nothing; the other agent shows when the
    // folder has been looked at.
    write(&p, "plumber/agent.json", "{\"system_prompt\": 7}");
    write_agent(&p, "baker", p.pumps, &json!({}));
    until_prompt_says(&p, p.pumps, "You are baker.").await;
    assert_says(
        &p.prompt(p.help, p.ada).await,
        &["You are a changed plumber."],
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_agent_a_line_says_so() {
    let p = Place::new(Kind::Sqlite, &[("DEFAULT_AGENT", "off")]).await;
    write_agent(&p, "plumber", p.help, &json!({}));
    let bot = p.start().await;
    assert_says(&p.prompt(p.help, p.ada).await, &["You are plumber."]);
    let requests = p.stage.model.requests().len();
    p.say(p.pumps, p.ada, "saffron");
    let said = p.stage.discord.wait_answers(p.pumps, 1).await.unwrap();
    assert_eq!(said[0].content, "-# I don't answer in this channel.");
    assert_eq!(p.stage.model.requests().len(), requests);
    let lines = bot.stop().await;
    assert!(
        lines
            .iter()
            .any(|line| line["detail"]["outcome"] == "refused")
    );
    assert_eq!(p.traces("saffron"), [""; 0]);
}

/// A parameter that the server rejects by name is replaced for every model from
/// then on; that a model has a fixed temperature applies to that model only.
#[tokio::test(flavor = "multi_thread")]
async fn an_agents_model_is_asked_as_the_server_taught() {
    let p = Place::new(Kind::Sqlite, &[("LLM_TEMPERATURE", "0.5")]).await;
    write_agent(&p, "plumber", p.help, &json!({"model": "deep"}));
    let bot = p.start().await;
    let reject = |text: &str| p.stage.model.script(Behaviour::status(400, text));
    reject("Use 'max_completion_tokens' instead of 'max_tokens'.");
    p.prompt(p.pumps, p.ada).await;
    reject("'temperature' does not support 0.5 with this model.");
    p.prompt(p.help, p.ada).await;
    p.prompt(p.help, p.ada).await;
    p.prompt(p.pumps, p.ada).await;
    bot.stop().await;
    let requests = p.stage.model.requests();
    let asked: Vec<_> = requests
        .iter()
        .map(|request| {
            let has = |name: &str| request.get(name).is_some();
            let model = request["model"].as_str().unwrap();
            (model, has("max_completion_tokens"), has("temperature"))
        })
        .collect();
    let expected = [
        ("fake", false, true),
        ("fake", true, true),
        ("deep", true, true),
        ("deep", true, false),
        ("deep", true, false),
        ("fake", true, true),
    ];
    assert_eq!(asked, expected);
}

/// `test_context_includes_thread_status`, and who may see it.
#[tokio::test(flavor = "multi_thread")]
async fn status_of_running_turns_is_told_to_who_may_read_there() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["also answering"]);
    let (pieces, gate) = Behaviour::gated(&["slow"]);
    let requests = p.stage.model.requests().len();
    p.stage.model.script(pieces);
    p.say(p.pumps, p.boris, "saffron");
    p.stage.model.wait_requests(requests + 1).await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["Right now you are also answering in: ", "pumps"]);
    assert_says_nothing_of(&prompt, &["saffron", "Boris"]);
    // Nothing is told in another server.
    assert_says_nothing_of(&p.prompt(p.abroad, p.ada).await, &["also answering"]);
    p.stage.discord.overwrite(
        p.pumps,
        OverwriteOf::Member(p.ada),
        Permissions::NONE,
        Permissions::VIEW_CHANNEL,
    );
    p.stage.discord.settled().await.unwrap();
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["also answering", "pumps"]);
    gate.open();
    bot.stop().await;
}

/// Nor are other agents' turns told.
#[tokio::test(flavor = "multi_thread")]
async fn status_is_of_the_same_agent() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    write_agent(&p, "plumber", p.pumps, &json!({}));
    let bot = p.start().await;
    let (pieces, gate) = Behaviour::gated(&["slow"]);
    p.stage.model.script(pieces);
    p.say(p.pumps, p.boris, "saffron");
    p.stage.model.wait_requests(1).await;
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["also answering"]);
    gate.open();
    bot.stop().await;
}
