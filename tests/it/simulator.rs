//! The fake Discord itself: its REST routes with a plain HTTP client, its
//! gateway and its objects with twilight.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail as tests do"
)]

mod faults;
mod gateway;
mod interactions;
pub(crate) mod messages;
mod refusals;
mod threads;

use std::sync::Once;
use std::time::Duration;

use clew::simulator::{ChannelKind, Id, Simulator, World};
use serde_json::{Value, json};
use twilight_gateway::queue::InMemoryQueue;
use twilight_gateway::{ConfigBuilder, EventTypeFlags, Intents, Shard, ShardId, StreamExt as _};
use twilight_model::gateway::event::Event;

/// A world with one guild, one channel and two members.
pub(crate) struct Small {
    pub(crate) world: World,
    pub(crate) guild: Id,
    pub(crate) channel: Id,
    pub(crate) alice: Id,
    pub(crate) bob: Id,
}

/// The time at which test worlds begin, Unix milliseconds, and the step
/// between ids.
pub(crate) const START_MS: i64 = 1_750_000_000_000;
pub(crate) const STEP_MS: i64 = 1_000;

pub(crate) fn small() -> Small {
    let mut world = World::new();
    world.set_clock(START_MS, STEP_MS);
    let guild = world.guild("Guild");
    let channel = world.channel(guild, ChannelKind::Text, "general");
    let alice = world.member(guild, "alice");
    let bob = world.member(guild, "bob");
    Small {
        world,
        guild,
        channel,
        alice,
        bob,
    }
}

/// A plain HTTP client with the bot's token.
pub(crate) struct Rest {
    client: reqwest::Client,
    base: String,
    token: String,
}

pub(crate) fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Another test of this binary may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

impl Rest {
    pub(crate) fn new(simulator: &Simulator) -> Self {
        install_crypto();
        Self {
            client: reqwest::Client::new(),
            base: format!("{}/api/v10", simulator.url()),
            token: format!("Bot {}", simulator.token()),
        }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        self.client
            .request(method, format!("{}{path}", self.base))
            .header("authorization", &self.token)
    }

    /// Status and body; null for an empty one.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let mut request = self.request(method, path);
        if !body.is_null() {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.bytes().await.unwrap();
        let body = match &bytes[..] {
            [] => Value::Null,
            bytes => serde_json::from_slice(bytes).unwrap(),
        };
        (status, body)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call("GET", path, Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.call("POST", path, body).await;
        assert!(status < 300, "{path}: {status} {answer}");
        answer
    }

    /// The error code of a refused call, with its status.
    pub(crate) async fn refused(&self, method: &str, path: &str, body: Value) -> (u16, u64) {
        let (status, answer) = self.call(method, path, body).await;
        assert!(status >= 400, "{method} {path}: {status} {answer}");
        (status, answer["code"].as_u64().unwrap())
    }
}

/// A twilight shard that reads every event.
pub(crate) fn shard(simulator: &Simulator, intents: Intents) -> Shard {
    install_crypto();
    let config = ConfigBuilder::new(simulator.token(), intents)
        .proxy_url(simulator.gateway_url())
        .queue(no_queue())
        .build();
    Shard::with_config(ShardId::ONE, config)
}

/// An identify queue that does not wait.
pub(crate) fn no_queue() -> InMemoryQueue {
    InMemoryQueue::new(0, 0, Duration::ZERO, 0)
}

pub(crate) fn all_intents() -> Intents {
    Intents::GUILDS
        | Intents::GUILD_MEMBERS
        | Intents::GUILD_MESSAGES
        | Intents::GUILD_MESSAGE_REACTIONS
        | Intents::GUILD_MESSAGE_TYPING
        | Intents::DIRECT_MESSAGES
        | Intents::MESSAGE_CONTENT
}

/// Reads events until one fits; everything must parse.
pub(crate) async fn until(shard: &mut Shard, fits: impl Fn(&Event) -> bool) -> Event {
    let read = async {
        loop {
            let item = shard.next_event(EventTypeFlags::all()).await;
            let event = item.expect("the stream goes on").expect("the event parses");
            if fits(&event) {
                return event;
            }
        }
    };
    let deadline = Duration::from_secs(20);
    tokio::time::timeout(deadline, read)
        .await
        .expect("the event comes")
}

/// Reads until the guild's `GUILD_CREATE`, the last of the greeting.
pub(crate) async fn greeted(shard: &mut Shard) {
    until(shard, |event| matches!(event, Event::GuildCreate(_))).await;
}

#[tokio::test]
async fn the_bot_finds_itself_and_its_gateway() {
    let Small {
        mut world, guild, ..
    } = small();
    world.settings.session_starts_remaining = 7;
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let gateway = rest.get("/gateway/bot").await;
    assert_eq!(gateway["url"], simulator.gateway_url());
    assert_eq!(gateway["session_start_limit"]["remaining"], 7);
    let bot = simulator.bot().to_string();
    assert_eq!(rest.get("/users/@me").await["id"], bot);
    assert_eq!(rest.get("/applications/@me").await["id"], bot);
    let path = format!("/guilds/{guild}");
    assert_eq!(rest.get(&path).await["name"], "Guild");
    assert_eq!(
        rest.get(&format!("{path}/channels")).await[0]["name"],
        "general"
    );
    assert_eq!(
        rest.get(&format!("{path}/roles")).await[1]["tags"]["bot_id"],
        bot
    );
    let member = rest.get(&format!("{path}/members/{bot}")).await;
    assert_eq!(member["roles"].as_array().unwrap().len(), 1);
    let refused = rest.refused("GET", "/guilds/1", Value::Null).await;
    assert_eq!(refused, (404, 10004));
}

#[tokio::test]
async fn a_wrong_token_is_refused() {
    let simulator = Simulator::start(small().world).await.unwrap();
    let mut rest = Rest::new(&simulator);
    rest.token = "Bot wrong".to_owned();
    assert_eq!(
        rest.refused("GET", "/users/@me", json!(null)).await,
        (401, 0)
    );
}

#[tokio::test]
async fn commands_are_kept_by_guild_type_and_name() {
    let Small { world, guild, .. } = small();
    let simulator = Simulator::start(world).await.unwrap();
    let rest = Rest::new(&simulator);
    let global = format!("/applications/{}/commands", simulator.bot());
    let of_guild = format!("/applications/{}/guilds/{guild}/commands", simulator.bot());
    let ask = json!({"name": "ask", "description": "Ask", "type": 1});
    let (status, first) = rest.call("POST", &global, ask.clone()).await;
    assert_eq!(status, 201);
    let (status, second) = rest.call("POST", &global, ask.clone()).await;
    assert_eq!((status, &second["id"]), (200, &first["id"]));
    let (_, set) = rest
        .call(
            "PUT",
            &of_guild,
            json!([ask, {"name": "Ask about this", "type": 3}]),
        )
        .await;
    assert_eq!(set.as_array().unwrap().len(), 2);
    assert_eq!(rest.get(&global).await.as_array().unwrap().len(), 1);
    let one = format!("{global}/{}", first["id"].as_str().unwrap());
    let (_, patched) = rest
        .call("PATCH", &one, json!({"description": "Better"}))
        .await;
    assert_eq!(patched["description"], "Better");
    assert_eq!(rest.call("DELETE", &one, Value::Null).await.0, 204);
    assert_eq!(rest.refused("GET", &one, Value::Null).await, (404, 10063));
    let bad = json!({"name": "ask"});
    assert_eq!(rest.refused("POST", &global, bad).await, (400, 50035));
}
