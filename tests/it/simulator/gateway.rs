//! Gateway: greeting, dispatch, resume, compression, intents, close codes.

use std::time::Duration;

use clew::simulator::{ChannelKind, Draft, GatewayEvent, Simulator, Use};
use serde_json::json;
use twilight_gateway::{
    CloseFrame, ConfigBuilder, EventTypeFlags, Intents, Session, Shard, ShardId, StreamExt as _,
};
use twilight_model::gateway::event::Event;

use super::{Rest, Small, all_intents, greeted, shard, small, until};

#[tokio::test]
async fn a_shard_is_greeted_and_hears_of_messages_compressed() {
    let Small {
        world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let bot = world.bot;
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents());
    let ready = until(&mut shard, |event| matches!(event, Event::Ready(_))).await;
    let Event::Ready(ready) = ready else {
        unreachable!()
    };
    assert_eq!(ready.user.id.get(), bot.0);
    assert_eq!(ready.resume_gateway_url, simulator.gateway_url());
    let Event::GuildCreate(created) =
        until(&mut shard, |e| matches!(e, Event::GuildCreate(_))).await
    else {
        unreachable!()
    };
    assert_eq!(created.id().get(), guild.0);
    simulator.wait_ready().await.unwrap();
    let id = simulator.post(channel, alice, format!("<@{bot}> hello"));
    let Event::MessageCreate(message) =
        until(&mut shard, |e| matches!(e, Event::MessageCreate(_))).await
    else {
        unreachable!()
    };
    assert_eq!(message.id.get(), id.0);
    assert_eq!(message.mentions[0].id.get(), bot.0);
    assert!(message.mentions[0].member.is_some());
    assert!(message.member.is_some());
    assert!(
        simulator
            .gateway_log()
            .iter()
            .any(|record| { record.event == GatewayEvent::Opened { compressed: true } })
    );
}
