//! What the world holds, as objects of the API, and what the bot would be answered: for
//! whoever shows the simulator to people. Nothing here is logged or counted.

use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::Simulator;
use crate::ids::Id;
use crate::log::Dispatch;
use crate::render::{self, Audience};
use crate::rest;

impl Simulator {
    /// Every event of the gateway from now on, as a client with all intents gets it. Who
    /// falls behind by 4,096 events misses the oldest.
    pub fn subscribe(&self) -> broadcast::Receiver<Dispatch> {
        self.shared.read(|state| state.hub.subscribers.subscribe())
    }

    /// Status and body that a GET by the bot would get now, without faults, limits or
    /// delay. The path comes without `/api/v10` and with its query.
    pub fn peek(&self, path: &str) -> (u16, Vec<u8>) {
        self.shared.with(|state| rest::peek(state, path))
    }

    /// Keeps the newest calls and gateway records in the log, at least this many and at
    /// most twice as many. Without it all are kept.
    pub fn keep_log(&self, newest: usize) {
        self.shared.with(|state| state.keep = newest);
    }

    /// A message object as it appears in a page; null if it does not exist.
    pub fn message_object(&self, channel: Id, message: Id) -> Value {
        self.shared.read(|state| {
            let found = state.world.message(channel, message);
            found.map_or(json!(null), |found| {
                render::message(&state.world, found, Audience::Rest)
            })
        })
    }

    /// The newest `limit` messages of a channel before an id, or of all, oldest first.
    pub fn message_objects(&self, channel: Id, before: Option<Id>, limit: usize) -> Vec<Value> {
        self.shared.read(|state| {
            let Some(found) = state.world.channels.get(&channel) else {
                return Vec::new();
            };
            let older = found.messages.range(..before.unwrap_or(Id(u64::MAX)));
            let newest = older.rev().take(limit);
            let mut page: Vec<Value> = newest
                .map(|(_, message)| render::message(&state.world, message, Audience::Rest))
                .collect();
            page.reverse();
            page
        })
    }

    /// A channel or thread object; null if it does not exist.
    pub fn channel_object(&self, channel: Id) -> Value {
        self.shared.read(|state| {
            let found = state.world.channels.get(&channel);
            found.map_or(json!(null), |found| {
                render::thread_seen(&state.world, found)
            })
        })
    }

    /// A guild object; null if it does not exist.
    pub fn guild_object(&self, guild: Id) -> Value {
        self.shared.read(|state| {
            let found = state.world.guilds.get(&guild);
            found.map_or(json!(null), |found| render::guild(&state.world, found))
        })
    }

    /// A user object; an unknown id is a deleted user's.
    pub fn user_object(&self, user: Id) -> Value {
        self.shared.read(|state| render::user(&state.world, user))
    }
}
