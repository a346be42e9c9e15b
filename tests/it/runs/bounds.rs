//! How many runs there may be, how long one may take, and what a run holds up.

use std::time::Duration;

use serde_json::json;

use super::{Place, ends, place, unstarted};
use crate::support::bot::{details, lines, prompt};
use crate::support::model::{Behaviour, Gate};
use clew_simulator::{ChannelKind, Id, OverwriteOf, Permissions};

/// A run that waits for the model.
async fn running(p: &Place, who: Id) -> Gate {
    let requests = p.stage.model.requests().len();
    let gate = p.hold("never said");
    p.begin(who, "count the pumps").await;
    p.stage.model.wait_requests(requests + 1).await;
    gate
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_bounded_by_person_by_server_and_in_all() {
    let (p, bot) = place(&[("MAX_AGENT_RUNS", "3")]).await;
    let discord = &p.stage.discord;
    let told = |who, channel| p.told(who, channel, "count");
    let first = running(&p, p.ada).await;
    let direct = discord.world(|world| world.direct(p.ada));
    let of_ada = "-# I'm still doing a task for you. `/agent stop` ends it.";
    assert_eq!(told(p.ada, p.channel).await, of_ada);
    assert_eq!(told(p.ada, direct).await, of_ada, "anywhere");
    let _second = running(&p, p.boris).await;
    let of_server =
        "-# I'm doing as many tasks as I may in this server. `/agent status` shows them.";
    assert_eq!(told(p.maria, p.channel).await, of_server);
    let _third = p.hold("never said");
    let direct = discord.world(|world| world.direct(p.maria));
    assert!(told(p.maria, direct).await.starts_with("Started."));
    let eve = discord.world(|world| world.user("Eve"));
    let direct = discord.world(|world| world.direct(eve));
    let in_all = "-# I'm doing as many tasks as I can. Try again later.";
    assert_eq!(told(eve, direct).await, in_all);
    first.open();
    for _ in 0..1_000 {
        if told(eve, direct).await.starts_with("Started.") {
            bot.stop().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no place became free");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_runs_none_begins() {
    let (p, bot) = place(&[("MAX_AGENT_RUNS", "0")]).await;
    let told = p.told(p.ada, p.channel, "count").await;
    assert_eq!(told, "-# Tasks are off here (`MAX_AGENT_RUNS=0`).");
    let told = p.told(p.ada, p.channel, "  ").await;
    assert_eq!(told, "-# Say what I should do.");
    assert_eq!(p.stage.discord.requests_to("POST", "/threads").len(), 0);
    bot.stop().await;
}

/// A run counts as a question, and begins nowhere where questions are not answered.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_counts_as_a_question() {
    let (p, bot) = place(&[("USER_TURNS_PER_MIN", "1")]).await;
    p.begin(p.ada, "count the pumps").await;
    p.idle().await;
    let told = p.told(p.ada, p.channel, "count").await;
    assert!(told.starts_with("-# That's a lot of questions"), "{told}");
    let manager = p
        .stage
        .discord
        .role(p.guild, "manager", Permissions::MANAGE_GUILD);
    p.stage.discord.set_role(p.guild, p.maria, manager, true);
    let off = json!({"channel": p.channel.to_string(), "mode": "off"});
    p.call(p.maria, p.channel, "settings set", off).await;
    let told = p.told(p.boris, p.channel, "count").await;
    assert_eq!(told, "-# I'm switched off in this channel.");
    assert_eq!(p.stage.model.requests().len(), 1);
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_kept_out_gets_no_run() {
    let (p, bot) = place(&[("ALLOWED", "channel:1")]).await;
    let told = p.told(p.ada, p.channel, "count").await;
    assert_eq!(told, "-# I may not answer you here. Ask the operator.");
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_when_its_time_is_over() {
    let mut p = unstarted(&[]).await;
    p.stage
        .adjust(|config| config.runs.bounds.time = Duration::from_secs(1));
    let bot = p.stage.start().await;
    let _gate = p.hold("never said");
    let run = p.begin(p.ada, "count the pumps").await;
    p.ended(run, "stopped, out of time.").await;
    p.stage.model.wait_ended(1).await;
    p.idle().await;
    let lines = bot.stop().await;
    assert_eq!(ends(&lines), ["time_over"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_is_said_in_the_thread() {
    let (p, bot) = place(&[]).await;
    p.stage.model.script(Behaviour::status(401, "bad key"));
    let run = p.begin(p.ada, "count the pumps").await;
    p.ended(run, "failed.").await;
    let said = p.texts(run.channel);
    assert!(
        said[1].starts_with("-# The model is unavailable until the operator"),
        "{said:?}"
    );
    let lines = bot.stop().await;
    assert_eq!(ends(&lines), ["failed"]);
}

/// A run takes no turn's place, and nobody waits for it, not even where it stands.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_run() {
    let (p, bot) = place(&[("MAX_CONCURRENT_TURNS", "1")]).await;
    let anchor = p.stage.discord.seed(p.channel, p.ada, "the pump leaks");
    let thread = p
        .stage
        .discord
        .thread_from(p.channel, anchor, "pump", p.ada);
    p.stage.discord.settled().await.unwrap();
    let gate = p.hold("nine");
    p.told(p.ada, thread, "count the pumps").await;
    p.stage.model.wait_requests(1).await;
    p.stage
        .discord
        .post(thread, p.ada, format!("<@{}> and the valves?", p.us));
    let answers = p.stage.discord.wait_answers(thread, 2).await.unwrap();
    assert_eq!(answers[1].content, "ok");
    gate.open();
    p.ended(p.standing(thread, 0), "done").await;
    bot.stop().await;
}

/// Whoever may read where a run stands is told that it is under way, by its title.
#[tokio::test(flavor = "multi_thread")]
async fn other_turns_of_the_agent_are_told_of_a_run() {
    let (p, bot) = place(&[]).await;
    let apart = p.stage.discord.channel(p.guild, ChannelKind::Text, "apart");
    p.stage.discord.settled().await.unwrap();
    let gate = p.hold("nine");
    let run = p.begin(p.ada, "count the \"pumps\"").await;
    p.stage.model.wait_requests(1).await;
    let ask = async |who, channel, number| {
        p.stage
            .discord
            .post(channel, who, format!("<@{}> hello", p.us));
        prompt(&p.stage.model.wait_requests(number).await[number - 1])
    };
    let told = ask(p.boris, apart, 2).await;
    let said = "Right now you are also answering in: \"#count the 'pumps'\" (1 agent run, since ";
    assert!(told.contains(said), "{told}");
    let told = ask(p.ada, run.channel, 3).await;
    assert!(
        told.contains("1 agent run"),
        "in its own thread, too: {told}"
    );
    let hidden = Permissions::VIEW_CHANNEL;
    let of = OverwriteOf::Member(p.boris);
    p.stage
        .discord
        .overwrite(p.channel, of, Permissions::NONE, hidden);
    p.stage.discord.settled().await.unwrap();
    let told = ask(p.boris, apart, 4).await;
    assert!(
        !told.contains("agent run") && !told.contains("pumps"),
        "{told}"
    );
    gate.open();
    p.ended(run, "done").await;
    bot.stop().await;
}

/// The connection to the gateway is not needed to carry on, and the run goes on after it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_survives_a_reconnect() {
    let (p, bot) = place(&[]).await;
    let gate = p.hold("nine");
    let run = p.begin(p.ada, "count the pumps").await;
    p.stage.model.wait_requests(1).await;
    let sessions = p.stage.discord.sessions_begun();
    p.stage.discord.drop_gateway();
    p.stage.discord.wait_sessions(sessions + 1).await.unwrap();
    p.stage.discord.forget_sessions();
    p.stage.discord.drop_gateway();
    p.stage.discord.wait_sessions(sessions + 2).await.unwrap();
    gate.open();
    p.ended(run, "done").await;
    assert_eq!(p.texts(run.channel)[1], "nine");
    bot.stop().await;
}

/// At the end of the process a run has the time that turns have. What is left of it says
/// so, and the next process has nothing to say.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_does_not_end_in_time_is_interrupted_at_shutdown() {
    let (p, bot) = place(&[("SHUTDOWN_TIMEOUT_S", "0.2")]).await;
    let _gate = p.hold("never said");
    let run = p.begin(p.ada, "count the pumps").await;
    p.stage.model.wait_requests(1).await;
    let done = bot.stop().await;
    let shown = p
        .ended(run, "interrupted by my restart. Start it again.")
        .await;
    assert_eq!(ends(&done), ["interrupted"]);
    assert_eq!(details(&done, "stopping")[0]["abandoned"], 1);
    let bot = p.stage.start().await;
    p.idle().await;
    let again = p.stage.discord.answers(run.channel).remove(0);
    assert_eq!(again.edited_ms, shown.edited_ms);
    bot.stop().await;
    assert_eq!(
        ends(&lines(&p.stage.folder.path().join("telemetry"))).len(),
        1
    );
}

/// A run asked for while the process ends, and before it ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_comes_too_late_is_interrupted() {
    let (p, bot) = place(&[("SHUTDOWN_TIMEOUT_S", "0")]).await;
    let discord = &p.stage.discord;
    let slow = clew_simulator::FaultKind::Latency(Duration::from_millis(700));
    discord.fault(clew_simulator::Fault::new(
        "POST",
        "/channels/*/threads",
        slow,
    ));
    let task = json!({"task": "count the pumps"});
    let called = discord
        .call(p.ada, p.channel, "agent run", task)
        .await
        .unwrap();
    discord
        .wait_request("POST", "/channels/*/threads", 1)
        .await
        .unwrap();
    let done = bot.stop().await;
    let told = called.answer().await.unwrap().text();
    let thread = told.trim_start_matches("Started: <#").trim_end_matches('>');
    let run = p.standing(Id(thread.parse().unwrap()), 0);
    p.ended(run, "interrupted").await;
    assert_eq!(ends(&done), ["interrupted"]);
    assert_eq!(p.stage.model.requests().len(), 0);
}

/// A run that begins while a turn is waited for counts with it: more may be left over than ran
/// when the process was told to end.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_begins_during_the_last_wait_counts_too() {
    let (p, bot) = place(&[("SHUTDOWN_TIMEOUT_S", "1.5")]).await;
    let discord = &p.stage.discord;
    let slow = |method: &str, path: &str, ms| {
        let latency = clew_simulator::FaultKind::Latency(Duration::from_millis(ms));
        discord.fault(clew_simulator::Fault::new(method, path, latency));
    };
    slow("POST", "/channels/*/threads", 700);
    // The run's last words are still on their way when the wait is over.
    slow("PATCH", "/channels/*/messages/*", 2_000);
    let _gate = p.hold("never said");
    let question = format!("<@{}> how many pumps?", p.us);
    discord.post(p.channel, p.boris, question.as_str());
    p.stage.model.wait_requests(1).await;
    let task = json!({"task": "count the pumps"});
    let _called = discord
        .call(p.ada, p.channel, "agent run", task)
        .await
        .unwrap();
    discord
        .wait_request("POST", "/channels/*/threads", 1)
        .await
        .unwrap();
    let done = bot.stop().await;
    let stopping = details(&done, "stopping").remove(0);
    assert_eq!(stopping["drained"], 0, "{stopping}");
    assert_eq!(stopping["abandoned"], 2, "{stopping}");
}
