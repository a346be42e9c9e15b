//! Messages as the page shows them.

use serde_json::{Value, json};

use super::html;
use clew_simulator::{Id, Simulator, World};

/// The type of an interaction that is a command.
const COMMAND: u8 = 2;

/// Adds to a message object what the page needs besides: its texts as HTML, who reacted, and
/// the command that it answers.
pub(super) fn for_page(discord: &Simulator, message: &mut Value) {
    discord.world(|world| {
        html::add(&*world, message);
        add_reactors(world, message);
        add_command(world, message);
    });
}

/// Discord names who called a command, and shows which in its client only.
fn add_command(world: &World, message: &mut Value) {
    let id = message["interaction_metadata"]["id"].as_str();
    let id = id.and_then(|id| id.parse().ok());
    let found = id.and_then(|id| world.interaction(Id(id)));
    if let Some(called) = found.filter(|called| called.kind == COMMAND) {
        message["command"] = called.name.clone().into();
    }
}

/// Discord gives counts, and tells the bot of its own reactions only.
fn add_reactors(world: &World, message: &mut Value) {
    let id = |field: &str| Some(Id(message[field].as_str()?.parse().ok()?));
    let found = id("channel_id").zip(id("id"));
    let Some(found) = found.and_then(|(channel, id)| world.message(channel, id)) else {
        return;
    };
    let reactions = message.get_mut("reactions").and_then(Value::as_array_mut);
    for (object, (_, users)) in reactions.into_iter().flatten().zip(&found.reactions) {
        let users: Vec<String> = users.iter().map(ToString::to_string).collect();
        object["users"] = json!(users);
    }
}
