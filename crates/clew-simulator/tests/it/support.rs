//! A small world, and clients of the fake Discord. Tests of other crates include this file too.

use std::sync::Once;
use std::time::Duration;

use clew_simulator::{ChannelKind, Id, Simulator, World};
use serde_json::Value;
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

/// The time at which test worlds start, in Unix milliseconds, and the step between ids.
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
    pub(crate) token: String,
}

pub(crate) fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Another test in this binary may have installed it already.
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

    /// Status and body; null if the body is empty.
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

    /// Status and error code of a refused call.
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

/// Reads events until one matches; every event must parse.
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

/// Reads until the guild's `GUILD_CREATE`, which ends the greeting.
pub(crate) async fn greeted(shard: &mut Shard) {
    until(shard, |event| matches!(event, Event::GuildCreate(_))).await;
}
