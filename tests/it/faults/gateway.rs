//! Faults of the gateway connection and of the events that it delivers.

use clew_simulator::{Fault, GatewayEvent, Simulator};
use serde_json::{Value, json};

use super::{Place, has, has_no};
use crate::support::bot::prompt;
use crate::support::model::Behaviour;

/// Ends the connection during a turn. The turn is finished, and what is said meanwhile is answered exactly once.
async fn check(end: impl FnOnce(&Simulator), reason: &str, resumed: bool) {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let (pieces, gate) = Behaviour::gated(&["The pump\n", "is fine."]);
    place.stage.model.script(pieces);
    place.ask(place.thread, "what is it about?");
    gate.step(1);
    place.wait_for_answer(place.thread, "The pump").await;
    end(&place.stage.discord);
    if resumed {
        // Sent while the connection was down; the resumed session replays it.
        place.ask(place.help, "and elsewhere?");
        place.wait_for_answer(place.help, "ok").await;
    }
    gate.open();
    place
        .wait_for_answer(place.thread, "The pump\nis fine.")
        .await;
    let wanted = if resumed { 0 } else { 2 };
    let identified = |log: &[clew_simulator::GatewayRecord]| {
        let of = |event: &GatewayEvent| matches!(event, GatewayEvent::Identified { .. });
        log.iter().filter(|record| of(&record.event)).count()
    };
    while identified(&place.stage.discord.gateway_log()) < wanted {
        let ready = |event: &GatewayEvent| matches!(event, GatewayEvent::Identified { .. });
        place
            .stage
            .discord
            .wait_gateway("READY", ready)
            .await
            .unwrap();
        tokio::task::yield_now().await;
    }
    place.stage.discord.wait_ready().await.unwrap();
    place.stage.discord.settled().await.unwrap();
    let lines = place.still_works(bot).await;
    has(&lines, "disconnected", &json!({"reason": reason}));
    has(&lines, "connected", &json!({"resumed": resumed}));
    if resumed {
        has_no(&lines, "session_lost");
    } else {
        has(&lines, "session_lost", &json!({"shard": 0}));
    }
    assert_eq!(
        place.stage.discord.answers(place.thread).len(),
        2,
        "{reason}"
    );
    let elsewhere = place.stage.discord.answers(place.help).len();
    assert_eq!(elsewhere, 1 + usize::from(resumed), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_during_a_turn_loses_nothing() {
    check(Simulator::drop_gateway, "network", true).await;
    check(Simulator::ask_to_reconnect, "reconnect", true).await;
    check(|discord| discord.close_gateway(4000), "closed", true).await;
    check(
        |discord| discord.invalidate_sessions(true),
        "invalid_session",
        true,
    )
    .await;
    check(
        |discord| discord.invalidate_sessions(false),
        "invalid_session",
        false,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_dropped_and_resumed() {
    let short = |world: &mut clew_simulator::World| world.settings.heartbeat_interval_ms = 300;
    let place = Place::with(&[], short).await;
    let bot = place.stage.start().await;
    let discord = &place.stage.discord;
    discord.set_heartbeats_answered(false);
    let closed = |event: &GatewayEvent| matches!(event, GatewayEvent::ClosedByClient { .. });
    discord.wait_gateway("the end", closed).await.unwrap();
    place.ask(place.help, "still there?");
    discord.set_heartbeats_answered(true);
    place.wait_for_answer(place.help, "ok").await;
    let lines = place.still_works(bot).await;
    has(&lines, "disconnected", &json!({"reason": "heartbeat"}));
    has(&lines, "connected", &json!({"resumed": true}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_that_twilight_rejects_is_answered() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let discord = &place.stage.discord;
    let us = discord.bot();
    let text = format!("<@{us}> what is it about?");
    let asked = discord.seed(place.thread, place.ada, text);
    let mut odd = discord.message_object(place.thread, asked);
    odd["guild_id"] = json!(place.guild.to_string());
    odd["author"]["avatar"] = json!("no hash");
    odd["interaction_metadata"] = json!({"type": 99});
    odd["embeds"] = json!([7, {"type": {}}]);
    odd["attachments"] = json!("none");
    discord.dispatch_raw("MESSAGE_CREATE", &odd.to_string());
    let answers = place.answers(place.thread, 1).await;
    assert_eq!(answers[0].content, "ok");
    // A message with neither id nor author, and a payload that is not even an object.
    discord.dispatch_raw("MESSAGE_CREATE", r#"{"content": "?"}"#);
    discord.dispatch_raw("MESSAGE_CREATE", "7");
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "unreadable",
        &json!({"what": "message_create", "reason": "rejected", "parts": ["embeds", "attachments"]}),
    );
    let told = lines.iter().filter(|line| line["event"] == "unreadable");
    let told: Vec<_> = told.collect();
    let [guild, thread, ada] = [place.guild, place.thread, place.ada].map(|id| id.to_string());
    let ids = ["guild_id", "channel_id", "user_id", "msg_id"].map(|id| &told[0][id]);
    assert_eq!(ids, [&*guild, &*thread, &*ada, &*asked.to_string()]);
    for (line, part) in [(told[1], "id"), (told[2], "json")] {
        let malformed = json!({"what": "message_create", "reason": "malformed", "parts": [part]});
        assert_eq!(line["detail"], malformed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_cannot_be_read_are_reported_with_the_place() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let discord = &place.stage.discord;
    let [guild, thread] = [place.guild, place.thread].map(|id| id.to_string());
    let edit = json!({"id": "5", "channel_id": thread, "author": 7, "content": "?"});
    discord.dispatch_raw("MESSAGE_UPDATE", &edit.to_string());
    let delete = json!({"id": [], "channel_id": thread});
    discord.dispatch_raw("MESSAGE_DELETE", &delete.to_string());
    let role = json!({"guild_id": guild, "role": 7});
    discord.dispatch_raw("GUILD_ROLE_UPDATE", &role.to_string());
    let lines = place.still_works(bot).await;
    let told = lines.iter().filter(|line| line["event"] == "unreadable");
    let told: Vec<_> = told
        .map(|line| {
            json!([
                line["guild_id"],
                line["channel_id"],
                line["msg_id"],
                line["detail"]
            ])
        })
        .collect();
    let detail = |what: &str, reason: &str, parts: Value| json!({"what": what, "reason": reason, "parts": parts});
    let edited = detail("message_update", "rejected", json!(["author"]));
    let deleted = detail("message_delete", "malformed", json!(["id"]));
    let role = detail("guild_role_update", "malformed", json!([]));
    let expected = [
        json!([guild, thread, "5", edited]),
        json!([guild, thread, null, deleted]),
        json!([guild, null, null, role]),
    ];
    assert_eq!(told, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_twilight_rejects_is_read_in_parts() {
    let place = Place::new(&[]).await;
    let bot = place.stage.start().await;
    let discord = &place.stage.discord;
    discord.set_outage(place.guild, true);
    discord.settled().await.unwrap();
    let us = discord.bot();
    let text = format!("<@{us}> what was it about?");
    discord.seed(place.thread, place.ada, text);
    discord.fault(Fault::status("GET", "/guilds/*", 500, 0, "no").once());
    let bare = json!({"id": place.guild.to_string(), "name": "Works", "roles": 7, "channels": {}});
    discord.dispatch_raw("GUILD_CREATE", &bare.to_string());
    // What was asked meanwhile is found once the rest has been fetched.
    assert_eq!(place.answers(place.thread, 1).await[0].content, "ok");
    let text = prompt(&place.stage.model.requests()[0]);
    assert!(text.contains("in #help"), "{text}");
    discord.set_outage(place.guild, false);
    let lines = place.still_works(bot).await;
    has(
        &lines,
        "unreadable",
        &json!({"what": "guild_create", "parts": ["owner_id", "channels", "roles"]}),
    );
}
