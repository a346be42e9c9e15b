//! Gateway: greeting, dispatch, resume, compression, intents, close codes.

use std::cell::RefCell;
use std::collections::BTreeSet;

use clew_simulator::{ChannelKind, Draft, GatewayEvent, Id, OverwriteOf, Permissions, Simulator};
use serde_json::json;
use twilight_gateway::{
    CloseFrame, ConfigBuilder, EventTypeFlags, Intents, Session, Shard, ShardId, StreamExt as _,
};
use twilight_model::gateway::event::Event;
use twilight_model::gateway::payload::incoming::MessageCreate;

use super::messages::messages_of_every_kind;
use crate::support::{Rest, Small, all_intents, greeted, shard, small, until};

pub(crate) async fn next_message(shard: &mut Shard) -> MessageCreate {
    match until(shard, |event| matches!(event, Event::MessageCreate(_))).await {
        Event::MessageCreate(message) => *message,
        other => panic!("{other:?}"),
    }
}

/// Reads in the background until the shard ends, so that heartbeats are answered.
fn drive(mut shard: Shard) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { while shard.next_event(EventTypeFlags::all()).await.is_some() {} })
}

#[tokio::test]
async fn a_shard_is_greeted_and_receives_compressed_messages() {
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
    let created = until(&mut shard, |event| matches!(event, Event::GuildCreate(_))).await;
    let Event::GuildCreate(created) = created else {
        unreachable!()
    };
    assert_eq!(created.id().get(), guild.0);
    simulator.wait_ready().await.unwrap();
    let id = simulator.post(channel, alice, format!("<@{bot}> hello"));
    let message = next_message(&mut shard).await;
    assert_eq!(message.id.get(), id.0);
    assert_eq!(message.mentions[0].id.get(), bot.0);
    assert!(message.mentions[0].member.is_some() && message.member.is_some());
    let opened = GatewayEvent::Opened { compressed: true };
    assert!(
        simulator
            .gateway_log()
            .iter()
            .any(|record| record.event == opened)
    );
}

/// Every live action except interactions, once.
fn act_in_every_way(simulator: &Simulator, guild: Id, channel: Id, forum: Id, people: [Id; 2]) {
    let [alice, bob] = people;
    let bot = simulator.bot();
    let anchor = simulator.post(channel, alice, "anchor");
    let thread = simulator.thread_from(channel, anchor, "Talk", alice);
    simulator.post(
        thread,
        bob,
        Draft::new("reply").attachment(clew_simulator::File::text("a", "b")),
    );
    simulator.thread(channel, ChannelKind::PublicThread, "Apart", alice);
    let secret = simulator.thread(channel, ChannelKind::PrivateThread, "Secret", alice);
    simulator.join_thread(secret, bot);
    simulator.leave_thread(secret, bot);
    simulator.forum_post(forum, bob, "New", &[], "new");
    simulator.set_archived(thread, true, true);
    simulator.rename(channel, "renamed");
    simulator.edit(channel, anchor, "edited");
    simulator.unfurl(channel, anchor, json!({"title": "link"}));
    simulator.pin(channel, anchor, alice);
    simulator.react(channel, anchor, "👍", alice);
    simulator.type_in(channel, alice);
    simulator.delete(channel, anchor);
    let more: Vec<_> = (0..3).map(|_| simulator.post(channel, bob, "x")).collect();
    simulator.bulk_delete(channel, &more);
    let made = simulator.channel(guild, ChannelKind::Text, "made");
    simulator.overwrite(
        made,
        OverwriteOf::Member(bot),
        Permissions::NONE,
        Permissions::SEND_MESSAGES,
    );
    simulator.delete_channel(made);
    let role = simulator.role(guild, "role", Permissions::NONE);
    simulator.set_role(guild, alice, role, true);
    simulator.set_role_permissions(guild, role, Permissions::MANAGE_GUILD);
    simulator.delete_role(guild, role);
    simulator.leave(guild, bob);
    simulator.join(guild, bob);
    simulator.set_outage(guild, true);
    simulator.set_outage(guild, false);
}

#[tokio::test]
async fn every_event_parses_and_the_client_acknowledges_it() {
    let mut small = small();
    messages_of_every_kind(&mut small);
    let Small {
        mut world,
        guild,
        channel,
        alice,
        bob,
    } = small;
    let forum = world.channel(guild, ChannelKind::Forum, "help");
    let tag = world.tag(forum, "rust");
    for kind in [
        ChannelKind::Voice,
        ChannelKind::Category,
        ChannelKind::Announcement,
        ChannelKind::Media,
    ] {
        world.channel(guild, kind, "more");
    }
    world.forum_post(forum, alice, "Old", &[tag], "old");
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(
        &simulator,
        all_intents() | Intents::DIRECT_MESSAGE_REACTIONS,
    );
    greeted(&mut shard).await;

    act_in_every_way(&simulator, guild, channel, forum, [alice, bob]);
    let direct = simulator.world(|world| world.direct(alice));
    let last = simulator.post(direct, alice, "direct");

    let seen = RefCell::new(BTreeSet::new());
    let read = until(&mut shard, |event| {
        seen.borrow_mut().extend(event.kind().name());
        matches!(event, Event::MessageCreate(message) if message.id.get() == last.0)
    });
    let Event::MessageCreate(message) = read.await else {
        unreachable!()
    };
    assert_eq!((message.guild_id, message.member.is_none()), (None, true));
    let expected = [
        "CHANNEL_CREATE",
        "CHANNEL_DELETE",
        "CHANNEL_PINS_UPDATE",
        "CHANNEL_UPDATE",
        "GUILD_CREATE",
        "GUILD_DELETE",
        "GUILD_MEMBER_ADD",
        "GUILD_MEMBER_REMOVE",
        "GUILD_MEMBER_UPDATE",
        "GUILD_ROLE_CREATE",
        "GUILD_ROLE_DELETE",
        "GUILD_ROLE_UPDATE",
        "MESSAGE_CREATE",
        "MESSAGE_DELETE",
        "MESSAGE_DELETE_BULK",
        "MESSAGE_REACTION_ADD",
        "MESSAGE_UPDATE",
        "THREAD_CREATE",
        "THREAD_MEMBERS_UPDATE",
        "THREAD_UPDATE",
        "TYPING_START",
    ];
    assert_eq!(seen.into_inner().into_iter().collect::<Vec<_>>(), expected);
    let driver = drive(shard);
    simulator.settled().await.unwrap();
    driver.abort();
}

#[tokio::test]
async fn a_dropped_connection_is_resumed_and_missed_events_are_replayed() {
    let Small {
        world,
        channel,
        alice,
        ..
    } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents());
    greeted(&mut shard).await;
    for fault in [Simulator::drop_gateway, |s: &Simulator| {
        s.close_gateway(4000);
    }] {
        fault(&simulator);
        let missed: Vec<u64> = (0..3)
            .map(|n| simulator.post(channel, alice, format!("{n}")).0)
            .collect();
        let mut read = Vec::new();
        for _ in 0..3 {
            read.push(next_message(&mut shard).await.id.get());
        }
        assert_eq!(read, missed);
        until(&mut shard, |event| matches!(event, Event::Resumed)).await;
    }
    let log = simulator.gateway_log();
    let resumes = log.iter().filter_map(|record| match &record.event {
        GatewayEvent::Resumed { replayed, .. } => Some(*replayed),
        _ => None,
    });
    assert_eq!(resumes.collect::<Vec<_>>(), [3, 3]);
}

#[tokio::test]
async fn the_client_obeys_reconnect_and_invalid_session() {
    let Small {
        world,
        channel,
        alice,
        ..
    } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents());
    greeted(&mut shard).await;
    for ask in [Simulator::ask_to_reconnect, |s: &Simulator| {
        s.invalidate_sessions(true);
    }] {
        ask(&simulator);
        until(&mut shard, |event| matches!(event, Event::Resumed)).await;
    }
    simulator.invalidate_sessions(false);
    simulator.post(channel, alice, "lost");
    greeted(&mut shard).await;
    let kept = simulator.post(channel, alice, "kept");
    assert_eq!(next_message(&mut shard).await.id.get(), kept.0);

    simulator.refuse_resumes(1);
    simulator.drop_gateway();
    greeted(&mut shard).await;
    let identifies = simulator
        .gateway_log()
        .into_iter()
        .filter(|record| matches!(record.event, GatewayEvent::Identified { .. }));
    assert_eq!(identifies.count(), 3);
}

#[tokio::test]
async fn a_new_process_resumes_an_old_session_unless_it_was_ended() {
    for (frame, resumable) in [(CloseFrame::RESUME, true), (CloseFrame::NORMAL, false)] {
        let Small {
            world,
            channel,
            alice,
            ..
        } = small();
        let simulator = Simulator::start(world).await.unwrap();
        let mut old = shard(&simulator, all_intents());
        greeted(&mut old).await;
        let session = old.session().unwrap().clone();
        old.close(frame);
        until(&mut old, |event| matches!(event, Event::GatewayClose(_))).await;
        simulator
            .wait_gateway("the close", |e| {
                matches!(e, GatewayEvent::ClosedByClient { .. })
            })
            .await
            .unwrap();
        let missed = simulator.post(channel, alice, "missed");
        let session = Session::new(session.sequence(), session.id().to_owned());
        let config = ConfigBuilder::new(simulator.token(), all_intents())
            .proxy_url(simulator.gateway_url())
            .queue(crate::support::no_queue())
            .session(session)
            .resume_url(simulator.gateway_url())
            .build();
        let mut new = Shard::with_config(ShardId::ONE, config);
        if resumable {
            assert_eq!(next_message(&mut new).await.id.get(), missed.0);
        } else {
            until(&mut new, |event| matches!(event, Event::Ready(_))).await;
        }
    }
}

#[tokio::test]
async fn refused_identifies_close_with_their_code() {
    for (token, intents, code) in [
        ("wrong", all_intents(), 4004),
        ("", all_intents(), 4014),
        ("", Intents::from_bits_retain(1 << 40), 4013),
    ] {
        let mut world = small().world;
        world.settings.disallowed_intents = Intents::MESSAGE_CONTENT.bits();
        let simulator = Simulator::start(world).await.unwrap();
        crate::support::install_crypto();
        let token = if token.is_empty() {
            simulator.token()
        } else {
            token.to_owned()
        };
        let config = ConfigBuilder::new(token, intents)
            .proxy_url(simulator.gateway_url())
            .build();
        let mut shard = Shard::with_config(ShardId::ONE, config);
        while shard.next_event(EventTypeFlags::all()).await.is_some() {}
        let closed = GatewayEvent::ClosedByServer { code: Some(code) };
        assert_eq!(simulator.gateway_log().pop().unwrap().event, closed);
    }
}

#[tokio::test]
async fn content_is_blank_without_its_intent() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let bot = world.bot;
    let direct = world.direct(alice);
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents() - Intents::MESSAGE_CONTENT);
    greeted(&mut shard).await;
    let seen = format!("<@{bot}> seen");
    let target = simulator.post(
        channel,
        alice,
        Draft::new("unseen").embed(json!({"title": "t"})),
    );
    simulator.post(channel, alice, seen.clone());
    simulator.post(direct, alice, "direct");
    simulator.post(channel, bot, "own");
    simulator.post(channel, alice, Draft::new(seen.clone()).reply_to(target));
    for expected in ["", &seen, "direct", "own"] {
        let message = next_message(&mut shard).await;
        assert_eq!(message.content, expected);
        assert!(message.embeds.is_empty());
    }
    let reply = next_message(&mut shard).await;
    assert_eq!(reply.content, seen);
    assert_eq!(reply.referenced_message.as_ref().unwrap().content, "");
}

#[tokio::test]
async fn rest_is_blank_too_where_the_portal_forbids_content() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    world.seed(channel, alice, "unseen");
    world.settings.disallowed_intents = Intents::MESSAGE_CONTENT.bits();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let page = rest.get(&format!("/channels/{channel}/messages")).await;
    assert_eq!(page[0]["content"], "");
    let flags = rest.get("/applications/@me").await["flags"]
        .as_u64()
        .unwrap();
    assert_eq!(flags & (1 << 19), 0);
}

#[tokio::test]
async fn the_bot_receives_no_events_of_channels_it_cannot_view() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    let hidden = world.channel(guild, ChannelKind::Text, "hidden");
    world.deny_everyone(hidden, Permissions::VIEW_CHANNEL);
    let secret = world.thread(channel, ChannelKind::PrivateThread, "Secret", alice);
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents());
    greeted(&mut shard).await;
    simulator.post(hidden, alice, "unheard");
    simulator.post(secret, alice, "unheard");
    let heard = simulator.post(channel, alice, "heard");
    assert_eq!(next_message(&mut shard).await.id.get(), heard.0);
}

#[tokio::test]
async fn unanswered_heartbeats_make_the_client_reconnect() {
    let mut world = small().world;
    world.settings.heartbeat_interval_ms = 50;
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents());
    greeted(&mut shard).await;
    simulator.set_heartbeats_answered(false);
    until(&mut shard, |event| matches!(event, Event::GatewayClose(_))).await;
    simulator.set_heartbeats_answered(true);
    until(&mut shard, |event| matches!(event, Event::Resumed)).await;
}

#[tokio::test]
async fn raw_events_arrive_as_they_are() {
    let Small {
        world,
        channel,
        alice,
        ..
    } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let mut shard = shard(&simulator, all_intents());
    greeted(&mut shard).await;
    simulator.dispatch_raw("MESSAGE_CREATE", r#"{"id":"1","type":"text"}"#);
    let mut unreadable = 0;
    let after = simulator.post(channel, alice, "after");
    loop {
        match shard.next_event(EventTypeFlags::all()).await.unwrap() {
            Ok(Event::MessageCreate(message)) => {
                assert_eq!(message.id.get(), after.0);
                break;
            }
            Ok(_) => {}
            Err(_) => unreadable += 1,
        }
    }
    assert_eq!(unreadable, 1);
}

#[tokio::test]
async fn shards_receive_events_of_their_guilds_only() {
    let Small {
        mut world,
        guild,
        channel,
        alice,
        ..
    } = small();
    // One millisecond later, so that the next guild belongs to the other shard.
    world.advance(1);
    let other = world.guild("Other");
    let elsewhere = world.channel(other, ChannelKind::Text, "elsewhere");
    let simulator = Simulator::start(world).await.unwrap();
    crate::support::install_crypto();
    let config = ConfigBuilder::new(simulator.token(), all_intents())
        .proxy_url(simulator.gateway_url())
        .build();
    let of = |id: Id| u32::try_from((id.0 >> 22) % 2).unwrap();
    assert_ne!(of(guild), of(other), "the two guilds must be of two shards");
    let mut shard = Shard::with_config(ShardId::new(of(other), 2), config);
    greeted(&mut shard).await;
    simulator.post(channel, alice, "unheard");
    let heard = simulator.post(elsewhere, alice, "heard");
    assert_eq!(next_message(&mut shard).await.id.get(), heard.0);
}

#[tokio::test]
async fn a_plain_client_reads_text_with_the_data_last() {
    let Small { world, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let address = simulator.host();
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = "GET /?v=10&encoding=json HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
        Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    write_all(&mut stream, request.as_bytes()).await;
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"}}") {
        stream.readable().await.unwrap();
        let mut chunk = [0; 1024];
        match stream.try_read(&mut chunk) {
            Ok(0) => panic!("closed: {}", String::from_utf8_lossy(&bytes)),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(_) => {}
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let hello = r#"{"t":null,"s":null,"op":10,"d":{"heartbeat_interval":41250}}"#;
    assert!(text.ends_with(hello), "{text}");
}

async fn write_all(stream: &mut tokio::net::TcpStream, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        stream.writable().await.unwrap();
        if let Ok(count) = stream.try_write(bytes) {
            bytes = &bytes[count..];
        }
    }
}
