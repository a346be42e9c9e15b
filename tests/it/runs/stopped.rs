//! Who sees runs and who stops them, and what else ends one.

use clew_simulator::{ChannelKind, Fault, Id, OverwriteOf, Permissions, Shown};
use serde_json::json;

use super::{Place, Standing, ends, place};
use crate::support::model::Gate;

const STOPPING: &str = "Stopping it.";
const NOT_YOURS: &str = "-# Only whoever gave me a task, or has Manage Messages, can stop it.";

/// A run of Ada's that waits for the model.
async fn running(p: &Place) -> (Standing, Gate) {
    running_of(p, p.ada).await
}

async fn running_of(p: &Place, who: Id) -> (Standing, Gate) {
    let requests = p.stage.model.requests().len();
    let gate = p.hold("never said");
    let run = p.begin(who, "count the pumps").await;
    p.stage.model.wait_requests(requests + 1).await;
    (run, gate)
}

async fn press(p: &Place, who: Id, run: Standing) -> Shown {
    let pressed = p.stage.discord.press(who, run.message, "Stop");
    let shown = pressed.answer().await.unwrap();
    assert!(shown.ephemeral && shown.message != run.message);
    shown
}

#[tokio::test(flavor = "multi_thread")]
async fn the_button_is_for_the_asker_and_moderators() {
    let (p, bot) = place(&[]).await;
    for who in [p.ada, p.maria] {
        let (run, _gate) = running(&p).await;
        assert_eq!(press(&p, p.boris, run).await.text(), NOT_YOURS);
        assert_eq!(press(&p, who, run).await.text(), STOPPING);
        p.ended(run, "stopped.").await;
        assert_eq!(p.texts(run.channel).len(), 1, "nothing is said");
        p.idle().await;
    }
    p.stage.model.wait_ended(2).await;
    let lines = bot.stop().await;
    assert_eq!(ends(&lines), ["stopped", "stopped"]);
}

/// A button of a run that is over, or of another process, does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_over_cannot_be_stopped() {
    let (p, bot) = place(&[]).await;
    let (run, gate) = running(&p).await;
    let again = clew_simulator::Use::Component {
        message: run.message,
        custom_id: "stop-run:1".to_owned(),
        values: Vec::new(),
    };
    let pressed = p.stage.discord.interact(run.channel, p.ada, &again);
    let says = |message: &clew_simulator::Message| message.content == "-# This task is over.";
    p.stage
        .discord
        .wait_interaction(pressed, says)
        .await
        .unwrap();
    gate.open();
    p.ended(run, "done").await;
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_stops_the_run_here_or_the_one_that_is_named() {
    let (p, bot) = place(&[]).await;
    let stop = |who, channel, options| p.call(who, channel, "agent stop", options);
    let none = stop(p.ada, p.channel, json!({})).await;
    assert_eq!(none.text(), "-# No task here that you may stop.");
    let (first, _gate) = running(&p).await;
    let (second, _other) = running_of(&p, p.maria).await;
    assert_eq!(
        stop(p.boris, first.channel, json!({})).await.text(),
        none.text()
    );
    let several = stop(p.maria, p.channel, json!({})).await;
    assert_eq!(
        several.text(),
        "-# There are several tasks. Pick one from the list."
    );
    let proposed = |who| {
        p.stage
            .discord
            .complete(who, p.channel, "agent stop", "run", "pumps")
    };
    assert_eq!(proposed(p.boris).await.unwrap(), []);
    assert_eq!(proposed(p.maria).await.unwrap().len(), 2);
    let choices = proposed(p.ada).await.unwrap();
    assert!(choices[0].0.starts_with("count the pumps ("), "{choices:?}");
    let named = json!({"run": choices[0].1});
    assert_eq!(
        stop(p.boris, p.channel, named.clone()).await.text(),
        NOT_YOURS
    );
    assert_eq!(stop(p.ada, p.channel, named.clone()).await.text(), STOPPING);
    p.ended(first, "stopped.").await;
    let mut told = STOPPING.to_owned();
    while told == STOPPING {
        told = stop(p.ada, p.channel, named.clone()).await.text();
    }
    assert_eq!(told, "-# No such task. It may be over.");
    assert_eq!(
        stop(p.maria, second.channel, json!({})).await.text(),
        STOPPING
    );
    p.ended(second, "stopped.").await;
    bot.stop().await;
}

/// Only whoever may read there is told of a run, and its asker.
#[tokio::test(flavor = "multi_thread")]
async fn status_is_for_those_who_may_read_there() {
    let (p, bot) = place(&[]).await;
    let elsewhere = p
        .stage
        .discord
        .channel(p.guild, ChannelKind::Text, "elsewhere");
    p.stage.discord.settled().await.unwrap();
    let (run, gate) = running(&p).await;
    let hidden = Permissions::VIEW_CHANNEL;
    for who in [p.boris, p.ada] {
        p.stage.discord.overwrite(
            p.channel,
            OverwriteOf::Member(who),
            Permissions::NONE,
            hidden,
        );
    }
    p.stage.discord.settled().await.unwrap();
    let status = |who, channel| p.call(who, channel, "agent status", json!({}));
    let shown = status(p.maria, elsewhere).await.text();
    let link = format!(
        "https://discord.com/channels/{}/{}/{} for <@{}>, agent `default`, since <t:",
        p.guild, run.channel, run.message, p.ada
    );
    assert!(
        shown.starts_with(&format!("- {link}")) && shown.ends_with(":R>, step 1"),
        "{shown}"
    );
    assert_eq!(status(p.boris, elsewhere).await.text(), "No tasks running.");
    let named = p
        .stage
        .discord
        .complete(p.maria, elsewhere, "agent stop", "run", "")
        .await;
    assert_eq!(named.unwrap(), [], "she moderates, but not from there");
    assert_eq!(
        status(p.ada, elsewhere).await.text(),
        shown,
        "it is her own"
    );
    let direct = p.stage.discord.world(|world| world.direct(p.ada));
    assert_eq!(
        status(p.ada, direct).await.text(),
        "No tasks running.",
        "not of that place"
    );
    gate.open();
    p.ended(run, "done").await;
    bot.stop().await;
}

/// Its thread is still being made.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_asker_leaves_as_it_begins_ends_at_once() {
    let (p, bot) = place(&[("DISCORD_MEMBERS_INTENT", "true")]).await;
    let discord = &p.stage.discord;
    let (held, gate) = Fault::held("POST", "/threads");
    discord.fault(held.once());
    let task = json!({"task": "count the pumps"});
    let called = discord
        .call(p.ada, p.channel, "agent run", task)
        .await
        .unwrap();
    discord.wait_request("POST", "/threads", 1).await.unwrap();
    discord.leave(p.guild, p.ada);
    discord.settled().await.unwrap();
    gate.open();
    called.answer().await.unwrap();
    discord.join(p.guild, p.ada);
    p.idle().await;
    assert_eq!(ends(&bot.stop().await), ["stopped"]);
    assert_eq!(p.stage.model.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_with_its_message_its_thread_and_its_asker() {
    // Discord tells who leaves only with this intent.
    let (p, bot) = place(&[("DISCORD_MEMBERS_INTENT", "true")]).await;
    let discord = &p.stage.discord;
    let mut gates = Vec::new();
    for end in 0..4 {
        let (run, gate) = running(&p).await;
        gates.push(gate);
        match end {
            0 => assert!(discord.delete(run.channel, run.message)),
            1 => discord.delete_channel(run.channel),
            2 => discord.leave(p.guild, p.ada),
            _ => {
                discord.join(p.guild, p.ada);
                discord.kick_bot(p.guild);
            }
        }
        p.stage.model.wait_ended(end + 1).await;
        if end == 2 {
            p.ended(run, "stopped.").await;
            discord.join(p.guild, p.ada);
        }
        if end < 3 {
            p.idle().await;
        }
    }
    let lines = bot.stop().await;
    assert_eq!(ends(&lines), ["stopped"; 4]);
}
