//! What is deleted or edited on Discord is deleted or edited everywhere: it is not in the next prompt, and
//! not a byte of it is left in any file or row.

use clew_simulator::{Fault, FaultKind, Id, OverwriteOf, Permissions, Use};

use super::place::{Asked, DAY, Kind, Place, assert_says, assert_says_nothing_of, on_each_store};
use crate::support::bot::Bot;
use crate::support::model::Behaviour;

on_each_store! {
    a_deleted_trigger_removes_its_turn
    a_deleted_answer_is_removed_alone
    messages_deleted_in_bulk_are_removed
    an_edited_trigger_is_edited
    the_history_of_a_deleted_thread_or_channel_is_removed
    a_server_that_we_left_is_removed_after_a_while
    a_server_that_we_left_is_removed_at_once
    a_server_that_we_are_back_in_is_kept
    a_member_who_leaves_is_forgotten
    what_was_deleted_or_edited_meanwhile_is_found
    a_short_page_erases_nothing
    a_refusal_erases_nothing
    what_is_too_old_is_removed
    a_question_by_command_outlives_pages
}

/// A place that also logs direct messages.
async fn with_logs(kind: Kind) -> Place {
    let mut p = Place::new(kind, &[]).await;
    let logs = p.path("dm-logs").display().to_string();
    p.stage.set("DM_LOGS_DIR", &logs);
    p
}

async fn a_deleted_trigger_removes_its_turn(kind: Kind) {
    let p = with_logs(kind).await;
    let bot = p.start().await;
    let first = p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.ada, "turmeric").await;
    let direct = p.ask(p.direct, p.ada, "cinnamon").await;
    p.stage.discord.delete(p.help, first.trigger);
    p.until_gone("saffron").await;
    p.stage.discord.delete(p.direct, direct.trigger);
    p.until_gone("cinnamon").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["turmeric", "so: turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    assert_says_nothing_of(&p.prompt(p.direct, p.ada).await, &["cinnamon"]);
    bot.stop().await;
}

async fn a_deleted_answer_is_removed_alone(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let first = p.ask_for(p.help, p.ada, "turmeric", "saffron").await;
    p.stage.discord.delete(p.help, first.answer);
    p.until_gone("saffron").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["turmeric", "go on"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    bot.stop().await;
}

async fn messages_deleted_in_bulk_are_removed(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let mut ids = Vec::new();
    for word in ["saffron one", "saffron two", "saffron three"] {
        let asked = p.ask(p.help, p.ada, word).await;
        ids.extend([asked.trigger, asked.answer]);
    }
    p.ask(p.help, p.ada, "turmeric").await;
    p.stage.discord.bulk_delete(p.help, &ids);
    p.until_gone("saffron").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["turmeric", "so: turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    bot.stop().await;
}

async fn an_edited_trigger_is_edited(kind: Kind) {
    let p = with_logs(kind).await;
    let bot = p.start().await;
    let us = p.stage.discord.bot();
    let asked = p.ask_for(p.help, p.ada, "saffron", "fine").await;
    p.stage
        .discord
        .edit(p.help, asked.trigger, &format!("<@{us}> turmeric"));
    p.until_gone("saffron").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["turmeric", "fine"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    let direct = p.ask_for(p.direct, p.ada, "cinnamon", "good").await;
    p.stage.discord.edit(p.direct, direct.trigger, "ginger");
    p.until_gone("cinnamon").await;
    assert!(
        p.traces("ginger")
            .iter()
            .any(|file| file.contains("dm-logs"))
    );
    assert_says(&p.prompt(p.direct, p.ada).await, &["ginger", "good"]);
    // After this edit only the mention is left.
    p.stage
        .discord
        .edit(p.help, asked.trigger, &format!("<@{us}>"));
    p.until_gone("turmeric").await;
    assert_says(&p.prompt(p.help, p.ada).await, &["(mention)", "fine"]);
    bot.stop().await;
}

async fn the_history_of_a_deleted_thread_or_channel_is_removed(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.thread, p.ada, "saffron").await;
    p.ask(p.pumps, p.ada, "cinnamon").await;
    p.ask(p.help, p.ada, "turmeric").await;
    p.stage.discord.delete_channel(p.thread);
    p.until_gone("saffron").await;
    p.stage.discord.delete_channel(p.pumps);
    p.until_gone("cinnamon").await;
    assert_says(&p.prompt(p.help, p.ada).await, &["turmeric"]);
    bot.stop().await;
}

async fn a_server_that_we_left_is_removed_after_a_while(kind: Kind) {
    let p = Place::new(kind, &[("GUILD_RETENTION_DAYS", "30")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.abroad, p.ada, "turmeric").await;
    // An outage does not count as leaving.
    p.stage.discord.set_outage(p.guild, true);
    p.stage.discord.set_outage(p.guild, false);
    p.stage.discord.settled().await.unwrap();
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron"]);
    p.stage.discord.kick_bot(p.guild);
    // Events arrive in order, so the bot knows that it was removed before this turn.
    p.ask(p.abroad, p.boris, "cinnamon").await;
    bot.stop().await;
    // Files keep a conversation for a day only.
    if kind != Kind::Files {
        p.time.pass(29 * DAY);
        p.start().await.stop().await;
        assert!(!p.traces("saffron").is_empty());
    }
    p.time.pass(DAY + 1_000);
    let bot = p.start().await;
    p.until_gone("saffron").await;
    assert_eq!(p.traces("turmeric").is_empty(), kind == Kind::Files);
    bot.stop().await;
}

/// We were back in it before anybody looked.
async fn a_server_that_we_are_back_in_is_kept(kind: Kind) {
    let p = Place::new(kind, &[("GUILD_RETENTION_DAYS", "30")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.stage.discord.kick_bot(p.guild);
    p.ask(p.abroad, p.boris, "cinnamon").await;
    bot.stop().await;
    let us = p.stage.discord.bot();
    p.stage.discord.world(|world| world.join(p.guild, us));
    // Files keep a conversation for a day only, so facts stand for it.
    p.time.pass(31 * DAY);
    let bot = p.start().await;
    p.stage.discord.settled().await.unwrap();
    assert_eq!(p.traces("saffron").is_empty(), kind == Kind::Files);
    bot.stop().await;
}

async fn a_server_that_we_left_is_removed_at_once(kind: Kind) {
    let p = Place::new(kind, &[("GUILD_RETENTION_DAYS", "0")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.abroad, p.ada, "turmeric").await;
    p.stage.discord.set_outage(p.guild, true);
    p.stage.discord.set_outage(p.guild, false);
    p.stage.discord.settled().await.unwrap();
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron"]);
    p.stage.discord.kick_bot(p.guild);
    p.until_gone("saffron").await;
    assert_says(&p.prompt(p.abroad, p.ada).await, &["turmeric"]);
    bot.stop().await;
}

async fn a_member_who_leaves_is_forgotten(kind: Kind) {
    let p = Place::new(kind, &[("DISCORD_MEMBERS_INTENT", "true")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.boris, "cinnamon").await;
    p.ask(p.abroad, p.ada, "turmeric").await;
    p.stage.discord.leave(p.guild, p.ada);
    p.until_gone("saffron").await;
    assert_says(&p.prompt(p.help, p.boris).await, &["cinnamon"]);
    assert_says(&p.prompt(p.abroad, p.ada).await, &["turmeric"]);
    p.stage.discord.join(p.guild, p.ada);
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    bot.stop().await;
}

/// No event tells of it, but a fetched page shows it.
async fn what_was_deleted_or_edited_meanwhile_is_found(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let us = p.stage.discord.bot();
    let gone = p.ask(p.thread, p.ada, "saffron").await;
    let edited = p.ask_for(p.thread, p.ada, "cinnamon", "fine").await;
    p.ask(p.thread, p.ada, "turmeric").await;
    bot.stop().await;
    p.stage.discord.forget_sessions();
    p.stage.discord.world(|world| {
        world.seed_delete(p.thread, gone.trigger);
        world.seed_edit(p.thread, edited.trigger, &format!("<@{us}> ginger"));
    });
    p.time.pass(1_000);
    let bot = p.start().await;
    p.prompt(p.thread, p.ada).await;
    p.until_gone("saffron").await;
    p.until_gone("cinnamon").await;
    let prompt = p.prompt(p.thread, p.ada).await;
    assert_says(&prompt, &["ginger", "turmeric"]);
    bot.stop().await;
    assert!(!p.traces("turmeric").is_empty());
    assert!(!p.traces("ginger").is_empty());
}

/// Two turns in the thread, then a new process whose pages show only one of the messages.
async fn before_a_short_page(p: &Place) -> (Bot, Asked, Asked) {
    let bot = p.start().await;
    let first = p.ask(p.thread, p.ada, "saffron").await;
    let last = p.ask(p.thread, p.ada, "turmeric").await;
    bot.stop().await;
    let discord = &p.stage.discord;
    discord.forget_sessions();
    p.time.pass(1_000);
    discord.fault(shows_only(p, last.answer));
    (p.start().await, first, last)
}

/// Pages of the thread show this message and no other.
fn shows_only(p: &Place, message: Id) -> Fault {
    let alone = p.stage.discord.message_object(p.thread, message);
    let body = FaultKind::Body(format!("[{alone}]"));
    Fault::new("GET", &format!("/channels/*{}/messages", p.thread), body)
}

/// A page can be short for many reasons: each message missing from it is asked for,
/// and stays out of prompts until then.
async fn a_short_page_erases_nothing(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let (bot, first, last) = before_a_short_page(&p).await;
    assert_says_nothing_of(&p.prompt(p.thread, p.ada).await, &["saffron"]);
    for id in [first.trigger, first.answer, last.trigger] {
        let path = format!("/channels/{}/messages/{id}", p.thread);
        let asked = p.stage.discord.wait_request("GET", &path, 1);
        asked.await.unwrap();
    }
    p.stage.discord.wait_idle().await.unwrap();
    p.stage.discord.end_faults();
    assert_says(
        &p.prompt(p.thread, p.ada).await,
        &["saffron", "so: saffron"],
    );
    assert_eq!(p.event_count("purged"), 0);
    bot.stop().await;
}

/// If the bot may not read the messages, what is stored stays, but is left out of prompts. After one refusal
/// the channel's other messages are not asked for.
async fn a_refusal_erases_nothing(kind: Kind) {
    for (status, code) in [(403, 50_001), (404, 10_003)] {
        let p = Place::new(kind, &[]).await;
        let (bot, first, last) = before_a_short_page(&p).await;
        let single = format!("/channels/{}/messages/*", p.thread);
        let refusal = Fault::status("GET", &single, status, code, "no");
        p.stage.discord.fault(refusal);
        assert_says_nothing_of(&p.prompt(p.thread, p.ada).await, &["saffron"]);
        let asked = |id| format!("/channels/{}/messages/{id}", p.thread);
        let path = asked(first.trigger);
        p.stage.discord.wait_request("GET", &path, 1).await.unwrap();
        assert_says_nothing_of(&p.prompt(p.thread, p.ada).await, &["saffron"]);
        let discord = &p.stage.discord;
        for id in [first.answer, last.trigger] {
            assert!(discord.requests_to("GET", &asked(id)).is_empty());
        }
        // When permissions change in the server, all are asked for.
        discord.end_faults();
        discord.fault(shows_only(&p, last.answer));
        let (allow, deny) = (Permissions::SEND_MESSAGES, Permissions::NONE);
        discord.overwrite(p.pumps, OverwriteOf::Role(p.guild), allow, deny);
        for id in [first.trigger, first.answer, last.trigger] {
            let count = if id == first.trigger { 2 } else { 1 };
            let path = asked(id);
            discord.wait_request("GET", &path, count).await.unwrap();
        }
        discord.wait_idle().await.unwrap();
        assert_says(&p.prompt(p.thread, p.ada).await, &["so: saffron"]);
        bot.stop().await;
        assert_eq!(p.event_count("purged"), 0);
    }
}

async fn what_is_too_old_is_removed(kind: Kind) {
    let p = Place::new(kind, &[("RETENTION_DAYS", "2")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.time.pass(2 * DAY + 1_000);
    let bot = p.restart(bot).await;
    p.until_gone("saffron").await;
    p.ask(p.help, p.ada, "turmeric").await;
    p.time.pass(DAY / 2);
    let bot = p.restart(bot).await;
    assert_says(&p.prompt(p.help, p.ada).await, &["turmeric"]);
    bot.stop().await;
}

/// A command's id is not a message's, so a page without it proves nothing.
async fn a_question_by_command_outlives_pages(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.stage
        .discord
        .wait_request("PUT", "/commands", 1)
        .await
        .unwrap();
    p.ask(p.thread, p.ada, "cinnamon").await;
    let call = Use::slash("ask", &[("question", "saffron")]);
    let call = p.stage.discord.interact(p.thread, p.ada, &call);
    let answered = |message: &clew_simulator::Message| message.content == "ok";
    p.stage
        .discord
        .wait_interaction(call, answered)
        .await
        .unwrap();
    p.until("a stored turn", || p.event_count("recorded") == 2)
        .await;
    p.ask(p.thread, p.ada, "turmeric").await;
    bot.stop().await;
    p.stage.discord.forget_sessions();
    p.time.pass(1_000);
    let bot = p.start().await;
    assert_says(&p.prompt(p.thread, p.ada).await, &["saffron"]);
    let bot = p.restart(bot).await;
    assert_says(&p.prompt(p.thread, p.ada).await, &["saffron"]);
    bot.stop().await;
    assert!(!p.traces("saffron").is_empty());
}

/// The turn ends after the purge, and is not stored.
#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_while_a_turn_runs_is_forgotten() {
    let p = Place::new(Kind::Sqlite, &[("DISCORD_MEMBERS_INTENT", "true")]).await;
    let bot = p.start().await;
    let (pieces, gate) = Behaviour::gated(&["so: saffron"]);
    p.stage.model.script(pieces);
    p.say(p.help, p.ada, "saffron");
    p.stage.model.wait_requests(1).await;
    p.stage.discord.leave(p.guild, p.ada);
    // Events arrive in order, so the bot knows that she left before this turn.
    p.ask(p.help, p.boris, "cinnamon").await;
    gate.open();
    p.until("two answered turns", || p.event_count("turn_done") == 2)
        .await;
    p.until_gone("saffron").await;
    // A member who is back is remembered again.
    p.stage.discord.join(p.guild, p.ada);
    p.ask(p.help, p.ada, "turmeric").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    bot.stop().await;
}

/// Another process locks the database for longer than the bot waits, across a save.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_failed_is_done_later() {
    let p = Place::new(Kind::Sqlite, &[("MEMORY_SAVE_INTERVAL", "1")]).await;
    let bot = p.start().await;
    let first = p.ask(p.help, p.ada, "saffron").await;
    let second = p.ask(p.pumps, p.ada, "cinnamon").await;
    p.ask(p.abroad, p.ada, "turmeric").await;
    let other = rusqlite::Connection::open(p.path("clew.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    p.stage.discord.delete(p.help, first.trigger);
    p.stage.discord.delete(p.pumps, second.trigger);
    p.until("a failure", || p.event_count("store_failed") > 0)
        .await;
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    p.until_gone("saffron").await;
    p.until_gone("cinnamon").await;
    assert_says(&p.prompt(p.abroad, p.ada).await, &["turmeric"]);
    bot.stop().await;
}
