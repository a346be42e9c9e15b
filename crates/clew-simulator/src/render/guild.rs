//! Guilds, roles, members, channels and threads in the API's format.

use serde_json::{Value, json};

use crate::ids::{Id, iso};
use crate::world::{
    Channel, ChannelKind, Guild, Member, Overwrite, OverwriteOf, Role, Thread, World,
};

/// A guild object as REST returns it.
pub(crate) fn guild(world: &World, guild: &Guild) -> Value {
    let roles: Vec<Value> = guild.roles.values().map(role).collect();
    json!({
        "id": guild.id.json(), "name": guild.name, "icon": null, "description": null,
        "home_header": null, "splash": null, "discovery_splash": null, "features": [],
        "banner": null, "owner_id": guild.owner.json(), "application_id": null, "region": "deprecated",
        "afk_channel_id": null, "afk_timeout": 300, "system_channel_id": null,
        "system_channel_flags": 0, "widget_enabled": false, "widget_channel_id": null,
        "verification_level": 1, "roles": roles, "default_message_notifications": 1,
        "mfa_level": 0, "explicit_content_filter": 2, "max_presences": null,
        "max_members": 500_000, "max_stage_video_channel_users": 50, "max_video_channel_users": 25,
        "vanity_url_code": null, "premium_tier": 0, "premium_subscription_count": 0,
        "preferred_locale": "en-US", "rules_channel_id": null, "safety_alerts_channel_id": null,
        "public_updates_channel_id": null, "premium_progress_bar_enabled": false, "nsfw": false,
        "nsfw_level": 0, "emojis": [], "stickers": [], "incidents_data": null,
        "permissions": guild.permissions(world.bot).0.to_string(),
    })
}

/// A guild as in `GUILD_CREATE`: with all channels, the active threads that the
/// bot sees, and only the bot among its members.
pub(crate) fn guild_create(world: &World, found: &Guild) -> Value {
    let mut object = guild(world, found);
    let of_guild = || {
        world
            .channels
            .values()
            .filter(|channel| channel.guild == Some(found.id))
    };
    let channels: Vec<Value> = of_guild()
        .filter(|channel| !channel.kind.is_thread())
        .map(|each| channel(world, each))
        .collect();
    let threads: Vec<Value> = of_guild()
        .filter(|each| each.thread.as_ref().is_some_and(|thread| !thread.archived))
        .filter(|each| world.sees(world.bot, each.id))
        .map(|each| thread_seen(world, each))
        .collect();
    let own = found.members.get(&world.bot);
    let joined_ms = own.map_or(0, |member| member.joined_ms);
    let members: Vec<Value> = own
        .map(|each| member(world, each, true))
        .into_iter()
        .collect();
    let extra = json!({
        "channels": channels, "threads": threads, "members": members,
        "member_count": found.members.len(), "large": found.members.len() > 250,
        "joined_at": iso(joined_ms), "unavailable": false,
        "presences": [], "voice_states": [], "stage_instances": [], "guild_scheduled_events": [],
        "soundboard_sounds": [],
    });
    merge(&mut object, extra);
    object
}

pub(crate) fn role(role: &Role) -> Value {
    let mut object = json!({
        "id": role.id.json(), "name": role.name, "description": null,
        "permissions": role.permissions.0.to_string(), "position": role.position,
        "color": 0, "colors": {"primary_color": 0, "secondary_color": null, "tertiary_color": null},
        "hoist": false, "managed": role.managed_by.is_some(), "mentionable": false,
        "icon": null, "unicode_emoji": null, "flags": 0,
    });
    if let Some(bot) = role.managed_by {
        object["tags"] = json!({"bot_id": bot.json()});
    }
    object
}

/// A member object with its user or, as in messages, without.
pub(crate) fn member(world: &World, member: &Member, with_user: bool) -> Value {
    let roles: Vec<Value> = member.roles.iter().map(|role| role.json()).collect();
    let timed_out = member.timed_out_until_ms.map(iso);
    let mut object = json!({
        "avatar": null, "banner": null, "communication_disabled_until": timed_out, "flags": 0,
        "joined_at": iso(member.joined_ms), "nick": member.nick, "pending": false,
        "premium_since": null, "roles": roles, "mute": false, "deaf": false,
    });
    if with_user {
        object["user"] = super::user(world, member.user);
    }
    object
}

/// A permission overwrite object.
fn overwrite(overwrite: &Overwrite) -> Value {
    let (id, kind) = match overwrite.of {
        OverwriteOf::Role(id) => (id, 0),
        OverwriteOf::Member(id) => (id, 1),
    };
    json!({
        "id": id.json(), "type": kind,
        "allow": overwrite.allow.0.to_string(), "deny": overwrite.deny.0.to_string(),
    })
}

/// A channel, thread or direct message object.
pub(crate) fn channel(world: &World, channel: &Channel) -> Value {
    let last = channel.last_message.map(Id::json);
    let mut object = json!({
        "id": channel.id.json(), "type": channel.kind as u8, "flags": 0, "last_message_id": last,
    });
    let Some(guild) = channel.guild else {
        let recipients = channel.recipients.iter();
        let recipients: Vec<Value> = recipients.map(|&id| super::user(world, id)).collect();
        object["recipients"] = recipients.into();
        return object;
    };
    let common = json!({
        "guild_id": guild.json(), "name": channel.name,
        "parent_id": channel.parent.map(Id::json), "rate_limit_per_user": 0,
    });
    merge(&mut object, common);
    match &channel.thread {
        Some(thread) => merge(&mut object, thread_fields(channel, thread)),
        None => merge(&mut object, channel_fields(channel)),
    }
    object
}

fn channel_fields(channel: &Channel) -> Value {
    let overwrites: Vec<Value> = channel.overwrites.iter().map(overwrite).collect();
    let mut fields = json!({
        "position": 0, "permission_overwrites": overwrites, "nsfw": channel.nsfw,
        "topic": channel.topic,
    });
    if channel.kind.is_forum() {
        let tags = channel.tags.iter().map(|tag| {
            json!({
                "id": tag.id.json(), "name": tag.name, "moderated": false,
                "emoji_id": null, "emoji_name": null,
            })
        });
        fields["available_tags"] = tags.collect();
        fields["default_reaction_emoji"] = Value::Null;
        fields["default_sort_order"] = Value::Null;
        fields["default_forum_layout"] = 0.into();
    }
    if channel.kind == ChannelKind::Voice {
        merge(
            &mut fields,
            json!({"bitrate": 64_000, "user_limit": 0, "rtc_region": null}),
        );
    }
    fields
}

fn thread_fields(channel: &Channel, thread: &Thread) -> Value {
    let tags: Vec<Value> = thread.applied_tags.iter().map(|tag| tag.json()).collect();
    let mut metadata = json!({
        "archived": thread.archived, "archive_timestamp": iso(thread.archive_ms),
        "auto_archive_duration": thread.auto_archive_minutes, "locked": thread.locked,
        "create_timestamp": iso(channel.id.unix_ms()),
    });
    if channel.kind == ChannelKind::PrivateThread {
        metadata["invitable"] = true.into();
    }
    json!({
        "owner_id": thread.owner.json(), "thread_metadata": metadata, "message_count": thread.message_count,
        "member_count": thread.members.len().min(50), "total_message_sent": thread.total_sent,
        "applied_tags": tags,
    })
}

/// A thread with the bot's own membership, if it is a member.
pub(crate) fn thread_seen(world: &World, found: &Channel) -> Value {
    let mut object = channel(world, found);
    if let Some(own) = thread_member(found, world.bot) {
        object["member"] = own;
    }
    object
}

/// A thread member object.
pub(crate) fn thread_member(channel: &Channel, user: Id) -> Option<Value> {
    let joined_ms = channel.thread.as_ref()?.members.get(&user)?;
    Some(json!({
        "id": channel.id.json(), "user_id": user.json(),
        "join_timestamp": iso(*joined_ms), "flags": 0,
    }))
}

/// Threads with the bot's memberships, as in thread lists.
pub(crate) fn thread_listing(world: &World, threads: &[&Channel], has_more: bool) -> Value {
    let memberships = threads.iter().filter_map(|t| thread_member(t, world.bot));
    let memberships: Vec<Value> = memberships.collect();
    let threads: Vec<Value> = threads
        .iter()
        .map(|each| thread_seen(world, each))
        .collect();
    json!({"threads": threads, "members": memberships, "has_more": has_more})
}

/// Adds the fields of `more` to `object`.
fn merge(object: &mut Value, more: Value) {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}
