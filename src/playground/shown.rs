//! Messages as the page shows them.

use serde_json::{Value, json};

use super::html;
use clew_simulator::{Id, Simulator, World};

/// Adds to a message object what the page needs besides: its text as HTML, and who reacted.
pub(super) fn for_page(discord: &Simulator, message: &mut Value) {
    discord.world(|world| {
        html::add(&*world, message);
        add_reactors(world, message);
    });
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
