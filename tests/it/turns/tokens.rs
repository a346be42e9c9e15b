//! Daily limits of tokens: who is refused, what they are told, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clew_context::model::UnixMillis;
use clew_simulator::{Id, Permissions};
use serde_json::json;

use super::{Place, place};
use crate::support::START;
use crate::support::bot::{Bot, details};
use crate::support::model::Behaviour;

/// The model server says that each answer took ten tokens.
const TWO_ANSWERS: &str = "20,0";
/// Midnight after `START`, in Unix seconds.
const MIDNIGHT: i64 = 1_767_398_400;
const REFUSED: &str = "-# You used up today's tokens. Try again <t:1767398400:R>.";

/// A place on 2026-01-02, and its clock in milliseconds.
async fn place_with_clock(settings: &[(&str, &str)]) -> (Place, Arc<AtomicI64>) {
    let mut p = place(settings).await;
    let clock = Arc::new(AtomicI64::new(START.0));
    let shown = Arc::clone(&clock);
    p.stage.clock = Arc::new(move || UnixMillis(shown.load(Ordering::SeqCst)));
    (p, clock)
}

impl Place {
    /// Asks and gives what we said last, once we have said so much in the channel.
    async fn said(&self, channel: Id, who: Id, count: usize) -> String {
        self.post(channel, who, self.to_us("and?"));
        self.answer(channel, count).await
    }
}

fn reasons(lines: &[serde_json::Value]) -> Vec<String> {
    let refused = details(lines, "refused").into_iter();
    let reasons = refused.map(|one| one["reason"].as_str().unwrap().to_owned());
    reasons.filter(|one| one != "unknown_command").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_users_tokens_are_used_up_until_midnight() {
    let (p, clock) = place_with_clock(&[("TOKENS_PER_DAY", TWO_ANSWERS)]).await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    assert_eq!(p.said(p.channel, p.ada, 1).await, "ok");
    assert_eq!(p.said(direct, p.ada, 1).await, "ok");
    assert_eq!(p.said(p.channel, p.ada, 2).await, REFUSED);
    // Others are served, and it is said once.
    assert_eq!(p.said(p.channel, p.boris, 3).await, "ok");
    p.post(p.channel, p.ada, p.to_us("and now?"));
    assert_eq!(p.said(p.channel, p.boris, 4).await, "ok");
    clock.store((MIDNIGHT - 1) * 1_000, Ordering::SeqCst);
    p.post(p.channel, p.ada, p.to_us("and now?"));
    p.seen().await;
    clock.store(MIDNIGHT * 1_000, Ordering::SeqCst);
    assert_eq!(p.said(p.channel, p.ada, 5).await, "ok");
    let lines = bot.stop().await;
    assert_eq!(reasons(&lines), ["user_tokens"; 3]);
    assert_eq!(details(&lines, "trigger").len(), 5, "nothing is collected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_servers_tokens_are_those_of_all_its_people() {
    let (p, _) = place_with_clock(&[("TOKENS_PER_DAY", "0,20")]).await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    assert_eq!(p.said(p.channel, p.ada, 1).await, "ok");
    assert_eq!(p.said(direct, p.ada, 1).await, "ok");
    assert_eq!(p.said(p.channel, p.boris, 2).await, "ok");
    let refused = p.said(p.channel, p.boris, 3).await;
    assert!(refused.starts_with("-# This server used up"), "{refused}");
    assert_eq!(p.said(direct, p.ada, 2).await, "ok");
    let lines = bot.stop().await;
    assert_eq!(reasons(&lines), ["guild_tokens"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_waited_and_calls_are_refused_too() {
    let (p, _) = place_with_clock(&[("TOKENS_PER_DAY", "10,0")]).await;
    let bot = p.start().await;
    let gate = p.hold("first");
    p.post(p.channel, p.ada, p.to_us("one"));
    p.stage.model.wait_requests(1).await;
    p.post(p.channel, p.ada, p.to_us("two"));
    p.seen().await;
    gate.open();
    assert_eq!(p.answer(p.channel, 2).await, REFUSED);
    let discord = &p.stage.discord;
    for (command, options) in [
        ("ask", json!({"question": "why?"})),
        ("context save", json!({})),
    ] {
        let called = discord.call(p.ada, p.channel, command, options).await;
        let shown = called.unwrap().answer().await.unwrap();
        assert_eq!(shown.text(), REFUSED, "{command}");
    }
    assert_eq!(p.stage.model.requests().len(), 1);
    let lines = bot.stop().await;
    assert_eq!(reasons(&lines), ["user_tokens"; 3]);
}

/// An edit of a running question is a further question.
#[tokio::test(flavor = "multi_thread")]
async fn an_edited_question_is_not_asked_again_beyond_the_limit() {
    let (p, _) = place_with_clock(&[("TOKENS_PER_DAY", "10,0")]).await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    let _gate = p.hold("never said");
    let question = p.post(p.channel, p.ada, p.to_us("one"));
    p.stage.model.wait_requests(1).await;
    assert_eq!(p.said(direct, p.ada, 1).await, "ok");
    assert_eq!(p.said(direct, p.ada, 2).await, REFUSED);
    p.stage.discord.edit(p.channel, question, &p.to_us("one?"));
    p.seen().await;
    let lines = bot.stop().await;
    assert_eq!(reasons(&lines), ["user_tokens"; 2]);
    assert_eq!(p.stage.model.requests().len(), 2);
}

/// Between two rounds of tools, too: what was said stays, with a line that says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_whose_tokens_are_used_up_asks_no_more() {
    let (p, _) = place_with_clock(&[("TOKENS_PER_DAY", "10,0")]).await;
    let bot = p.start().await;
    for (words, expected) in [
        ("Let me look.", format!("Let me look.\n{REFUSED}")),
        ("", REFUSED.to_owned()),
    ] {
        let calls = [("list_thread", "{}")];
        p.stage.model.script(Behaviour::calls(words, &calls));
        let who = if words.is_empty() { p.boris } else { p.ada };
        p.post(p.channel, who, p.to_us("and?"));
        p.wait_for(p.channel, &expected).await;
    }
    assert_eq!(p.stage.model.requests().len(), 2);
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "tool_called").len(), 2);
    let done = details(&lines, "turn_done");
    assert!(
        done.iter().all(|one| one["outcome"] == "failed"),
        "{done:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_gives_nobody_their_tokens_again() {
    let (p, clock) = place_with_clock(&[("TOKENS_PER_DAY", "10,0")]).await;
    let bot = p.start().await;
    assert_eq!(p.said(p.channel, p.ada, 1).await, "ok");
    bot.stop().await;
    let bot = p.stage.start().await;
    assert_eq!(p.said(p.channel, p.ada, 2).await, REFUSED);
    bot.stop().await;
    // What cannot be read costs the count, never the start.
    let file = p.stage.state().join("tokens.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &kept[1..]).unwrap();
    let bot = p.stage.start().await;
    assert_eq!(p.said(p.channel, p.ada, 3).await, "ok");
    bot.stop().await;
    std::fs::write(&file, kept).unwrap();
    clock.store(MIDNIGHT * 1_000, Ordering::SeqCst);
    let bot = p.stage.start().await;
    assert_eq!(p.said(p.channel, p.ada, 4).await, "ok");
    stop_and_expect(bot, 3).await;
}

async fn stop_and_expect(bot: Bot, answers: usize) {
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "request_ok").len(), answers);
}

/// Facts are extracted at the expense of whoever asked.
#[tokio::test(flavor = "multi_thread")]
async fn extraction_counts() {
    let settings = [("TOKENS_PER_DAY", TWO_ANSWERS), ("MEMORY_LEARN", "model")];
    let (p, _) = place_with_clock(&settings).await;
    let bot = p.start().await;
    p.stage.model.script(Behaviour::text(&["ok"]));
    let facts = r#"{"facts":[{"text":"Works as a nurse on night shifts."}]}"#;
    p.stage.model.script(Behaviour::text(&[facts]));
    p.post(
        p.channel,
        p.ada,
        p.to_us("I work as a nurse on night shifts"),
    );
    assert_eq!(p.answer(p.channel, 2).await, "-# Noted 1 thing.");
    assert_eq!(p.said(p.channel, p.ada, 3).await, REFUSED);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everybodys_tokens_are_used_up_together_and_usage_says_so() {
    let settings = [("TOKENS_TOTAL_DAY", "20"), ("TOKENS_PER_DAY", "15,40")];
    let (p, clock) = place_with_clock(&settings).await;
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    let usage = async |who| {
        let discord = &p.stage.discord;
        let called = discord.call(who, p.channel, "usage", json!({})).await;
        let shown = called.unwrap().answer().await.unwrap();
        assert!(shown.ephemeral);
        shown.embeds[0]["fields"].clone()
    };
    let told = async |who| {
        let fields = usage(who).await;
        let fields = fields.as_array().unwrap().iter();
        let values = fields.map(|field| field["value"].as_str().unwrap().to_owned());
        values.collect::<Vec<_>>()
    };
    assert_eq!(p.said(direct, p.ada, 1).await, "ok");
    let before = told(p.ada).await;
    let first = [
        "5 of 15 tokens are left",
        "40 of 40 tokens are left",
        "50 % is left",
    ];
    assert_eq!(before[..3], first);
    assert_eq!(before[4], "not since I started");
    assert_eq!(p.said(p.channel, p.boris, 1).await, "ok");
    let refused = p.said(p.channel, p.boris, 2).await;
    assert!(
        refused.starts_with("-# I used up today's tokens."),
        "{refused}"
    );
    let after = told(p.boris).await;
    assert_eq!(after[1..3], ["30 of 40 tokens are left", "0 % is left"]);
    assert!(after[4].ends_with("everybody's tokens of the day were used up"));
    clock.store(MIDNIGHT * 1_000, Ordering::SeqCst);
    assert_eq!(p.said(p.channel, p.boris, 3).await, "ok");
    let lines = bot.stop().await;
    assert_eq!(reasons(&lines), ["total_tokens"]);
}

/// Without any limit of the operator's; the role with most counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_limits_roles() {
    let (p, clock) = place_with_clock(&[]).await;
    let discord = &p.stage.discord;
    let manager = discord.role(p.guild, "manager", Permissions::MANAGE_GUILD);
    discord.set_role(p.guild, p.boris, manager, true);
    let friend = discord.role(p.guild, "friend", Permissions::NONE);
    let direct = discord.world(|world| world.direct(p.ada));
    let bot = p.start().await;
    let limits = async |role: Id, tokens: &str| {
        let options = json!({"role": role.to_string(), "tokens": tokens});
        let called = discord.call(p.boris, p.channel, "settings limits", options);
        called.await.unwrap().answer().await.unwrap().text()
    };
    let refused = limits(p.guild, "0").await;
    assert!(refused.starts_with("-# `tokens` is a number"), "{refused}");
    let told = limits(p.guild, "10").await;
    assert!(
        told.contains(&format!("<@&{}>: 10 tokens a day", p.guild)),
        "{told}"
    );
    limits(friend, "20").await;
    assert_eq!(p.said(p.channel, p.ada, 1).await, "ok");
    assert_eq!(p.said(p.channel, p.ada, 2).await, REFUSED);
    assert_eq!(p.said(direct, p.ada, 1).await, "ok");
    discord.set_role(p.guild, p.ada, friend, true);
    assert_eq!(p.said(p.channel, p.ada, 3).await, "ok");
    bot.stop().await;
    let bot = p.stage.start().await;
    assert_eq!(p.said(p.channel, p.ada, 4).await, REFUSED);
    clock.store(MIDNIGHT * 1_000, Ordering::SeqCst);
    assert_eq!(p.said(p.channel, p.ada, 5).await, "ok");
    // As many as there may be are shown whole; what a role that is gone had goes with the next call.
    let role = || discord.role(p.guild, "other", Permissions::NONE);
    let most = "1000000000000";
    for _ in 0..18 {
        limits(role(), most).await;
    }
    let over = limits(role(), most).await;
    assert!(over.contains("At most 20 roles"), "{over}");
    discord.delete_role(p.guild, friend);
    let told = limits(role(), most).await;
    assert_eq!(told.matches("<@&").count(), 20, "{told}");
    assert!(!told.contains(&friend.to_string()), "{told}");
    let lines = bot.stop().await;
    assert_eq!(reasons(&lines), ["user_tokens"; 2]);
}

/// Their own for each server, and what the operator allows is not exceeded.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_limits_questions_a_minute() {
    let (p, _) = place_with_clock(&[("USER_TURNS_PER_MIN", "2")]).await;
    let discord = &p.stage.discord;
    let manager = discord.role(p.guild, "manager", Permissions::MANAGE_GUILD);
    discord.set_role(p.guild, p.boris, manager, true);
    let bot = p.start().await;
    let options = json!({"role": p.guild.to_string(), "questions": "1"});
    let called = discord.call(p.boris, p.channel, "settings limits", options);
    called.await.unwrap().answer().await.unwrap();
    assert_eq!(p.said(p.channel, p.ada, 1).await, "ok");
    let refused = p.said(p.channel, p.ada, 2).await;
    assert_eq!(
        refused,
        "-# That's a lot of questions. Try again in a minute."
    );
    let options = json!({"role": p.guild.to_string(), "questions": "9"});
    let called = discord.call(p.boris, p.channel, "settings limits", options);
    called.await.unwrap().answer().await.unwrap();
    assert_eq!(p.said(p.channel, p.ada, 3).await, "ok");
    p.post(p.channel, p.ada, p.to_us("a third?"));
    p.seen().await;
    let lines = bot.stop().await;
    assert_eq!(reasons(&lines), ["user_rate", "user_rate"]);
}
