//! What is left of a run that ended early: what it said, why it ended and what it did.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clew_context::model::UnixMillis;
use clew_simulator::{ChannelKind, Fault, Id, OverwriteOf, Permissions};
use serde_json::json;

use super::{Place, Standing, ends, place, unstarted};
use crate::support::START;
use crate::support::bot::details;
use crate::support::model::Behaviour;

/// Added to what a run had said by then.
const PART: &str = "\n-# I was stopped before this was complete.";

/// A run that has kept a result and waits for a tool that hangs.
async fn in_second_step(p: &Place) -> Standing {
    let read = p.stage.discord.post(p.channel, p.boris, "nine pumps");
    p.stage.discord.settled().await.unwrap();
    let (hangs, path) = p.unreadable();
    p.stage.model.script(p.reads(read));
    p.stage.model.script(p.reads(hangs));
    let run = p.begin(p.ada, "count the pumps").await;
    p.stage.discord.wait_request("GET", &path, 1).await.unwrap();
    run
}

/// The run's message says why it ended and what it did, and lists what was kept; what the
/// model said last stands below it.
async fn left_behind(p: &Place, run: Standing, how: &str) {
    let shown = p.ended(run, how).await;
    let expected = format!(
        "-# Agent run for <@{}>: {how}.\n> count the pumps\n-# 2 steps: get_message ×2\n\
         -# Kept results, by id:\n-# ",
        p.ada
    );
    let kept = shown.content.strip_prefix(&expected);
    let kept = kept.unwrap_or_else(|| panic!("{}", shown.content));
    assert!(
        kept.contains("get message") && kept.lines().count() == 1,
        "{kept}"
    );
    assert_eq!(p.texts(run.channel)[1..], [format!("Let me look.{PART}")]);
    let answer = p.stage.discord.answers(run.channel).remove(1);
    assert_eq!(answer.reference.unwrap().message, Some(run.message));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_stopped_leaves_what_it_has() {
    let (p, bot) = place(&[]).await;
    let run = in_second_step(&p).await;
    let pressed = p.stage.discord.press(p.maria, run.message, "Stop");
    pressed.answer().await.unwrap();
    left_behind(&p, run, "stopped").await;
    let answer = p.stage.discord.answers(run.channel)[1].id;
    p.idle().await;
    let why = json!({"answer": answer.to_string()});
    let why = p.call(p.ada, run.channel, "context why", why).await.text();
    assert!(why.contains("get_message"), "it has a receipt: {why}");
    assert_eq!(ends(&bot.stop().await), ["stopped"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_time_is_over_leaves_what_it_has() {
    let mut p = unstarted(&[]).await;
    p.stage
        .adjust(|config| config.runs.bounds.time = Duration::from_secs(8));
    let bot = p.stage.start().await;
    let run = in_second_step(&p).await;
    left_behind(&p, run, "stopped, out of time").await;
    assert_eq!(ends(&bot.stop().await), ["time_over"]);
}

/// It says so itself, and the next process has nothing to say.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_tool_runs_at_shutdown_leaves_what_it_has() {
    let (p, bot) = place(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let run = in_second_step(&p).await;
    assert_eq!(ends(&bot.stop().await), ["interrupted"]);
    let how = "interrupted by my restart. Start it again";
    left_behind(&p, run, how).await;
    let kept = std::fs::read_to_string(p.stage.state().join("runs.json")).unwrap();
    assert_eq!(kept, "{}");
}

/// What was said before the tokens were used up is an answer, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_tokens_leaves_what_it_has() {
    let (p, bot) = place(&[("AGENT_RUN_MAX_TOKENS", "10")]).await;
    let read = p.stage.discord.post(p.channel, p.boris, "nine pumps");
    p.stage.discord.settled().await.unwrap();
    p.stage.model.script(p.reads(read));
    let run = p.begin(p.ada, "count the pumps").await;
    p.ended(run, "stopped, out of tokens.").await;
    let said = "Let me look.\n-# I stopped here: this task's tokens are used up.";
    assert_eq!(p.texts(run.channel)[1..], [said]);
    assert_eq!(p.stage.model.requests().len(), 1);
    assert_eq!(ends(&bot.stop().await), ["tokens_spent"]);
}

/// What arrives while the model speaks is kept back until the end; whoever stops it sees it.
/// Nothing tells when it has arrived, so that the run is stopped later and later.
#[tokio::test(flavor = "multi_thread")]
async fn words_that_have_arrived_are_shown() {
    let (p, bot) = place(&[]).await;
    for wait in [20, 200, 2_000, 10_000] {
        let (behaviour, gate) = Behaviour::gated(&["There are nine.\n", "And a valve."]);
        p.stage.model.script(behaviour);
        gate.step(1);
        let run = p.begin(p.ada, "count the pumps").await;
        tokio::time::sleep(Duration::from_millis(wait)).await;
        p.stage.discord.press(p.ada, run.message, "Stop");
        p.ended(run, "stopped.").await;
        p.idle().await;
        let texts = p.texts(run.channel);
        if texts.len() > 1 {
            assert_eq!(texts[1..], [format!("There are nine.{PART}")]);
            bot.stop().await;
            return;
        }
    }
    panic!("nothing is shown");
}

/// Of a run whose message is gone, nobody wants to read.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_message_is_deleted_says_nothing() {
    let (p, bot) = place(&[]).await;
    let run = in_second_step(&p).await;
    assert!(p.stage.discord.delete(run.channel, run.message));
    p.idle().await;
    assert_eq!(p.texts(run.channel), [] as [String; 0]);
    assert_eq!(ends(&bot.stop().await), ["stopped"]);
}

/// Each edit is tried three times; the second edit finds Discord down, too.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_edit_is_tried_again() {
    let (p, bot) = place(&[]).await;
    let gate = p.hold("nine");
    let run = p.begin(p.ada, "count the pumps").await;
    p.stage.model.wait_requests(1).await;
    let edits = format!("/channels/{}/messages/{}", run.channel, run.message);
    let down = Fault::status("PATCH", &edits, 503, 0, "down").times(6);
    let down = p.stage.discord.fault(down);
    let limited = Fault::rate_limited("PATCH", &edits, 0.1).times(5);
    let limited = p.stage.discord.fault(limited);
    gate.open();
    p.ended(run, "done").await;
    let discord = &p.stage.discord;
    assert_eq!((discord.hits(down), discord.hits(limited)), (6, 5));
    bot.stop().await;
}

/// Who loses a role while a run goes on loses what it gave, within a minute.
#[tokio::test(flavor = "multi_thread")]
async fn tools_of_a_run_go_by_the_roles_that_its_asker_has() {
    let mut p = unstarted(&[]).await;
    let clock = Arc::new(AtomicI64::new(START.0));
    let shown = Arc::clone(&clock);
    p.stage.clock = Arc::new(move || UnixMillis(shown.load(Ordering::SeqCst)));
    let bot = p.stage.start().await;
    let discord = &p.stage.discord;
    let crew = discord.role(p.guild, "crew", Permissions::NONE);
    discord.set_role(p.guild, p.ada, crew, true);
    let [home, stock] = ["crew", "stock"].map(|name| crew_channel(&p, crew, name));
    let listed = discord.post(stock, p.boris, "nine pumps");
    discord.settled().await.unwrap();
    let members = format!("/guilds/{}/members/{}", p.guild, p.ada);
    let list = |after: u64| {
        let before = (listed.0 + after).to_string();
        let arguments = json!({"thread": stock.to_string(), "before": before}).to_string();
        Behaviour::calls("", &[("list_thread", &arguments)])
    };
    p.stage.model.script(list(1));
    let (second, gate) = list(2).held();
    p.stage.model.script(second);
    p.told(p.ada, home, "count the pumps").await;
    p.stage.model.wait_requests(2).await;
    assert_eq!(discord.requests_to("GET", &members).len(), 0);
    discord.set_role(p.guild, p.ada, crew, false);
    clock.fetch_add(61_000, Ordering::SeqCst);
    gate.open();
    p.stage.model.wait_requests(3).await;
    assert_eq!(discord.requests_to("GET", &members).len(), 1);
    p.idle().await;
    let called = details(&bot.stop().await, "tool_called");
    let outcomes: Vec<_> = called.iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["ok", "refused"]);
}

/// A channel that only one role may view, and we.
fn crew_channel(p: &Place, crew: Id, name: &str) -> Id {
    let discord = &p.stage.discord;
    let channel = discord.channel(p.guild, ChannelKind::Text, name);
    let view = Permissions::VIEW_CHANNEL;
    let everyone = OverwriteOf::Role(p.guild);
    discord.overwrite(channel, everyone, Permissions::NONE, view);
    for of in [OverwriteOf::Role(crew), OverwriteOf::Member(p.us)] {
        discord.overwrite(channel, of, view, Permissions::NONE);
    }
    channel
}
