//! After a gap in the events the stored messages that a prompt uses are confirmed, by pages, once.

use std::time::Duration;

use clew_simulator::{Draft, Fault, FaultKind, GatewayEvent, Id, Use};
use serde_json::json;
use tokio::time::sleep;

use super::place::{
    Kind, Place, assert_says, assert_says_nothing_of, on_each_database, on_each_store,
};
use crate::support::bot::{Bot, prompt};
use crate::support::model::Behaviour;

on_each_store! {
    what_was_deleted_while_we_were_away_is_not_used
    what_could_not_be_confirmed_is_purged_later
    a_gap_outlasts_an_orderly_restart
}

on_each_database! {
    messages_are_confirmed_in_every_channel_of_the_person
}

impl Place {
    /// Stops the bot, loses its session, and starts the next one.
    async fn begin_anew(&self, bot: Bot) -> Bot {
        bot.stop().await;
        self.stage.discord.forget_sessions();
        self.time.pass(1_000);
        self.start().await
    }

    /// Stops the bot, and starts the next one, which learns nothing of it that one question was
    /// deleted meanwhile and another one is about ginger now.
    async fn change_unseen(&self, bot: Bot, gone: Id, edited: Id) -> Bot {
        bot.stop().await;
        let us = self.stage.discord.bot();
        self.stage.discord.forget_sessions();
        self.stage.discord.world(|world| {
            world.seed_delete(self.help, gone);
            world.seed_edit(self.help, edited, &format!("<@{us}> ginger"));
        });
        self.time.pass(1_000);
        self.start().await
    }

    /// How often a message was fetched by its own id.
    fn asked_for(&self, channel: Id, message: Id) -> usize {
        let path = format!("/channels/{channel}/messages/{message}");
        let requests = self.stage.discord.requests_to("GET", &path);
        requests.len()
    }
}

/// Who resumes missed nothing, but for what the process before had missed and not asked for.
async fn a_gap_outlasts_an_orderly_restart(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let gone = p.ask(p.help, p.ada, "saffron").await;
    let edited = p.ask_for(p.help, p.ada, "cinnamon", "fine").await;
    p.ask(p.help, p.ada, "turmeric").await;
    let bot = p.change_unseen(bot, gone.trigger, edited.trigger).await;
    p.until("a session", || p.event_count("connected") == 2)
        .await;
    let bot = p.restart(bot).await;
    let log = p.stage.discord.gateway_log();
    let resumed = |event: &GatewayEvent| matches!(event, GatewayEvent::Resumed { .. });
    assert!(log.iter().any(|record| resumed(&record.event)));
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["ginger", "turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron", "cinnamon"]);
    bot.stop().await;
}

async fn what_was_deleted_while_we_were_away_is_not_used(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    let gone = p.ask(p.help, p.ada, "saffron").await;
    let edited = p.ask_for(p.help, p.ada, "cinnamon", "fine").await;
    // More than a turn could ask for one by one.
    for _ in 0..4 {
        p.ask(p.help, p.ada, "pepper").await;
    }
    let kept = p.ask(p.help, p.ada, "turmeric").await;
    let bot = p.change_unseen(bot, gone.trigger, edited.trigger).await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["ginger", "fine", "turmeric", "so: turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron", "cinnamon"]);
    p.until_gone("saffron").await;
    p.until_gone("cinnamon").await;
    assert_says(&p.prompt(p.help, p.ada).await, &["ginger", "turmeric"]);
    // A page shows the others, and what it lacks is asked for after the turn.
    assert_eq!(p.asked_for(p.help, gone.trigger), 1);
    for id in [edited.trigger, kept.trigger, kept.answer] {
        assert_eq!(p.asked_for(p.help, id), 0);
    }
    bot.stop().await;
    let told = p.details("confirmed");
    assert_eq!(told.len(), 1, "a warm turn asks nothing");
    let names = ["asked", "calls", "gone", "unanswered"];
    assert_eq!(names.map(|name| &told[0][name]), [14, 1, 0, 1]);
    let collected = p.details("collect_ok");
    assert!(
        collected.iter().all(|one| one["fetches"] == 0),
        "confirming does not count against MEM_MAX_FETCHES"
    );
}

/// After a refusal, an unknown channel, an error or no answer nothing is purged and nothing shown, until the
/// next gap has an answer.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_confirmed_is_neither_used_nor_purged() {
    let p = Place::new(Kind::Sqlite, &[("MEM_FETCH_TIMEOUT_S", "0.5")]).await;
    let mut bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let page = format!("/channels/{}/messages", p.help);
    let single = format!("{page}/*");
    let refused = |status: u16, code: u64| FaultKind::Status {
        status,
        body: json!({"code": code, "message": "no"}),
        retry_after: None,
    };
    for fault in [
        refused(403, 50_001),
        refused(404, 10_003),
        refused(404, 0),
        refused(500, 0),
        FaultKind::Hang(Duration::from_mins(1)),
    ] {
        bot = p.begin_anew(bot).await;
        for path in [&page, &single] {
            p.stage
                .discord
                .fault(Fault::new("GET", path, fault.clone()));
        }
        assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
        p.stage.discord.end_faults();
    }
    bot = p.begin_anew(bot).await;
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron", "so: saffron"]);
    bot.stop().await;
    assert_eq!(p.event_count("purged"), 0);
}

/// The summary of `/context save` goes by the rule of prompts; what it leaves out is saved all the same, since
/// what is restored has to be confirmed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_made_of_what_is_confirmed() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let bot = p.begin_anew(bot).await;
    for path in ["messages", "messages/*"] {
        let path = format!("/channels/{}/{path}", p.help);
        p.stage
            .discord
            .fault(Fault::status("GET", &path, 403, 50_001, "no"));
    }
    p.ask(p.help, p.ada, "pepper").await;
    let discord = &p.stage.discord;
    let saved = discord.call(p.ada, p.help, "context save", json!({})).await;
    let saved = saved.unwrap().answer().await.unwrap();
    assert_says(&saved.text(), &["Saved 4 messages"]);
    let asked = p.stage.model.requests().pop().unwrap().to_string();
    assert_says(&asked, &["Summarize this conversation", "pepper"]);
    assert_says_nothing_of(&asked, &["saffron"]);
    bot.stop().await;
}

/// The message is gone, but Discord does not answer in time: it is left out, then found to be gone in the
/// background and purged.
async fn what_could_not_be_confirmed_is_purged_later(kind: Kind) {
    let p = Place::new(kind, &[("MEM_FETCH_TIMEOUT_S", "2")]).await;
    let bot = p.start().await;
    let asked = p.ask(p.help, p.ada, "saffron").await;
    bot.stop().await;
    p.stage.discord.forget_sessions();
    p.stage
        .discord
        .world(|world| world.seed_delete(p.help, asked.trigger));
    p.time.pass(1_000);
    let bot = p.start().await;
    let page = format!("/channels/{}/messages", p.help);
    let late = FaultKind::Hang(Duration::from_secs(6));
    p.stage.discord.fault(Fault::new("GET", &page, late).once());
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    p.until_gone("saffron").await;
    bot.stop().await;
}

/// With rows of one person from everywhere, each message is looked for in its own channel; a message missing
/// from one channel's page says nothing about another channel.
async fn messages_are_confirmed_in_every_channel_of_the_person(kind: Kind) {
    let p = Place::new(kind, &[("CONTEXT_SCOPE", "user")]).await;
    let bot = p.start().await;
    let help = p.ask(p.help, p.ada, "saffron").await;
    let thread = p.ask(p.thread, p.ada, "cinnamon").await;
    let last = p.ask(p.thread, p.ada, "turmeric").await;
    bot.stop().await;
    let discord = &p.stage.discord;
    discord.forget_sessions();
    discord.world(|world| world.seed_delete(p.help, help.trigger));
    p.time.pass(1_000);
    // Its pages show only one message, and asking for the others fails.
    let alone = discord.message_object(p.thread, last.answer);
    let body = FaultKind::Body(format!("[{alone}]"));
    let page = format!("/channels/*{}/messages", p.thread);
    discord.fault(Fault::new("GET", &page, body));
    let single = format!("/channels/{}/messages/*", p.thread);
    discord.fault(Fault::status("GET", &single, 500, 0, "no"));
    let bot = p.start().await;
    let prompt = p.prompt(p.thread, p.ada).await;
    assert_says_nothing_of(&prompt, &["saffron", "cinnamon"]);
    assert_eq!(p.asked_for(p.help, help.answer), 0, "its page shows it");
    let path = format!("/channels/{}/messages/{}", p.thread, thread.trigger);
    discord.wait_request("GET", &path, 1).await.unwrap();
    p.until_gone("saffron").await;
    bot.stop().await;
    assert!(!p.traces("cinnamon").is_empty());
}

/// A resumed session has missed no event.
#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_confirms_nothing() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    let asked = p.ask(p.help, p.ada, "saffron").await;
    let bot = p.restart(bot).await;
    p.stage.discord.drop_gateway();
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron"]);
    assert_eq!(p.asked_for(p.help, asked.trigger), 0);
    bot.stop().await;
    assert_eq!(p.event_count("confirmed"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_while_we_run_is_a_gap() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    let asked = p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.pumps, p.ada, "turmeric").await;
    assert_eq!(p.asked_for(p.help, asked.trigger), 0);
    let discord = &p.stage.discord;
    let begun = discord.sessions_begun();
    discord.invalidate_sessions(false);
    discord.world(|world| world.seed_delete(p.help, asked.trigger));
    discord.wait_sessions(begun + 1).await.unwrap();
    discord.settled().await.unwrap();
    assert_says_nothing_of(&p.prompt(p.help, p.ada).await, &["saffron"]);
    assert_says(&p.prompt(p.pumps, p.ada).await, &["turmeric"]);
    p.prompt(p.pumps, p.ada).await;
    let page = format!("/channels/{}/messages", p.pumps);
    let pages = discord.requests_to("GET", &page).len();
    assert_eq!(pages, 1, "fetched once per gap");
    p.until_gone("saffron").await;
    bot.stop().await;
}

/// Two requests within the turn, the newest first, the others in the background; each once. What is not
/// confirmed yet is not shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_makes_two_requests_at_most() {
    let p = Place::new(Kind::Sqlite, &[("CONTEXT_SCOPE", "user")]).await;
    let bot = p.start().await;
    let channels = [p.pumps, p.thread, p.help];
    for (channel, words) in channels.into_iter().zip(["saffron", "turmeric", "ginger"]) {
        p.ask(channel, p.ada, words).await;
    }
    let bot = p.begin_anew(bot).await;
    let path = |channel| format!("/channels/{channel}/messages");
    let pages = || channels.map(|channel| p.stage.discord.requests_to("GET", &path(channel)).len());
    let before = pages();
    let (held, gate) = Fault::held("GET", &path(p.pumps));
    p.stage.discord.fault(held.once());
    let first = p.prompt(p.help, p.ada).await;
    assert_says(&first, &["turmeric", "ginger"]);
    assert_says_nothing_of(&first, &["saffron"]);
    let told = &p.details("confirmed")[0];
    let names = ["asked", "calls", "gone", "unanswered"];
    assert_eq!(names.map(|name| &told[name]), [6, 2, 0, 2]);
    gate.open();
    p.stage.discord.wait_idle().await.unwrap();
    // Its answer may still be on its way into the doubts.
    let mut later = p.prompt(p.help, p.ada).await;
    for _ in 0..5 {
        if later.contains("saffron") {
            break;
        }
        sleep(Duration::from_millis(500)).await;
        later = p.prompt(p.help, p.ada).await;
    }
    assert_says(&later, &["saffron", "ginger"]);
    assert_eq!(pages(), before.map(|pages| pages + 1));
    bot.stop().await;
    assert_eq!(p.event_count("confirmed"), 1);
}

/// The walk of a reply chain reads no page that would show the rows: they are asked for at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn rows_are_confirmed_beside_a_reply_chain() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    let discord = &p.stage.discord;
    let older = discord.post(p.help, p.boris, "which herbs?");
    let draft = Draft::new("the yellow ones").reply_to(older);
    let replied = discord.post(p.help, p.boris, draft);
    let bot = p.begin_anew(bot).await;
    let path = format!("/channels/{}/messages", p.help);
    let before = discord.requests_to("GET", &path).len();
    let (held, gate) = Fault::held("GET", &path);
    discord.fault(held);
    let us = discord.bot();
    let draft = Draft::new(format!("<@{us}> and these?")).reply_to(replied);
    discord.post(p.help, p.ada, draft);
    let both = discord.wait_request("GET", &path, before + 2).await;
    gate.open();
    both.unwrap();
    bot.stop().await;
}

/// In a thread the fetched page shows the messages.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_shows_is_confirmed() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    let asked = p.ask(p.thread, p.ada, "saffron").await;
    p.ask(p.thread, p.boris, "turmeric").await;
    let bot = p.begin_anew(bot).await;
    assert_says(&p.prompt(p.thread, p.ada).await, &["saffron"]);
    assert_says(&p.prompt(p.thread, p.boris).await, &["turmeric"]);
    assert_eq!(p.asked_for(p.thread, asked.trigger), 0);
    bot.stop().await;
    assert_eq!(p.event_count("confirmed"), 0);
}

/// A command counts as the newest message: a page also shows that messages after its last one are gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_notices_that_the_newest_are_gone() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    p.stage
        .discord
        .wait_request("PUT", "/commands", 1)
        .await
        .unwrap();
    p.ask(p.thread, p.ada, "turmeric").await;
    let gone = p.ask(p.thread, p.ada, "saffron").await;
    bot.stop().await;
    let discord = &p.stage.discord;
    discord.forget_sessions();
    discord.world(|world| {
        world.seed_delete(p.thread, gone.trigger);
        world.seed_delete(p.thread, gone.answer);
    });
    let single = format!("/channels/{}/messages/*", p.thread);
    discord.fault(Fault::status("GET", &single, 500, 0, "no"));
    p.time.pass(1_000);
    let bot = p.start().await;
    let requests = p.stage.model.requests().len();
    p.stage.model.script(Behaviour::text(&["ok"]));
    let call = Use::slash("ask", &[("question", "what was that?")]);
    discord.interact(p.thread, p.ada, &call);
    let asked = p.stage.model.wait_requests(requests + 1).await;
    let asked = prompt(&asked[requests]);
    assert_says(&asked, &["so: turmeric"]);
    assert_says_nothing_of(&asked, &["saffron"]);
    bot.stop().await;
}

/// A message in the middle of a long answer is missing from the page.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_part_removes_its_whole_answer() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    let long = format!("saffron {}", "words of an answer. ".repeat(250));
    p.stage.model.script(Behaviour::text(&[&long]));
    let trigger = p.say(p.thread, p.ada, "turmeric");
    p.until("a stored turn", || p.event_count("recorded") == 1)
        .await;
    let us = p.stage.discord.bot();
    let messages = p.stage.discord.messages(p.thread);
    let parts: Vec<Id> = messages
        .iter()
        .filter(|message| message.author == us)
        .map(|message| message.id)
        .collect();
    assert!(parts.len() >= 3, "{}", parts.len());
    bot.stop().await;
    let discord = &p.stage.discord;
    discord.forget_sessions();
    discord.world(|world| world.seed_delete(p.thread, parts[1]));
    let single = format!("/channels/{}/messages/*", p.thread);
    discord.fault(Fault::status("GET", &single, 500, 0, "no"));
    p.time.pass(1_000);
    let bot = p.start().await;
    let asked = p.prompt(p.thread, p.ada).await;
    let history = asked.split("go on").next().unwrap();
    assert!(
        trigger < parts[0] && history.contains("turmeric"),
        "{history}"
    );
    let answers = history.matches("saffron").count();
    assert!(
        answers <= 1,
        "the block shows what is there, history nothing: {history}"
    );
    bot.stop().await;
}

/// A message known to be deleted is left out even while the store cannot be written.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_counts_before_the_store_has_it() {
    let p = Place::new(Kind::Sqlite, &[]).await;
    let bot = p.start().await;
    let gone = p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.ada, "turmeric").await;
    let other = rusqlite::Connection::open(p.path("clew.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    p.stage.discord.delete(p.help, gone.trigger);
    let requests = p.stage.model.requests().len();
    p.stage.model.script(Behaviour::text(&["ok"]));
    p.say(p.help, p.ada, "go on");
    let asked = p.stage.model.wait_requests(requests + 1).await;
    let asked = prompt(&asked[requests]);
    assert_says(&asked, &["turmeric"]);
    assert_says_nothing_of(&asked, &["saffron"]);
    other.execute_batch("ROLLBACK").unwrap();
    p.until_gone("saffron").await;
    bot.stop().await;
}

/// More changes wait for a locked store than there is room for. The server with the flood of edits has to
/// confirm its messages again; no deletion is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_edits_loses_no_deletion() {
    let p = Place::new(Kind::Sqlite, &[("MEMORY_SAVE_INTERVAL", "1")]).await;
    let bot = p.start().await;
    let us = p.stage.discord.bot();
    let edited = p.ask_for(p.help, p.ada, "saffron", "fine").await;
    let gone = p.ask(p.help, p.ada, "cinnamon").await;
    let abroad = p.ask(p.abroad, p.ada, "turmeric").await;
    let other = rusqlite::Connection::open(p.path("clew.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    p.stage.discord.delete(p.help, gone.trigger);
    p.stage.discord.delete(p.abroad, abroad.trigger);
    for n in 0..3_000 {
        let words = format!("<@{us}> {n} {}", "ginger ".repeat(280));
        p.stage.discord.edit(p.help, edited.trigger, &words);
    }
    p.until("an overflow", || p.event_count("changes_dropped") > 0)
        .await;
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    p.until_gone("turmeric").await;
    assert_eq!(
        p.asked_for(p.abroad, abroad.trigger),
        0,
        "it was not dropped"
    );
    p.until_gone("cinnamon").await;
    p.until_gone("saffron").await;
    // An edited message is used again once Discord has shown its new text; the last edit may still be on its way.
    let mut prompt = p.prompt(p.help, p.ada).await;
    while !(prompt.contains("2999 ginger") && prompt.contains("fine")) {
        assert_says_nothing_of(&prompt, &["saffron", "cinnamon"]);
        assert!(p.event_count("recorded") < 1_000, "it is shown in the end");
        prompt = p.prompt(p.help, p.ada).await;
    }
    assert_says(&prompt, &["2999 ginger", "fine"]);
    let pages = format!("/channels/{}/messages", p.help);
    assert!(!p.stage.discord.requests_to("GET", &pages).is_empty());
    bot.stop().await;
}

/// A fact is listed once the message that it was learnt from is known to be there.
#[tokio::test(flavor = "multi_thread")]
async fn facts_from_before_a_gap_are_listed_once_they_are_confirmed() {
    let p = Place::new(Kind::Sqlite, &[("MEMORY_LEARN", "model")]).await;
    let bot = p.start().await;
    let mut said = Vec::new();
    for spice in ["saffron", "ginger"] {
        let fact = json!({"facts": [{"text": format!("Grows {spice} on the roof.")}]});
        p.stage.model.script(Behaviour::text(&["ok"]));
        p.stage.model.script(Behaviour::text(&[&fact.to_string()]));
        said.push(p.say(p.help, p.ada, &format!("I grow {spice} on the roof")));
        p.until("an extraction", || p.event_count("learnt") == said.len())
            .await;
    }
    bot.stop().await;
    p.stage.discord.forget_sessions();
    p.stage
        .discord
        .world(|world| world.seed_delete(p.help, said[0]));
    p.time.pass(1_000);
    let bot = p.start().await;
    let list = async || {
        let called = p
            .stage
            .discord
            .call(p.ada, p.help, "memory show", json!({}));
        called.await.unwrap().answer().await.unwrap().text()
    };
    let first = list().await;
    assert!(
        first.starts_with("2 memories are not shown until"),
        "{first}"
    );
    let shown = loop {
        let shown = list().await;
        if shown.contains("ginger") {
            break shown;
        }
    };
    assert!(!shown.contains("saffron"), "{shown}");
    p.until_gone("saffron").await;
    bot.stop().await;
}
