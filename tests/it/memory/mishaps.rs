//! A failing store costs only its part of the prompt.

use std::fs;

use clew_store::Record;
use serde_json::Value;

use super::place::{Kind, Place, assert_says, assert_says_nothing_of, on_each_store};
use crate::support::bot::prompt;

on_each_store! {
    a_store_that_fails_costs_its_part_not_the_answer
    turns_answered_meanwhile_are_stored_in_order_when_it_is_back
    deletions_and_edits_meanwhile_apply_when_it_is_back
}

/// Hides Ada's stored conversation in `help` from the running bot, or shows it again.
async fn hide(p: &Place, hidden: bool) {
    let rename = |schema: &str, table: &str| {
        let (from, to) = if hidden {
            (table, "hidden")
        } else {
            ("hidden", table)
        };
        format!("ALTER TABLE {schema}{from} RENAME TO {to}")
    };
    match p.kind {
        Kind::Sqlite => {
            let file = rusqlite::Connection::open(p.path("clew.db")).unwrap();
            // Without this the view on the table would be changed as well.
            file.pragma_update(None, "legacy_alter_table", true)
                .unwrap();
            file.execute_batch(&rename("", "message_rows")).unwrap();
        }
        Kind::Files => {
            let channel = p
                .path("context")
                .join(format!("guilds/{}/{}", p.guild, p.help));
            let aside = p.path("aside");
            if hidden {
                fs::rename(&channel, &aside).unwrap();
                fs::write(&channel, "a file where a folder should be").unwrap();
            } else {
                fs::remove_file(&channel).unwrap();
                fs::rename(&aside, &channel).unwrap();
            }
        }
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            let url = &p.database.as_ref().unwrap().admin_url;
            crate::support::postgres::query(url, &rename("clew.", "messages")).await;
        }
    }
}

/// The answer is based on the question and on what was said since. The failure is reported, and once the
/// store is back everything is there again.
async fn a_store_that_fails_costs_its_part_not_the_answer(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    hide(&p, true).await;
    p.say(p.help, p.ada, "ginger");
    p.stage.discord.wait_answers(p.help, 2).await.unwrap();
    // What is early has its place among what is stored: it fails before the answer is posted, too.
    let failures = ["read", "append", "append"];
    p.until("all failures", || {
        p.event_count("store_failed") == failures.len()
    })
    .await;
    let request = p.stage.model.requests().pop().unwrap();
    let asked = prompt(&request);
    assert_says(&asked, &["ginger"]);
    assert_says_nothing_of(&asked, &["so: saffron"]);
    hide(&p, false).await;
    let asked = p.prompt(p.help, p.ada).await;
    assert_says(&asked, &["saffron", "so: saffron", "ginger", "go on"]);
    bot.stop().await;
    let operations: Vec<_> = p
        .details("store_failed")
        .iter()
        .map(|one| one["operation"].clone())
        .collect();
    assert_eq!(operations, failures);
}

/// The texts of Ada's stored conversation in `help`.
async fn stored(p: &Place) -> Vec<String> {
    let store = p.open().await;
    let rows = store.records(clew_store::Kind::Messages, None, None, 100);
    let rows = rows.await.unwrap().records;
    store.close().await.unwrap();
    let texts = rows.into_iter().map(|record| match record {
        Record::Message(row) => row.content,
        other => panic!("{other:?}"),
    });
    texts.collect()
}

/// Turns are kept until the store is back.
async fn turns_answered_meanwhile_are_stored_in_order_when_it_is_back(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "one").await;
    hide(&p, true).await;
    p.ask_only(p.help, p.ada, "two").await;
    let asked = p.ask_only(p.help, p.ada, "three").await;
    assert_says(&asked.prompt, &["two", "so: two", "three"]);
    assert_says_nothing_of(&asked.prompt, &["one"]);
    hide(&p, false).await;
    p.until("stored", || p.event_count("recorded") == 3).await;
    let asked = p.prompt(p.help, p.ada).await;
    assert_says(
        &asked,
        &["one", "so: one", "two", "so: two", "three", "so: three"],
    );
    bot.stop().await;
    assert_eq!(p.details("turns_dropped"), [Value::Null; 0]);
    let texts = [
        "one",
        "so: one",
        "two",
        "so: two",
        "three",
        "so: three",
        "go on",
        "ok",
    ];
    assert_eq!(stored(&p).await, texts);
}

/// What is deleted meanwhile is never stored; what is edited meanwhile is stored as edited.
async fn deletions_and_edits_meanwhile_apply_when_it_is_back(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "one").await;
    hide(&p, true).await;
    let deleted = p.ask_only(p.help, p.ada, "turmeric").await;
    let edited = p.ask_only(p.help, p.ada, "nutmeg").await;
    let answer = p.ask_only(p.help, p.ada, "cinnamon").await;
    let (discord, us) = (&p.stage.discord, p.stage.discord.bot());
    discord.delete(p.help, deleted.trigger);
    discord.edit(p.help, edited.trigger, &format!("<@{us}> mace"));
    discord.delete(p.help, answer.answer);
    discord.settled().await.unwrap();
    let asked = p.ask_only(p.help, p.ada, "what").await;
    assert_says(&asked.prompt, &["mace", "so: nutmeg", "cinnamon", "what"]);
    assert_says_nothing_of(&asked.prompt, &["turmeric", "so: cinnamon"]);
    hide(&p, false).await;
    p.until("stored", || p.event_count("recorded") == 4).await;
    bot.stop().await;
    let texts = [
        "one",
        "so: one",
        "mace",
        "so: nutmeg",
        "cinnamon",
        "what",
        "so: what",
    ];
    assert_eq!(stored(&p).await, texts);
    assert_eq!(p.traces("turmeric"), [""; 0]);
}
