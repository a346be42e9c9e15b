//! `/context history|restore`.

use std::fs;

use clew_simulator::{ChannelKind, OverwriteOf, Permissions, Shown};
use serde_json::{Value, json};

use super::{Place, assert_refused, assert_says, labels, outcomes, place};
use crate::support::model::Behaviour;

/// Saves the conversation; returns the snapshot's id from the answer.
async fn save(p: &Place, description: &str) -> String {
    let options = json!({"description": description});
    let shown = p.call(p.ada, p.channel, "context save", options).await;
    let after = shown.content.split(" as `").nth(1);
    after.unwrap_or_else(|| panic!("{}", shown.text()))[..36].to_owned()
}

async fn restore(p: &Place, who: clew_simulator::Id, id: &str) -> Shown {
    let options = json!({"snapshot": id});
    p.call(who, p.channel, "context restore", options).await
}

/// The names of the listed entries.
fn listed(shown: &Shown) -> Vec<String> {
    let fields = shown.embeds[0]["fields"].as_array().unwrap();
    let name = |field: &Value| field["name"].as_str().unwrap().to_owned();
    fields.iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn context_history_command_returns_embed() {
    let (p, bot) = place(&[]).await;
    let none = p.plain(p.ada, "context history").await;
    assert_says(&none, "Nothing saved here yet. Use `/context save`.");
    p.talk(p.ada, p.channel, "hello").await;
    p.stage.model.script(Behaviour::text(&["They greeted."]));
    let first = save(&p, "first").await;
    save(&p, "second").await;
    let shown = p.plain(p.ada, "context history").await;
    assert_eq!(listed(&shown), ["1. second", "2. first"]);
    for part in ["They greeted.", &first, "2 messages", "agent `default`"] {
        assert_says(&shown, part);
    }
    assert!(labels(&shown).is_empty());
    let others = p.plain(p.boris, "context history").await;
    assert_says(&others, "Nothing saved here yet. Use `/context save`.");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_has_pages_and_they_keep_to_their_agent() {
    let (p, bot) = place(&[("USER_TURNS_PER_MIN", "0")]).await;
    p.talk(p.ada, p.channel, "hello").await;
    for number in 1..=12 {
        save(&p, &format!("number {number}")).await;
    }
    for options in [json!({}), json!({"agent": "default"})] {
        let shown = p.call(p.ada, p.channel, "context history", options).await;
        assert_eq!(listed(&shown).len(), 10);
        assert_eq!(listed(&shown)[0], "1. number 12");
        assert_says(&shown, "Page 1 of 2");
        assert_eq!(labels(&shown), ["Next"]);
        let shown = p.press(p.ada, &shown, "Next").await;
        assert_eq!(listed(&shown), ["11. number 2", "12. number 1"]);
        assert_eq!(labels(&shown), ["Back"]);
        let shown = p.press(p.ada, &shown, "Back").await;
        assert_eq!(listed(&shown).len(), 10);
    }
    let options = json!({"agent": "poet"});
    let none = p.call(p.ada, p.channel, "context history", options).await;
    assert_says(&none, "with agent `poet`");
    let options = json!({"agent": "No Such Name"});
    let refused = p.call(p.ada, p.channel, "context history", options).await;
    assert_refused(&refused, "cannot be an agent's name");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn context_restore_command_loads_session() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "the pump is called Bertha").await;
    let id = save(&p, "pumps").await;
    let there = restore(&p, p.ada, &id).await;
    assert_says(&there, "0 messages (\"pumps\") are back");
    assert_says(&there, "2 messages had never left it");
    p.plain(p.ada, "context clear").await;
    assert_eq!(p.remembered(p.ada, p.channel).await, 0);
    let shown = restore(&p, p.ada, &id).await;
    assert_says(
        &shown,
        "2 messages (\"pumps\") are back in our conversation.",
    );
    assert_eq!(p.remembered(p.ada, p.channel).await, 2);
    p.talk(p.ada, p.channel, "what is it called?").await;
    let asked = p.prompts().pop().unwrap();
    assert!(asked.contains("the pump is called Bertha"), "{asked}");
    let lines = bot.stop().await;
    assert_eq!(outcomes(&lines, "context_restore"), ["done", "done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_nonexistent_id_is_refused() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "hello").await;
    let id = save(&p, "mine").await;
    let unknown = "Pick one from the list";
    assert_refused(&restore(&p, p.ada, "nonsense").await, unknown);
    let other = "00000000-0000-4000-8000-000000000000";
    assert_refused(&restore(&p, p.ada, other).await, unknown);
    let others = restore(&p, p.boris, &id).await;
    assert_refused(&others, unknown);
    let direct = p.direct(p.ada);
    let options = json!({"snapshot": id});
    let elsewhere = p.call(p.ada, direct, "context restore", options).await;
    assert_refused(&elsewhere, unknown);
    let lines = bot.stop().await;
    assert_eq!(outcomes(&lines, "context_restore"), ["refused"; 4]);
}

/// A restore checks what the caller may read at that moment.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_caller_may_no_longer_read_is_not_restored() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let closed = discord.channel(p.guild, ChannelKind::Text, "board");
    let private = discord.thread(p.channel, ChannelKind::PrivateThread, "plans", p.maria);
    discord.join_thread(private, p.ada);
    let bot_id = p.us;
    discord.join_thread(private, bot_id);
    let public = discord.thread(p.channel, ChannelKind::PublicThread, "pump", p.ada);
    p.talk(p.ada, p.channel, "in the open").await;
    p.talk(p.ada, closed, "on the board").await;
    p.talk(p.ada, private, "in the plans").await;
    p.talk(p.ada, public, "in the thread").await;
    p.stage.model.script(Behaviour::text(&["About saffron."]));
    let id = save(&p, "all").await;
    assert_says(&p.plain(p.ada, "context history").await, "About saffron.");
    p.plain(p.ada, "context clear").await;
    let ada = OverwriteOf::Member(p.ada);
    discord.overwrite(closed, ada, Permissions::NONE, Permissions::VIEW_CHANNEL);
    discord.leave_thread(private, p.ada);
    discord.set_archived(public, true, false);
    let listed = p.plain(p.ada, "context history").await;
    assert_says(&listed, "1. all");
    assert_says(
        &listed,
        "(You can no longer read all that this was made from.)",
    );
    assert!(!listed.text().contains("saffron"), "{}", listed.text());
    let shown = restore(&p, p.ada, &id).await;
    assert_says(&shown, "4 messages (\"all\") are back");
    assert_says(&shown, "Left out: 4 messages");
    // Events arrive in order: the bot has seen this one before the next call.
    discord.join_thread(private, p.ada);
    let shown = restore(&p, p.ada, &id).await;
    assert_says(&shown, "2 messages (\"all\") are back");
    assert_says(&shown, "4 messages had never left it");
    assert_says(&shown, "Left out: 2 messages");
    discord.overwrite(p.channel, ada, Permissions::NONE, Permissions::VIEW_CHANNEL);
    let hidden = restore(&p, p.ada, &id).await;
    assert_refused(&hidden, "can no longer read any channel");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_saved_is_found_after_a_restart() {
    let (p, bot) = place(&[]).await;
    p.talk(p.ada, p.channel, "the pump is called Bertha").await;
    let id = save(&p, "pumps").await;
    p.plain(p.ada, "context clear").await;
    bot.stop().await;
    let bot = p.stage.start().await;
    let shown = p.plain(p.ada, "context history").await;
    assert_eq!(listed(&shown), ["1. pumps"]);
    assert_eq!(p.remembered(p.ada, p.channel).await, 0, "cleared still");
    let shown = restore(&p, p.ada, &id).await;
    assert_says(&shown, "2 messages (\"pumps\") are back");
    bot.stop().await;
    let sessions = p.stage.folder.path().join("agents/default/sessions");
    let files = fs::read_dir(sessions).unwrap();
    assert_eq!(files.count(), 1);
}
