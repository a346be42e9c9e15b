//! What the world holds, as objects of the API, and what the bot would be answered: for
//! whoever shows the simulator to people. Nothing here is logged or counted.

use serde_json::Value;
use tokio::sync::broadcast;

use crate::Simulator;
use crate::ids::Id;
use crate::log::Dispatch;
use crate::render::{self, Audience};
use crate::rest;

impl Simulator {
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
}

acts! {
    /// Every event of the gateway from now on, as a client with all intents gets it. Who
    /// falls behind by 4,096 events misses the oldest.
    read subscribe() -> broadcast::Receiver<Dispatch> = |state| state.hub.subscribers.subscribe();
    /// Status and body that a GET by the bot would get now, without faults, limits or
    /// delay. The path comes without `/api/v10` and with its query.
    with peek(path: &str) -> (u16, Vec<u8>) = |state| rest::peek(state, path);
    /// Keeps the newest calls and gateway records in the log, at least this many and at
    /// most twice as many. Without it all are kept.
    with keep_log(newest: usize) = |state| state.keep = newest;
    /// A message object as it appears in a page; null if it does not exist.
    read message_object(channel: Id, message: Id) -> Value = |state| state
        .world
        .message(channel, message)
        .map_or(Value::Null, |found| render::message(&state.world, found, Audience::Rest));
    /// A channel or thread object; null if it does not exist.
    read channel_object(channel: Id) -> Value = |state| state.channel_object(channel);
    /// A guild object; null if it does not exist.
    read guild_object(guild: Id) -> Value = |state| state
        .world
        .guilds
        .get(&guild)
        .map_or(Value::Null, |found| render::guild(&state.world, found));
    /// A user object; an unknown id is a deleted user's.
    read user_object(user: Id) -> Value = |state| render::user(&state.world, user);
}
