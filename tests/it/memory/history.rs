//! Stored conversation in prompts: whose, how much, and how old.

use clew_simulator::{Draft, File};
use serde_json::Value;

use super::place::{
    DAY, HOUR, Kind, Place, assert_says, assert_says_nothing_of, on_each_database, on_each_store,
};
use crate::support::model::Behaviour;

on_each_store! {
    zero_leakage
    oldest_first_with_more_rows_than_the_limit
    one_long_message_leaves_room_for_others
    both_ends_of_a_very_long_answer_are_kept
    rolling_window_excludes_old_messages
    rolling_window_default_is_one_day
    only_turns_that_succeed_are_stored
    adopted_text_embeds_and_files_are_not_stored
    what_the_block_shows_is_not_told_twice
    words_clear_nothing
}

on_each_database! {
    stored_characters_are_capped_and_the_start_stands_still_between_two_moves
}

/// Two people in two channels, and a restart.
async fn zero_leakage(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let first = p.ask(p.help, p.ada, "saffron").await;
    assert_says_nothing_of(&first.prompt, &["so: saffron"]);
    let direct = p.ask(p.direct, p.ada, "cinnamon").await;
    assert_says_nothing_of(&direct.prompt, &["saffron"]);
    assert_says(
        &p.prompt(p.help, p.ada).await,
        &["Ada", "saffron", "so: saffron", "go on"],
    );
    for (channel, author) in [(p.help, p.boris), (p.pumps, p.ada), (p.abroad, p.ada)] {
        let prompt = p.prompt(channel, author).await;
        assert_says_nothing_of(&prompt, &["saffron", "cinnamon"]);
    }
    let bot = p.restart(bot).await;
    let here = p.prompt(p.help, p.ada).await;
    assert_says(&here, &["saffron", "so: saffron", "go on", "ok", "go on"]);
    assert_says_nothing_of(&here, &["cinnamon"]);
    assert_says_nothing_of(&p.prompt(p.help, p.boris).await, &["saffron"]);
    assert_says_nothing_of(&p.prompt(p.abroad, p.ada).await, &["saffron", "cinnamon"]);
    let direct = p.prompt(p.direct, p.ada).await;
    assert_says(&direct, &["cinnamon", "so: cinnamon"]);
    assert_says_nothing_of(&direct, &["saffron"]);
    bot.stop().await;
}

async fn oldest_first_with_more_rows_than_the_limit(kind: Kind) {
    let p = Place::new(kind, &[("MAX_CONTEXT_MESSAGES", "6")]).await;
    let bot = p.start().await;
    for word in ["anise", "basil", "cumin", "dill", "fennel"] {
        p.ask(p.help, p.ada, word).await;
    }
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(
        &prompt,
        &[
            "cumin",
            "so: cumin",
            "dill",
            "so: dill",
            "fennel",
            "so: fennel",
            "go on",
        ],
    );
    assert_says_nothing_of(&prompt, &["anise", "basil"]);
    bot.stop().await;
}

async fn stored_characters_are_capped_and_the_start_stands_still_between_two_moves(kind: Kind) {
    let settings = [
        ("MAX_CONTEXT_MESSAGES", "1000"),
        ("MAX_CONTEXT_CHARS", "4000"),
    ];
    let p = Place::new(kind, &settings).await;
    let bot = p.start().await;
    let mut firsts = Vec::new();
    for count in 0..48 {
        let words = format!("question {count:02} {}", "about it ".repeat(6));
        let asked = p.ask_for(p.help, p.ada, &words, "yes").await;
        // The rules, the history and this question.
        let (_, history) = asked.prompt.split_once("\n----\n").unwrap();
        let chars = history.replace("\n----\n", "").chars().count();
        assert!(chars <= 4_000 + words.len() + 60, "{chars}");
        let (_, first) = history.split_once("question ").unwrap();
        firsts.push(first[..2].parse::<usize>().unwrap());
    }
    assert!(firsts.is_sorted(), "{firsts:?}");
    assert!(firsts[47] > 0, "{firsts:?}");
    let moved = firsts[47];
    firsts.dedup();
    assert!(firsts.len() - 1 <= moved.div_ceil(2), "{firsts:?}");
    bot.stop().await;
}

async fn one_long_message_leaves_room_for_others(kind: Kind) {
    let p = Place::new(kind, &[("MAX_CONTEXT_CHARS", "1000")]).await;
    let bot = p.start().await;
    let long = format!("saffron {} turmeric", "é".repeat(1_500));
    p.ask_for(p.help, p.ada, "anise", &long).await;
    p.ask(p.help, p.ada, "basil").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(
        &prompt,
        &[
            "anise",
            "saffron é",
            "characters cut",
            "é turmeric",
            "basil",
            "so: basil",
        ],
    );
    assert!(prompt.matches('é').count() < 250);
    bot.stop().await;
}

async fn both_ends_of_a_very_long_answer_are_kept(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let (head, tail) = ("é".repeat(24_000), "é".repeat(12_000));
    let long = format!("saffron {head} cumin {tail} turmeric");
    p.stage.model.script(Behaviour::text(&[&long]));
    p.say(p.help, p.ada, "anise");
    p.until("a stored turn", || p.event_count("recorded") == 1)
        .await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(
        &prompt,
        &["anise", "saffron é", "characters cut", "é turmeric"],
    );
    assert!(!p.traces("saffron").is_empty());
    assert_eq!(p.traces("cumin"), Vec::<String>::new());
    bot.stop().await;
}

async fn rolling_window_excludes_old_messages(kind: Kind) {
    let p = Place::new(kind, &[("CONTEXT_ROLLING_WINDOW_S", "3600")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.time.pass(HOUR / 2);
    assert_says(
        &p.ask(p.help, p.ada, "turmeric").await.prompt,
        &["so: saffron"],
    );
    p.time.pass(HOUR / 2 + 1_000);
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says_nothing_of(&prompt, &["saffron"]);
    assert_says(&prompt, &["turmeric", "so: turmeric"]);
    // Old rows are kept, though.
    assert!(!p.traces("saffron").is_empty());
    bot.stop().await;
}

async fn rolling_window_default_is_one_day(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.time.pass(DAY - 60_000);
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron", "so: saffron"]);
    p.time.pass(60_000);
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    bot.stop().await;
}

/// Error details, refusals and cancelled answers are never stored.
async fn only_turns_that_succeed_are_stored(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let us = p.stage.discord.bot();
    for failure in [
        Behaviour::status(500, "quince failed"),
        Behaviour::status(500, "quince failed"),
        Behaviour::status(500, "quince failed"),
        Behaviour::cut(&["quince half"]),
    ] {
        p.stage.model.script(failure);
    }
    // Enough failures to exhaust the client's retries.
    for number in 1..=2 {
        p.say(p.help, p.ada, "quince");
        p.stage.discord.wait_answers(p.help, number).await.unwrap();
    }
    // A mention without text only gets an invitation to ask.
    p.say(p.pumps, p.ada, "");
    p.stage.discord.wait_answers(p.pumps, 1).await.unwrap();
    // A turn cancelled by deleting its trigger.
    let (pieces, gate) = Behaviour::gated(&["quince"]);
    let requests = p.stage.model.requests().len();
    p.stage.model.script(pieces);
    let trigger = p.say(p.abroad, p.ada, "quince");
    p.stage.model.wait_requests(requests + 1).await;
    p.stage.discord.delete(p.abroad, trigger);
    p.until("a cancelled turn", || {
        p.details("turn_done")
            .iter()
            .any(|done| done["outcome"] == "cancelled")
    })
    .await;
    gate.open();
    assert_eq!(p.event_count("recorded"), 0);
    for channel in [p.help, p.abroad] {
        assert_says_nothing_of(&p.prompt(channel, p.ada).await, &["quince"]);
    }
    bot.stop().await;
    assert_eq!(p.traces("quince"), [""; 0]);
    assert!(
        p.stage
            .discord
            .answers(p.abroad)
            .iter()
            .all(|one| one.author == us)
    );
}

/// Only the asker's own words are stored; a bare mention adds none, and neither embeds nor attachments are stored.
async fn adopted_text_embeds_and_files_are_not_stored(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let us = p.stage.discord.bot();
    let pointed = p.stage.discord.post(p.help, p.boris, "tangerine");
    let bare = Draft::new(format!("<@{us}>")).reply_to(pointed);
    let asked = p.post_for(p.help, p.ada, bare, "fine").await;
    assert_says(&asked.prompt, &["tangerine", "points at the message"]);
    let rich = Draft::new(format!("<@{us}> read this"))
        .embed(serde_json::json!({"type": "rich", "title": "tangerine"}))
        .attachment(File::text("notes.txt", "tangerine"));
    let asked = p.post_for(p.help, p.ada, rich, "done").await;
    assert_says(
        &asked.prompt,
        &["(mention)", "fine", "read this", "tangerine"],
    );
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(
        &prompt,
        &["(mention)", "fine", "read this", "done", "go on"],
    );
    assert_says_nothing_of(&prompt, &["tangerine"]);
    bot.stop().await;
    assert_eq!(p.traces("tangerine"), [""; 0]);
    assert!(!p.traces("read this").is_empty());
}

async fn what_the_block_shows_is_not_told_twice(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.thread, p.ada, "saffron").await;
    let prompt = p.prompt(p.thread, p.ada).await;
    assert_eq!(prompt.matches("so: saffron").count(), 1, "{prompt}");
    assert_eq!(prompt.matches("saffron").count(), 2, "{prompt}");
    bot.stop().await;
    let merged: Vec<Value> = p.details("merge_ok");
    // The first question had nothing beside it.
    assert_eq!(merged.len(), 1, "{merged:?}");
    assert_eq!(merged[0]["dedup"], 2, "{merged:?}");
    assert_eq!(merged[0]["history_msgs"], 0, "{merged:?}");
}

/// Natural language never clears anything.
async fn words_clear_nothing(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    for words in [
        "reset",
        "start over",
        "forget everything",
        "/clear-context",
        "clear context",
    ] {
        assert_says(
            &p.ask(p.help, p.ada, words).await.prompt,
            &["saffron", "so: saffron"],
        );
    }
    bot.stop().await;
    assert!(!p.traces("saffron").is_empty());
}
