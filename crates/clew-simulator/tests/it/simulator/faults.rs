//! Faults: each one as a client sees it, with its count.

use std::time::Duration;

use clew_simulator::{Fault, FaultKind, Limit, Simulator};
use serde_json::{Value, json};
use twilight_http::Client;
use twilight_model::id::Id as TwilightId;

use crate::support::{Rest, Small, small};

#[tokio::test]
async fn a_status_is_returned_as_often_as_scripted() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/channels/{channel}/messages");
    let fault = Fault::status(
        "GET",
        "/channels/*/messages",
        500,
        0,
        "Internal Server Error",
    );
    let fault = simulator.fault(fault.after(1).times(2));
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(rest.call("GET", &path, Value::Null).await.0);
    }
    assert_eq!(seen, [200, 500, 500, 200]);
    assert_eq!(simulator.hits(fault), 2);
    let statuses: Vec<Option<u16>> = simulator.requests().iter().map(|r| r.status).collect();
    assert_eq!(statuses, [Some(200), Some(500), Some(500), Some(200)]);
}

#[tokio::test]
async fn a_429_says_how_long_to_wait() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    simulator.fault(Fault::rate_limited("GET", "/channels/", 0.25).once());
    let answer = rest
        .request("GET", &format!("/channels/{channel}"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "1");
    let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(body["retry_after"], 0.25);
    rest.get(&format!("/channels/{channel}")).await;
}

#[tokio::test]
async fn an_exhausted_bucket_refuses() {
    let Small {
        mut world,
        guild,
        channel,
        ..
    } = small();
    let other = world.channel(guild, clew_simulator::ChannelKind::Text, "other");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    simulator.limit(Limit {
        method: "POST".to_owned(),
        path: "/channels/*/messages".to_owned(),
        calls: 2,
        window: Duration::from_hours(1),
    });
    let path = format!("/channels/{channel}/messages");
    let hello = json!({"content": "hello"});
    for remaining in ["1", "0"] {
        let answer = rest
            .request("POST", &path)
            .json(&hello)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["x-ratelimit-limit"], "2");
        assert_eq!(answer.headers()["x-ratelimit-remaining"], remaining);
        assert!(answer.headers().contains_key("x-ratelimit-bucket"));
    }
    assert_eq!(rest.call("POST", &path, hello.clone()).await.0, 429);
    // The bucket belongs to the channel: other channels are not affected.
    let elsewhere = format!("/channels/{other}/messages");
    rest.post(&elsewhere, hello).await;
    assert_eq!(simulator.answers(channel).len(), 2);
}

#[tokio::test]
async fn a_body_is_cut_off_in_the_middle() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    world.seed(channel, alice, "hello");
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/channels/{channel}/messages");
    simulator.fault(Fault::new("GET", "/messages", FaultKind::Truncated).once());
    let answer = rest.request("GET", &path).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer.bytes().await.unwrap_err();
    rest.get(&path).await;
    simulator.fault(Fault::new("GET", "/messages", FaultKind::Body("[{".to_owned())).once());
    let answer = rest.request("GET", &path).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "[{");
}

#[tokio::test]
async fn a_list_is_short() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let newest = ["one", "two", "three"].map(|text| world.seed(channel, alice, text))[2];
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/channels/{channel}/messages");
    simulator.fault(Fault::new("GET", "/messages", FaultKind::Short).times(2));
    let page = rest.get(&path).await;
    assert_eq!(page.as_array().unwrap().len(), 1);
    assert_eq!(page[0]["id"], newest.to_string());
    let one = rest.get(&format!("{path}/{newest}")).await;
    assert_eq!(one["content"], "three");
    assert_eq!(rest.get(&path).await.as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_dropped_connection_before_and_after_the_work() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let path = format!("/channels/{channel}/messages");
    for (kind, posted) in [(FaultKind::DroppedBefore, 0), (FaultKind::DroppedAfter, 1)] {
        let fault = simulator.fault(Fault::new("POST", "/messages", kind).once());
        let request = rest
            .request("POST", &path)
            .json(&json!({"content": "hello"}));
        request.send().await.unwrap_err();
        assert_eq!(simulator.hits(fault), 1);
        assert_eq!(simulator.answers(channel).len(), posted);
    }
    rest.post(&path, json!({"content": "hello"})).await;
    simulator.wait_idle().await.unwrap();
}

#[tokio::test]
async fn a_hanging_call_stays_open_until_the_client_gives_up() {
    let Small { world, channel, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let hang = FaultKind::Hang(Duration::from_hours(1));
    simulator.fault(Fault::new("GET", "/channels/", hang).once());
    let path = format!("/channels/{channel}");
    let hanging = tokio::spawn(rest.request("GET", &path).send());
    simulator
        .wait_request("GET", "/channels/", 1)
        .await
        .unwrap();
    rest.get(&path).await;
    assert_eq!(simulator.requests()[1].in_flight, 2);
    assert_eq!(simulator.requests()[0].status, None);
    hanging.abort();
    simulator.wait_idle().await.unwrap();
}

#[tokio::test]
async fn a_message_that_no_client_can_read() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let bad = world.seed(channel, alice, "bad");
    world.seed(channel, alice, "good");
    let simulator = Simulator::start(world).await.unwrap();
    simulator.override_message(bad, json!({"id": bad.to_string(), "type": "text"}));
    let rest = Rest::new(&simulator);
    let page = rest.get(&format!("/channels/{channel}/messages")).await;
    assert_eq!(
        (&page[0]["content"], &page[1]["type"]),
        (&json!("good"), &json!("text"))
    );
}

#[tokio::test]
async fn the_simulator_stops() {
    let Small { world, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    rest.get("/users/@me").await;
    simulator.stop().await;
    rest.request("GET", "/users/@me").send().await.unwrap_err();
}

#[tokio::test]
async fn twilights_client_is_served() {
    let Small {
        mut world,
        channel,
        alice,
        ..
    } = small();
    let asked = world.seed(channel, alice, "ask");
    let simulator = Simulator::start(world).await.unwrap();
    crate::support::install_crypto();
    let client = Client::builder()
        .token(simulator.token())
        .proxy(simulator.host(), true)
        .build();
    let channel_id = TwilightId::new(channel.0);
    let sent = client
        .create_message(channel_id)
        .content("answer")
        .reply(TwilightId::new(asked.0))
        .await
        .unwrap()
        .model()
        .await
        .unwrap();
    assert_eq!(sent.referenced_message.unwrap().id.get(), asked.0);
    let page = client.channel_messages(channel_id).await.unwrap();
    assert_eq!(page.model().await.unwrap().len(), 2);
    let read = client
        .channel(channel_id)
        .await
        .unwrap()
        .model()
        .await
        .unwrap();
    assert_eq!(read.name.as_deref(), Some("general"));
    client.create_typing_trigger(channel_id).await.unwrap();
    let own = client.current_user().await.unwrap().model().await.unwrap();
    assert_eq!(own.id.get(), simulator.bot().0);
    client
        .current_user_application()
        .await
        .unwrap()
        .model()
        .await
        .unwrap();
    client
        .gateway()
        .authed()
        .await
        .unwrap()
        .model()
        .await
        .unwrap();
}
