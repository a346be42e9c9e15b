//! Where a run stands: in a thread of its own, or where it was asked for.

use clew_simulator::{ChannelKind, Draft, Fault, Id, OverwriteOf, Permissions};
use serde_json::{Value, json};

use super::{Place, ends, place, unstarted};
use crate::support::bot::{details, prompt};
use crate::support::model::Behaviour;

const IN_PLACE: &str = "Started. I'll answer here.";

#[tokio::test(flavor = "multi_thread")]
async fn a_run_has_a_thread_and_one_message_that_is_edited() {
    let (p, bot) = place(&[]).await;
    let gate = p.hold("There are nine.");
    let task = "count  the\npumps @everyone";
    let run = p.begin(p.ada, task).await;
    p.stage.model.wait_requests(1).await;
    let thread = p
        .stage
        .discord
        .world(|world| world.get_channel(run.channel).unwrap().clone());
    assert_eq!(thread.name, "count the pumps @everyone");
    assert_eq!(
        (thread.kind, thread.parent),
        (ChannelKind::PublicThread, Some(p.channel))
    );
    let shown = p.stage.discord.answers(run.channel).remove(0);
    let expected = format!(
        "-# Agent run for <@{}>: at work.\n> count the pumps @everyone",
        p.ada
    );
    assert_eq!(shown.content, expected);
    assert_eq!((shown.mentions.len(), shown.mention_everyone), (0, false));
    assert_eq!(shown.components[0]["components"][0]["label"], "Stop");
    gate.open();
    let shown = p.ended(run, "done").await;
    assert_eq!(shown.content, expected.replace("at work", "done"));
    let answers = p.stage.discord.answers(run.channel);
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[1].content, "There are nine.");
    assert_eq!(
        answers[1].edited_ms, None,
        "it is posted when it is complete"
    );
    assert_eq!(
        answers[1].reference.as_ref().unwrap().message,
        Some(run.message)
    );
    assert!(answers[1].mentions.is_empty());
    assert_eq!(p.stage.discord.requests_to("POST", "/typing").len(), 0);
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "run_done")[0]["rounds"], 1);
    let commands = details(&lines, "answered");
    assert_eq!(
        (&commands[0]["command"], &commands[0]["outcome"]),
        (&json!("agent_run"), &json!("done"))
    );
}

/// No permission of ours or of the caller's, no thread within a thread, a forum's post, a
/// direct message.
#[tokio::test(flavor = "multi_thread")]
async fn where_no_thread_can_be_made_a_run_stands_where_it_was_asked_for() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let create = Permissions::CREATE_PUBLIC_THREADS;
    let denied = |of| {
        let channel = discord.channel(p.guild, ChannelKind::Text, "apart");
        discord.overwrite(channel, of, Permissions::NONE, create);
        channel
    };
    let forum = discord.channel(p.guild, ChannelKind::Forum, "ideas");
    let anchor = discord.seed(p.channel, p.ada, "the pump leaks");
    let places = [
        denied(OverwriteOf::Member(p.us)),
        denied(OverwriteOf::Member(p.ada)),
        discord.thread_from(p.channel, anchor, "pump", p.ada),
        discord.forum_post(forum, p.ada, "idea", &[], Draft::new("a bigger pump")),
        discord.channel(p.guild, ChannelKind::Voice, "talk"),
        discord.world(|world| world.direct(p.ada)),
    ];
    discord.settled().await.unwrap();
    for channel in places {
        stands_in_place(&p, channel).await;
    }
    assert_eq!(
        discord.requests_to("POST", "/threads").len(),
        0,
        "none was tried"
    );
    let lines = bot.stop().await;
    assert_eq!(ends(&lines), ["done"; 6]);
}

async fn stands_in_place(p: &Place, channel: Id) {
    let before = p.texts(channel).len();
    p.stage.model.script(Behaviour::text(&["nine"]));
    assert_eq!(
        p.told(p.ada, channel, "count the pumps").await,
        IN_PLACE,
        "{channel}"
    );
    p.ended(p.standing(channel, before), "done").await;
    assert_eq!(p.texts(channel)[before + 1], "nine");
    let text = prompt(p.stage.model.requests().last().unwrap());
    assert!(
        !text.contains("leaks") && !text.contains("bigger"),
        "{text}"
    );
    p.idle().await;
}

/// Discord refuses what should have worked, or does not answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_that_is_refused_costs_only_the_thread() {
    let (p, bot) = place(&[]).await;
    let threads = "/channels/*/threads";
    p.stage.discord.fault(Fault::status(
        "POST",
        threads,
        400,
        160_006,
        "Too many threads",
    ));
    assert_eq!(p.told(p.ada, p.channel, "count the pumps").await, IN_PLACE);
    p.ended(p.standing(p.channel, 0), "done").await;
    assert_eq!(
        p.stage.discord.requests_to("POST", "/threads").len(),
        1,
        "it is sent once"
    );
    bot.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_we_may_not_write_a_run_does_not_begin() {
    let (p, bot) = place(&[]).await;
    let discord = &p.stage.discord;
    let mute = Permissions::SEND_MESSAGES | Permissions::SEND_MESSAGES_IN_THREADS;
    discord.overwrite(
        p.channel,
        OverwriteOf::Member(p.us),
        Permissions::NONE,
        mute,
    );
    discord.settled().await.unwrap();
    let told = p.told(p.ada, p.channel, "count the pumps").await;
    assert_eq!(told, "-# I can't write in this channel.");
    let direct = discord.world(|world| world.direct(p.ada));
    discord.fault(Fault::status("POST", "/channels/*/messages", 403, 50_007, "Cannot send").once());
    let told = p.told(p.ada, direct, "count the pumps").await;
    assert_eq!(told, "-# I can't write here, so I didn't start.");
    // Neither keeps its place.
    assert_eq!(p.told(p.ada, direct, "count the pumps").await, IN_PLACE);
    p.ended(p.standing(direct, 0), "done").await;
    let lines = bot.stop().await;
    let outcomes: Vec<Value> = details(&lines, "answered")
        .iter()
        .map(|one| one["outcome"].clone())
        .collect();
    assert_eq!(outcomes[..2], [json!("refused"), json!("failed")]);
    assert_eq!(p.stage.model.requests().len(), 1);
}

/// An announcement channel has threads of its own kind.
#[tokio::test(flavor = "multi_thread")]
async fn announcement_channels_have_threads_too() {
    let (p, bot) = place(&[]).await;
    let news = p
        .stage
        .discord
        .channel(p.guild, ChannelKind::Announcement, "news");
    p.stage.discord.settled().await.unwrap();
    let told = p.told(p.ada, news, "count the pumps").await;
    assert!(told.starts_with("Started: <#"), "{told}");
    p.idle().await;
    bot.stop().await;
}

/// A named agent does the run with its own prompt; agents for other channels are neither
/// proposed nor called.
#[tokio::test(flavor = "multi_thread")]
async fn the_agent_that_is_named_does_it() {
    let p = unstarted(&[]).await;
    let folder = p.stage.folder.path().join("agents");
    for (name, channels) in [
        ("poet", json!([])),
        ("staff", json!(["1"])),
        ("plumber", json!([p.channel.to_string()])),
    ] {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let agent = json!({"system_prompt": format!("I am the {name}."), "channels": channels});
        std::fs::write(folder.join("agent.json"), agent.to_string()).unwrap();
    }
    let bot = p.stage.start().await;
    let discord = &p.stage.discord;
    let proposed = discord
        .complete(p.ada, p.channel, "agent run", "agent", "")
        .await;
    let names: Vec<String> = proposed
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["default", "plumber", "poet"]);
    for (agent, expected) in [(None, "plumber"), (Some("poet"), "poet")] {
        let mut options = json!({"task": "write"});
        if let Some(agent) = agent {
            options["agent"] = json!(agent);
        }
        p.call(p.ada, p.channel, "agent run", options).await;
        p.idle().await;
        let text = prompt(p.stage.model.requests().last().unwrap());
        assert!(text.starts_with(&format!("I am the {expected}.")), "{text}");
    }
    let options = json!({"task": "write", "agent": "staff"});
    let told = p.call(p.ada, p.channel, "agent run", options).await;
    assert_eq!(told.text(), "-# No such agent here.");
    bot.stop().await;
}

/// The words of who opted out do not become a title.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_opted_out_gets_a_thread_without_their_words() {
    let (p, bot) = place(&[]).await;
    let asked = p.call(p.ada, p.channel, "privacy opt-out", json!({})).await;
    p.stage
        .discord
        .press(p.ada, asked.message, "Opt out and erase")
        .answer()
        .await
        .unwrap();
    let run = p.begin(p.ada, "count the pumps").await;
    let name = p
        .stage
        .discord
        .world(|world| world.get_channel(run.channel).unwrap().name.clone());
    assert_eq!(name, "Agent run");
    p.idle().await;
    let lines = bot.stop().await;
    assert_eq!(details(&lines, "recorded").len(), 0);
}
