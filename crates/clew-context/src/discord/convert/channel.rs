//! Discord's channel, guild, role and member objects, the fields we read.

use serde::Deserialize;

use super::part::{self, List, Part, Text};
use super::wire::WireMember;
use super::{Unreadable, WhyUnreadable};
use crate::model::{
    Channel, ChannelId, ChannelKind, Guild, GuildId, Overwrite, OverwriteTarget, Parent, RoleId,
    TagId, ThreadState, UserId,
};

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
struct WireChannel<'a> {
    id: Part<ChannelId>,
    guild_id: Part<GuildId>,
    r#type: Part<u8>,
    name: Part<Text<'a>>,
    parent_id: Part<ChannelId>,
    owner_id: Part<UserId>,
    message_count: Part<u32>,
    thread_metadata: Part<WireThread>,
    permission_overwrites: Part<List<WireOverwrite<'a>>>,
    /// Ids of the tags on a post; Discord sends `"0"` at times.
    applied_tags: Part<List<TagId>>,
    available_tags: Part<List<WireTag<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireThread {
    archived: Part<bool>,
    locked: Part<bool>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
struct WireTag<'a> {
    id: Part<TagId>,
    name: Part<Text<'a>>,
}

/// The bits are decimal strings.
#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
struct WireOverwrite<'a> {
    id: Part<RoleId>,
    r#type: Part<u8>,
    allow: Part<Text<'a>>,
    deny: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
struct WireGuild<'a> {
    id: Part<GuildId>,
    owner_id: Part<UserId>,
    roles: Part<List<WireRole<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
struct WireRole<'a> {
    id: Part<RoleId>,
    permissions: Part<Text<'a>>,
}

/// Reads a channel or thread.
///
/// `parent` is the parent's JSON, if available: it gives the parent's kind and
/// name, and the names of the tags on a forum or media post.
///
/// # Errors
/// [`Unreadable`] without an id or a type. A parent that cannot be read is ignored.
pub fn channel(json: &str, parent: Option<&str>) -> Result<Channel, Unreadable> {
    let wire: WireChannel<'_> = part::read(json).map_err(|_| Unreadable {
        id: None,
        channel: None,
        reason: WhyUnreadable::Json,
    })?;
    let Some(id) = wire.id.get() else {
        return Err(Unreadable {
            id: None,
            channel: None,
            reason: WhyUnreadable::Id,
        });
    };
    let Some(kind) = wire.r#type.get().map(ChannelKind::from_number) else {
        return Err(Unreadable {
            id: None,
            channel: Some(id),
            reason: WhyUnreadable::Type,
        });
    };
    let parent: Option<WireChannel<'_>> = parent.and_then(|json| part::read(json).ok());
    let metadata = wire.thread_metadata.get();
    let thread = (kind.is_thread() || metadata.is_some()).then(|| {
        let metadata = metadata.unwrap_or_default();
        ThreadState {
            owner: wire.owner_id.get(),
            archived: metadata.archived.get().unwrap_or(false),
            locked: metadata.locked.get().unwrap_or(false),
            message_count: wire.message_count.get(),
            applied_tags: wire.applied_tags.get().unwrap_or_default().items,
        }
    });
    let channel = Channel {
        guild: wire.guild_id.get(),
        name: owned(wire.name).unwrap_or_default(),
        parent: wire.parent_id.get(),
        overwrites: overwrites(wire.permission_overwrites),
        thread,
        ..Channel::new(id, kind)
    };
    Ok(match parent.and_then(self::parent) {
        Some(parent) => channel.under(parent),
        None => channel,
    })
}

/// Reads the answer of Get Guild: the parts that permissions are computed from.
///
/// # Errors
/// [`Unreadable`] without an id or roles, or if a role cannot be read.
pub fn guild(json: &str) -> Result<Guild, Unreadable> {
    let unreadable = |reason| Unreadable {
        id: None,
        channel: None,
        reason,
    };
    let wire: WireGuild<'_> = part::read(json).map_err(|_| unreadable(WhyUnreadable::Json))?;
    let id = wire.id.get().ok_or(unreadable(WhyUnreadable::Id))?;
    let roles = wire.roles.get().filter(|roles| !roles.skipped);
    let roles = roles.and_then(|roles| roles.items.into_iter().map(role).collect());
    Ok(Guild {
        id,
        owner: wire.owner_id.get(),
        roles: roles.ok_or(unreadable(WhyUnreadable::Roles))?,
    })
}

/// Reads the roles from the answer of Get Guild Member.
///
/// # Errors
/// [`Unreadable`] unless all of them can be read.
pub fn member_roles(json: &str) -> Result<Vec<RoleId>, Unreadable> {
    let unreadable = |reason| Unreadable {
        id: None,
        channel: None,
        reason,
    };
    let wire: WireMember<'_> = part::read(json).map_err(|_| unreadable(WhyUnreadable::Json))?;
    let roles = wire.roles.get().filter(|roles| !roles.skipped);
    let roles = roles.ok_or(unreadable(WhyUnreadable::Roles))?;
    Ok(roles.items)
}

fn role(role: WireRole<'_>) -> Option<(RoleId, u64)> {
    Some((role.id.get()?, bits(role.permissions)?))
}

/// All or none: a lost one might be the one that hides the channel. Overwrites of
/// an unknown type are ignored.
fn overwrites(part: Part<List<WireOverwrite<'_>>>) -> Option<Vec<Overwrite>> {
    let list = part.get().filter(|list| !list.skipped)?;
    let mut overwrites = Vec::with_capacity(list.items.len());
    for wire in list.items {
        let id = wire.id.get()?;
        let target = match wire.r#type.get()? {
            0 => OverwriteTarget::Role(id),
            1 => OverwriteTarget::Member(UserId::new(id.get())),
            _ => continue,
        };
        overwrites.push(Overwrite {
            target,
            allow: bits(wire.allow)?,
            deny: bits(wire.deny)?,
        });
    }
    Some(overwrites)
}

fn bits(part: Part<Text<'_>>) -> Option<u64> {
    part.get()?.0.parse().ok()
}

fn owned(part: Part<Text<'_>>) -> Option<String> {
    part.get().map(|text| text.0.into_owned())
}

fn parent(wire: WireChannel<'_>) -> Option<Parent> {
    let tags = wire
        .available_tags
        .get()
        .unwrap_or_default()
        .items
        .into_iter();
    Some(Parent {
        kind: ChannelKind::from_number(wire.r#type.get()?),
        name: owned(wire.name).unwrap_or_default(),
        tags: tags
            .filter_map(|tag| Some((tag.id.get()?, owned(tag.name)?)))
            .collect(),
    })
}
