//! A store that is unavailable for a while: what happens on Discord meanwhile is applied afterwards, in
//! order; turns are answered without memory; nobody is told that something was remembered.

use clew_context::model::GuildId;
use serde_json::json;

use super::place::{Kind, Place, assert_says, assert_says_nothing_of};
use crate::support::bot::prompt;
use crate::support::model::Behaviour;
use crate::support::postgres::{Database, Postgres, dump_all};

/// A place with a database server of its own, where the bot saves every second.
async fn place(server: &Postgres) -> Place {
    let database: Database = server.fresh_database().await;
    let settings = [
        ("CONTEXT_STORE", database.url.as_str()),
        ("MEMORY_SAVE_INTERVAL", "1"),
        ("GUILD_RETENTION_DAYS", "30"),
    ];
    let mut p = Place::new(Kind::Sqlite, &settings).await;
    p.kind = Kind::Postgres;
    p.database = Some(database);
    p
}

/// How often an operation of the store failed.
fn failed(p: &Place, operation: &str) -> usize {
    let details = p.details("store_failed").into_iter();
    let of = details.filter(|detail| detail["operation"] == operation);
    of.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_while_the_store_is_gone_is_done_in_order() {
    let mut server = Postgres::own();
    let p = place(&server).await;
    let bot = p.start().await;
    let us = p.stage.discord.bot();
    let deleted = p.ask(p.pumps, p.ada, "turmeric").await;
    let edited = p.ask_for(p.help, p.ada, "saffron", "fine").await;
    p.ask(p.thread, p.ada, "cinnamon").await;
    p.ask(p.abroad, p.ada, "nutmeg").await;
    server.stop();
    let discord = &p.stage.discord;
    discord.delete(p.pumps, deleted.trigger);
    p.until("a failure", || failed(&p, "purge") > 0).await;
    discord.edit(p.help, edited.trigger, &format!("<@{us}> anise"));
    discord.edit(p.help, edited.trigger, &format!("<@{us}> ginger"));
    discord.delete_channel(p.thread);
    // The bot seems to be back in the other server, then leaves it.
    discord.set_outage(p.other_guild, true);
    discord.set_outage(p.other_guild, false);
    discord.kick_bot(p.other_guild);
    // The bot leaves this server, then is back.
    discord.kick_bot(p.guild);
    discord.world(|world| world.join(p.guild, us));
    discord.set_outage(p.guild, false);
    discord.settled().await.unwrap();
    let before = failed(&p, "purge");
    p.until("two more tries", || failed(&p, "purge") > before + 1)
        .await;
    server.start();
    for mark in ["turmeric", "saffron", "cinnamon"] {
        p.until_gone(mark).await;
    }
    p.until("edited twice", || !p.traces("ginger").is_empty())
        .await;
    assert_eq!(p.traces("anise"), [""; 0]);
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["ginger", "fine"]);
    bot.stop().await;
    let store = p.open().await;
    let departed = store.departures().await.unwrap();
    store.close().await.unwrap();
    let departed: Vec<u64> = departed
        .into_iter()
        .map(|(guild, _)| GuildId::get(guild))
        .collect();
    assert_eq!(departed, [p.other_guild.0]);
    assert!(!p.traces("nutmeg").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_store_it_answers_and_claims_to_remember_nothing() {
    let mut server = Postgres::own();
    let p = place(&server).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let remember = async |text: &str| {
        let options = json!({"text": text});
        let discord = &p.stage.discord;
        let called = discord
            .call(p.ada, p.help, "memory remember", options)
            .await;
        called.unwrap().answer().await.unwrap().text()
    };
    assert!(remember("I like cinnamon").await.contains("Remembered"));
    server.stop();
    let requests = p.stage.model.requests().len();
    p.stage.model.script(Behaviour::text(&["all the same"]));
    p.say(p.help, p.ada, "turmeric");
    let answered = |message: &clew_simulator::Message| message.content == "all the same";
    let answered = p.stage.discord.wait_for_message(p.help, answered);
    answered.await.unwrap();
    let asked = &p.stage.model.requests()[requests];
    assert_says(&prompt(asked), &["turmeric"]);
    assert_says_nothing_of(&prompt(asked), &["saffron"]);
    p.until("said", || {
        failed(&p, "read") > 0 && failed(&p, "append") > 0
    })
    .await;
    let refused = remember("I like ginger").await;
    assert!(
        refused.starts_with("-# ") && !refused.contains("ginger"),
        "{refused}"
    );
    assert!(!refused.contains("Remembered"), "{refused}");
    server.start();
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["cinnamon", "saffron", "turmeric"]);
    assert_says_nothing_of(&prompt, &["ginger"]);
    assert!(remember("I like anise").await.contains("Remembered"));
    bot.stop().await;
    let rows = dump_all(&p.database.as_ref().unwrap().admin_url);
    assert!(rows.contains("anise") && rows.contains("cinnamon"));
    assert!(!rows.contains("ginger") && rows.contains("turmeric"));
}
