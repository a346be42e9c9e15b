//! The effects of commands and extractions on later prompts, also after a restart.

use clew_simulator::{Id, Shown};
use serde_json::{Value, json};

use super::place::{
    Kind, Place, assert_says, assert_says_nothing_of, on_each_database, on_each_store,
};
use crate::support::bot::prompt;
use crate::support::model::Behaviour;

on_each_store! {
    what_is_learnt_outlasts_a_restart
    facts_keep_to_their_maximum
    clear_context_clears_your_own_conversation_here
}

on_each_database! {
    a_restored_conversation_is_in_the_next_prompt
}

async fn call(p: &Place, who: Id, channel: Id, command: &str, options: Value) -> Shown {
    let called = p.stage.discord.call(who, channel, command, options).await;
    called.unwrap().answer().await.unwrap()
}

/// Calls `/clear-context` and presses Delete.
async fn clear_context(p: &Place, channel: Id) {
    let asked = call(p, p.ada, channel, "clear-context", json!({})).await;
    let pressed = p.stage.discord.press(p.ada, asked.message, "Delete");
    let said = pressed.answer().await.unwrap().text();
    assert_eq!(said, "Deleted: 2 messages of our conversation.");
}

/// The command deletes the caller's conversation in this channel or in direct messages, and nothing else.
async fn clear_context_clears_your_own_conversation_here(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.pumps, p.ada, "turmeric").await;
    p.ask(p.direct, p.ada, "cinnamon").await;
    p.ask(p.help, p.boris, "ginger").await;
    clear_context(&p, p.direct).await;
    p.until_gone("cinnamon").await;
    assert_says(&p.prompt(p.help, p.ada).await, &["so: saffron"]);
    assert_says_nothing_of(&p.prompt(p.direct, p.ada).await, &["cinnamon"]);
    // Two more messages are stored by now, so the number in the reply differs.
    let asked = call(&p, p.ada, p.help, "clear-context", json!({})).await;
    let pressed = p.stage.discord.press(p.ada, asked.message, "Delete");
    pressed.answer().await.unwrap();
    p.until_gone("saffron").await;
    let bot = p.restart(bot).await;
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    assert_says(&p.prompt(p.pumps, p.ada).await, &["so: turmeric"]);
    assert_says(&p.prompt(p.help, p.boris).await, &["so: ginger"]);
    bot.stop().await;
}

/// A conversation that is saved, cleared and restored is back where it was, and nowhere else.
async fn a_restored_conversation_is_in_the_next_prompt(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.pumps, p.ada, "turmeric").await;
    let saved = call(&p, p.ada, p.help, "context save", json!({})).await;
    let id = saved.content.split(" as `").nth(1).unwrap()[..36].to_owned();
    call(&p, p.ada, p.help, "context clear", json!({})).await;
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    let bot = p.restart(bot).await;
    let options = json!({"snapshot": id});
    let restored = call(&p, p.ada, p.help, "context restore", options.clone()).await;
    assert_says(&restored.text(), &["4 messages"]);
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["saffron", "so: saffron", "go on"]);
    assert_says_nothing_of(&prompt, &["turmeric"]);
    assert_says(
        &p.prompt(p.pumps, p.ada).await,
        &["turmeric", "so: turmeric"],
    );
    // Other people's snapshots cannot be restored.
    let refused = call(&p, p.boris, p.help, "context restore", options).await;
    assert!(refused.text().starts_with("-# "), "{}", refused.text());
    assert_says_nothing_of(&p.prompt(p.help, p.boris).await, &["saffron", "turmeric"]);
    bot.stop().await;
}

/// `MAX_USER_MEMORY` is respected, also after a restart.
async fn facts_keep_to_their_maximum(kind: Kind) {
    let p = Place::new(kind, &[("MAX_USER_MEMORY", "2")]).await;
    let bot = p.start().await;
    for fact in ["likes saffron", "likes turmeric", "likes ginger"] {
        let options = json!({"text": fact});
        let shown = call(&p, p.ada, p.help, "memory remember", options).await;
        assert_says(&shown.text(), &[fact]);
    }
    let bot = p.restart(bot).await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["About Ada:", "turmeric", "ginger", "go on"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    assert_says_nothing_of(&p.prompt(p.help, p.boris).await, &["likes"]);
    bot.stop().await;
    assert_eq!(p.traces("saffron"), [""; 0]);
}

/// With `MEMORY_LEARN=model` facts are saved at shutdown and used from then on; saying the same again adds no
/// second fact.
async fn what_is_learnt_outlasts_a_restart(kind: Kind) {
    let p = Place::new(kind, &[("MEMORY_LEARN", "model")]).await;
    let bot = p.start().await;
    let extraction = json!({"facts": [{"text": "Grows saffron on the roof."}]}).to_string();
    for turn in 1..=2 {
        p.stage.model.script(Behaviour::text(&["ok"]));
        p.stage.model.script(Behaviour::text(&[&extraction]));
        p.say(p.help, p.ada, "I grow saffron on the roof these days");
        p.until("an extraction", || p.event_count("learnt") == turn)
            .await;
    }
    let bot = p.restart(bot).await;
    p.say(p.pumps, p.ada, "what do I grow up there on my house?");
    p.stage.discord.wait_answers(p.pumps, 1).await.unwrap();
    let requests = p.stage.model.requests();
    let asked = requests
        .iter()
        .map(prompt)
        .find(|one| one.contains("up there"));
    let asked = asked.unwrap();
    assert_says(
        &asked,
        &["About Ada:", "Grows saffron on the roof.", "up there"],
    );
    assert_eq!(asked.matches("saffron").count(), 1, "{asked}");
    bot.stop().await;
}
