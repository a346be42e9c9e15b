//! Discord's channel, guild, role and member objects, the fields we read.

use serde::Deserialize;

use super::part::{self, List, Part, Text};
use super::wire::{WireMember, wire};
use super::{Unreadable, WhyUnreadable};
use crate::engine::place::kept_topic;
use crate::model::{
    Channel, ChannelId, ChannelKind, Guild, GuildId, Overwrite, OverwriteTarget, Parent, RoleId,
    TagId, ThreadState, UnixMillis, UserId,
};

wire! {
    WireChannel {
        id: ChannelId,
        guild_id: GuildId,
        r#type: u8,
        name: Text<'a>,
        topic: Text<'a>,
        parent_id: ChannelId,
        owner_id: UserId,
        message_count: u32,
        thread_metadata: WireThread,
        permission_overwrites: List<WireOverwrite<'a>>,
        /// Ids of the tags on a post; Discord sends `"0"` at times.
        applied_tags: List<TagId>,
        available_tags: List<WireTag<'a>>,
    }
    WireTag {
        id: TagId,
        name: Text<'a>,
    }
    /// The bits are decimal strings.
    WireOverwrite {
        id: RoleId,
        r#type: u8,
        allow: Text<'a>,
        deny: Text<'a>,
    }
    WireGuild {
        id: GuildId,
        owner_id: UserId,
        roles: List<WireRole<'a>>,
    }
    WireRole {
        id: RoleId,
        permissions: Text<'a>,
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireThread {
    archived: Part<bool>,
    locked: Part<bool>,
}

/// Reads a channel or thread.
///
/// `parent` is the parent's JSON, if available: it gives the parent's kind and
/// name, and the names of the tags on a forum or media post.
///
/// # Errors
/// [`Unreadable`] without an id or a type. A parent that cannot be read is ignored.
pub fn channel(json: &str, parent: Option<&str>) -> Result<Channel, Unreadable> {
    let wire: WireChannel<'_> = read(json)?;
    let id = wire.id.get().ok_or(Unreadable::of(WhyUnreadable::Id))?;
    let kind = wire.r#type.get().map(ChannelKind::from_number);
    let kind = kind.ok_or(Unreadable {
        channel: Some(id),
        ..Unreadable::of(WhyUnreadable::Type)
    })?;
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
        topic: topic(wire.topic),
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
    let wire: WireGuild<'_> = read(json)?;
    let id = wire.id.get().ok_or(Unreadable::of(WhyUnreadable::Id))?;
    let roles = wire.roles.get().filter(|roles| !roles.skipped);
    let roles = roles.and_then(|roles| roles.items.into_iter().map(role).collect());
    Ok(Guild {
        id,
        owner: wire.owner_id.get(),
        roles: roles.ok_or(Unreadable::of(WhyUnreadable::Roles))?,
    })
}

/// A member of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuildMember {
    /// All of their roles.
    pub roles: Vec<RoleId>,
    /// When their timeout ends; never if that could not be read.
    pub timed_out_until: Option<UnixMillis>,
}

/// Reads the answer of Get Guild Member.
///
/// # Errors
/// [`Unreadable`] unless all roles can be read.
pub fn member(json: &str) -> Result<GuildMember, Unreadable> {
    let wire: WireMember<'_> = read(json)?;
    let roles = wire.roles.get().filter(|roles| !roles.skipped);
    let roles = roles.ok_or(Unreadable::of(WhyUnreadable::Roles))?;
    let timeout = wire.communication_disabled_until;
    let timed_out_until = timeout.is_given().then(|| {
        let until = timeout.get().and_then(|text| UnixMillis::parse(&text.0));
        until.unwrap_or(UnixMillis(i64::MAX))
    });
    Ok(GuildMember {
        roles: roles.items,
        timed_out_until,
    })
}

fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Unreadable> {
    part::read(json).map_err(|_| Unreadable::of(WhyUnreadable::Json))
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

fn topic(part: Part<Text<'_>>) -> String {
    let text = part.get().map(|text| text.0).unwrap_or_default();
    kept_topic(&text)
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
        topic: topic(wire.topic),
        tags: tags
            .filter_map(|tag| Some((tag.id.get()?, owned(tag.name)?)))
            .collect(),
    })
}
