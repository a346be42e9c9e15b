//! Servers that removed the bot while it was not running: Discord no longer lists them when it connects.

use clew_context::model::GuildId;
use clew_simulator::Id;

use super::place::{DAY, Kind, Place, assert_says, on_each_store};

on_each_store! {
    a_server_that_we_left_unseen_is_noted_until_we_are_back
    a_server_that_we_left_unseen_is_removed_by_the_sweep
    without_a_list_of_servers_none_counts_as_left
}

/// Has a conversation in both servers.
async fn talked(p: &Place) {
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.abroad, p.ada, "turmeric").await;
    bot.stop().await;
}

/// Removes the bot from a server while it is not running.
fn removed(p: &Place, guild: Id) {
    p.stage.discord.kick_bot(guild);
    // Otherwise the event would wait in the session.
    p.stage.discord.forget_sessions();
}

async fn once(p: &Place) {
    p.time.pass(1_000);
    let connected = p.event_count("connected");
    let bot = p.start().await;
    p.until("heard", || p.event_count("connected") > connected)
        .await;
    bot.stop().await;
}

/// The servers that the bot left, according to the store.
async fn departed(p: &Place) -> Vec<Id> {
    let store = p.open().await;
    let departures = store.departures().await.unwrap();
    store.close().await.unwrap();
    let ids = departures
        .into_iter()
        .map(|(guild, _)| Id(GuildId::get(guild)));
    ids.collect()
}

async fn a_server_that_we_left_unseen_is_noted_until_we_are_back(kind: Kind) {
    let p = Place::new(kind, &[("GUILD_RETENTION_DAYS", "30")]).await;
    talked(&p).await;
    assert_eq!(departed(&p).await, []);
    removed(&p, p.guild);
    once(&p).await;
    assert_eq!(departed(&p).await, [p.guild]);
    // Noted only once, so a restart does not postpone the purge.
    p.time.pass(DAY / 2);
    once(&p).await;
    assert_eq!(departed(&p).await, [p.guild]);
    assert!(!p.traces("saffron").is_empty());
    p.stage.discord.forget_sessions();
    p.stage
        .discord
        .world(|world| world.join(p.guild, world.bot));
    p.time.pass(1_000);
    let bot = p.start().await;
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron"]);
    bot.stop().await;
    assert_eq!(departed(&p).await, []);
}

async fn a_server_that_we_left_unseen_is_removed_by_the_sweep(kind: Kind) {
    let p = Place::new(kind, &[("GUILD_RETENTION_DAYS", "0")]).await;
    talked(&p).await;
    removed(&p, p.guild);
    once(&p).await;
    // Kept until the next sweep, in case the server is listed again.
    assert!(!p.traces("saffron").is_empty());
    // By more than the times of one process may be ahead of the clock.
    p.time.pass(10_000);
    // Every start begins with a sweep.
    let bot = p.start().await;
    p.until_gone("saffron").await;
    assert_says(&p.prompt(p.abroad, p.ada).await, &["turmeric"]);
    bot.stop().await;
}

/// Some Discord-compatible servers list none.
async fn without_a_list_of_servers_none_counts_as_left(kind: Kind) {
    let p = Place::new(kind, &[("GUILD_RETENTION_DAYS", "0")]).await;
    talked(&p).await;
    removed(&p, p.guild);
    removed(&p, p.other_guild);
    once(&p).await;
    assert_eq!(departed(&p).await, []);
    once(&p).await;
    assert!(!p.traces("saffron").is_empty() && !p.traces("turmeric").is_empty());
}
