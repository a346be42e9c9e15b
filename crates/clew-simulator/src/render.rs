//! Objects in the API's format, following the official `OpenAPI` document.

mod guild;
mod message;

use serde_json::{Value, json};

use super::ids::Id;
use super::world::{Interaction, User, World};

pub(super) use guild::{
    channel, guild, guild_create, member, role, thread_listing, thread_member, thread_seen,
};
pub(super) use message::{Audience, blank_unless_allowed, file, message, reaction_emoji, snapshot};

/// A user object; an unknown id is rendered as a deleted user.
pub(super) fn user(world: &World, id: Id) -> Value {
    match world.users.get(&id) {
        Some(found) => user_object(found),
        None => user_object(&User {
            id,
            name: "deleted_user".to_owned(),
            global_name: None,
            bot: false,
        }),
    }
}

fn user_object(user: &User) -> Value {
    let mut object = json!({
        "id": user.id.json(),
        "username": user.name,
        "avatar": null,
        "discriminator": if user.bot { "0042" } else { "0" },
        "public_flags": 0,
        "flags": 0,
        "global_name": user.global_name,
        "primary_guild": null,
    });
    if user.bot {
        object["bot"] = true.into();
    }
    object
}

/// The bot's own user object, with the fields that only it may see.
pub(super) fn own_user(world: &World) -> Value {
    let mut object = user(world, world.bot);
    object["mfa_enabled"] = true.into();
    object["locale"] = "en-US".into();
    object["verified"] = true.into();
    object["email"] = Value::Null;
    object
}

/// The application's flags: which privileged intents the developer portal allows.
pub(super) fn application_flags(world: &World) -> u64 {
    const LIMITED: [(u64, u64); 3] = [(1 << 8, 1 << 13), (1 << 1, 1 << 15), (1 << 15, 1 << 19)];
    LIMITED
        .iter()
        .filter(|(intent, _)| world.settings.disallowed_intents & intent == 0)
        .fold(0, |flags, (_, flag)| flags | flag)
}

pub(super) fn application(world: &World) -> Value {
    let name = world
        .users
        .get(&world.bot)
        .map_or("", |bot| bot.name.as_str());
    let owner = world.users.values().find(|user| !user.bot);
    json!({
        "id": world.bot.json(),
        "name": name,
        "icon": null,
        "description": "",
        "type": null,
        "bot": user(world, world.bot),
        "bot_public": true,
        "bot_require_code_grant": false,
        "verify_key": "0".repeat(64),
        "flags": application_flags(world),
        "flags_new": application_flags(world).to_string(),
        "redirect_uris": [],
        "interactions_endpoint_url": null,
        "role_connections_verification_url": null,
        "owner": user(world, owner.map_or(world.bot, |user| user.id)),
        "approximate_guild_count": world.guilds.len(),
        "approximate_user_install_count": 0,
        "approximate_user_authorization_count": 0,
        "explicit_content_filter": 0,
        "team": null,
        "eligible_oauth2_scopes": ["bot", "applications.commands"],
    })
}

/// What a message says about the interaction it answers.
pub(super) fn interaction_metadata(world: &World, interaction: &Interaction) -> Value {
    json!({
        "id": interaction.id.json(),
        "type": if interaction.kind == 3 { 3 } else { 2 },
        "user": user(world, interaction.user),
        "authorizing_integration_owners": {"0": owner_of(world, interaction)},
    })
}

/// The owner of the installation: the guild, or "0" in a direct message.
pub(super) fn owner_of(world: &World, interaction: &Interaction) -> Value {
    let guild = world.guild_of(interaction.channel);
    guild.unwrap_or(Id(0)).json()
}
