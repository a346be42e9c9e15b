//! Where to connect, and that reads do not wait for posts. The results of reads are tested in `clew-context`.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::time::Duration;

use clew_context::collect::PageCursor;
use clew_context::model::{self, ChannelId, GuildId, MessageId};
use clew_discord::guild_state::GuildState;
use clew_discord::rest::Rest;
use clew_simulator::{ChannelKind, Fault, Id, Simulator};
use tokio::time::Instant;

use crate::simulator::{Small, small};

pub(super) fn channel_id(id: Id) -> ChannelId {
    ChannelId::new(id.0)
}

pub(super) fn message_id(id: Id) -> MessageId {
    MessageId::new(id.0)
}

pub(super) fn in_seconds(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

/// A deadline that only a hanging request reaches.
pub(super) fn patient() -> Instant {
    in_seconds(20)
}

pub(super) fn rest(simulator: &Simulator) -> Rest {
    Rest::new(&simulator.token(), Some(&simulator.url())).unwrap()
}

/// A simulator whose channel holds `count` messages of alice.
async fn filled(count: usize) -> (Simulator, Small, Vec<Id>) {
    let mut small = small();
    let seeded = (0..count)
        .map(|n| {
            small
                .world
                .seed(small.channel, small.alice, format!("m{n}"))
        })
        .collect();
    let world = std::mem::take(&mut small.world);
    let simulator = Simulator::start(world).await.unwrap();
    (simulator, small, seeded)
}

/// Also in an announcement channel, whose threads are of a kind of their own. It is known
/// before the gateway tells of it.
#[tokio::test]
async fn a_thread_is_started_once_and_known_at_once() {
    let mut small = small();
    let news = small
        .world
        .channel(small.guild, ChannelKind::Announcement, "news");
    let world = std::mem::take(&mut small.world);
    let simulator = Simulator::start(world).await.unwrap();
    let (rest, guild_state) = (rest(&simulator), GuildState::default());
    let guild = GuildId::new(small.guild.0);
    guild_state.apply(
        "CHANNEL_CREATE",
        &format!(r#"{{"id":"{news}","guild_id":"{guild}","type":5,"name":"news"}}"#),
    );
    for (parent, kind) in [
        (small.channel, model::ChannelKind::PublicThread),
        (news, model::ChannelKind::AnnouncementThread),
    ] {
        let parent = channel_id(parent);
        let started = guild_state.start_thread(&rest, guild, parent, "pumps", patient());
        let thread = started.await.unwrap();
        assert_eq!(
            guild_state.kind_and_parent(thread),
            Some((kind, Some(parent)))
        );
        assert_eq!(guild_state.channel_name(thread).as_deref(), Some("pumps"));
    }
    let threads = "/channels/*/threads";
    simulator.fault(Fault::status("POST", threads, 500, 0, "down"));
    let channel = channel_id(small.channel);
    let refused = guild_state.start_thread(&rest, guild, channel, "pumps", patient());
    assert!(refused.await.unwrap_err().transient);
    assert_eq!(simulator.requests_to("POST", threads).len(), 3);
}

#[tokio::test]
async fn the_gateways_address_is_asked_for_at_the_start() {
    let (simulator, ..) = filled(0).await;
    let rest = rest(&simulator);
    let gateway = rest.gateway(patient()).await.unwrap();
    assert!(
        gateway.url.starts_with("ws://127.0.0.1:"),
        "{}",
        gateway.url
    );
    assert!(gateway.shards >= 1);
}

#[tokio::test]
async fn a_page_a_starter_and_typing_do_not_wait_for_each_other() {
    let (simulator, small, ids) = filled(3).await;
    simulator.set_latency(Duration::from_millis(200));
    let rest = rest(&simulator);
    let channel = channel_id(small.channel);
    let (page, starter, typing) = tokio::join!(
        rest.reader().page(
            channel,
            PageCursor::Before(message_id(ids[2])),
            9,
            patient()
        ),
        rest.reader()
            .message(channel, message_id(ids[0]), patient()),
        rest.typing(channel, patient()),
    );
    page.unwrap();
    starter.unwrap();
    typing.unwrap();
    let most = simulator
        .requests()
        .iter()
        .map(|request| request.in_flight)
        .max();
    assert_eq!(most, Some(3));
}
