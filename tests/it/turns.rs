//! Whole turns over sockets: what a person sees, what the model gets, what
//! the telemetry says.

use clew::simulator::{ChannelKind, Draft, World};

use crate::support::bot::{Stage, details, prompt};

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_in_a_thread_is_answered_with_its_context() {
    let mut world = World::new();
    let guild = world.guild("Works");
    let help = world.channel(guild, ChannelKind::Text, "help");
    let ada = world.member(guild, "Ada");
    let boris = world.member(guild, "Boris");
    let start = world.seed(help, ada, "the pump is leaking");
    let thread = world.thread_from(help, start, "pump failure", ada);
    for count in 0..120 {
        world.seed(thread, boris, format!("reading {count}"));
    }
    let stage = Stage::new(world, &[]).await;
    let bot = stage.start().await;
    stage.discord.clear_requests();
    let us = stage.discord.bot();
    stage
        .discord
        .post(thread, ada, format!("<@{us}> what is it about?"));
    let answers = stage.discord.wait_answers(thread, 1).await.unwrap();
    assert_eq!(answers[0].content, "ok");
    let gets = stage.discord.requests_to("GET", "/channels");
    assert_eq!(gets.len(), 2, "{gets:?}");
    let requests = stage.model.requests();
    let text = prompt(&requests[0]);
    assert!(
        text.contains("the pump is leaking") && text.contains("reading 119"),
        "{text}"
    );
    assert!(text.contains("Thread \"pump failure\" in #help"), "{text}");
    let lines = bot.stop().await;
    let collected = details(&lines, "collect_ok");
    assert_eq!(collected.len(), 1);
    assert_eq!(collected[0]["msgs"], 40);
    let _ = Draft::new("");
}
