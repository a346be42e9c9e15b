//! Events that change the facts.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Facts;
use super::partial::{
    PartialChannel, PartialGuild, PartialMember, PartialRole, PartialThreadMember, lenient,
};
use super::world::{World, kind};
use crate::event::{Event, Unreadable};
use clew_context::model::{ChannelId, ChannelKind, GuildId, RoleId, UserId};

impl Facts {
    /// Applies one dispatch (`t`, and `d` as text) and returns what others need
    /// to know. Events not about servers, channels, threads, roles or members
    /// change nothing.
    pub fn apply(&self, event_type: &str, data: &str) -> Option<Event> {
        let taken = self.take(event_type, data);
        let mut event = taken.unwrap_or_else(|error| {
            // Other error kinds may quote what people wrote.
            tracing::warn!(
                event_type,
                damaged = error.is_syntax() || error.is_eof(),
                "an event of a server could not be read"
            );
            Some(Event::OtherUnreadable(unreadable(event_type, data)))
        });
        if let Some(Event::PermissionsChanged { guild, hidden }) = &mut event {
            *hidden = self.hidden_of(*guild);
        }
        event
    }

    fn take(&self, event_type: &str, data: &str) -> Result<Option<Event>, serde_json::Error> {
        Ok(match event_type {
            "GUILD_CREATE" => {
                let head: Deleted = read(data)?;
                Some(if head.unavailable == Some(true) {
                    Event::GuildUnavailable(head.id)
                } else {
                    self.guild_created(read(data)?)
                })
            }
            "GUILD_UPDATE" => self.guild_updated(read(data)?),
            "GUILD_DELETE" => Some(self.guild_deleted(&read(data)?)),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" => self.channel_put(placed(data)?),
            "CHANNEL_DELETE" => {
                let Gone { id: channel } = read(data)?;
                let threads = self.write().remove_channel(channel);
                Some(Event::ChannelDeleted { channel, threads })
            }
            "THREAD_CREATE" => Some(self.thread_created(placed(data)?)),
            "THREAD_UPDATE" => self.thread_put(placed(data)?),
            "THREAD_DELETE" => {
                let Gone { id: thread } = read(data)?;
                self.write().remove_channel(thread);
                Some(Event::ThreadDeleted(thread))
            }
            "THREAD_LIST_SYNC" => Some(self.threads_synced(read(data)?)),
            "THREAD_MEMBER_UPDATE" => self.joined_thread(&read(data)?),
            "THREAD_MEMBERS_UPDATE" => self.thread_members(&read(data)?),
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => self.role_put(read(data)?),
            "GUILD_ROLE_DELETE" => self.role_deleted(&read(data)?),
            "GUILD_MEMBER_UPDATE" => {
                let home: Home = read(data)?;
                let member = read(data)?;
                home.guild_id
                    .and_then(|guild| self.member_updated(guild, member))
            }
            _ => None,
        })
    }

    fn guild_created(&self, guild: PartialGuild) -> Event {
        let (id, parts) = (guild.id, guild.missing());
        let built = guild.into();
        self.write().put(built);
        if parts.is_empty() {
            Event::GuildAvailable(id)
        } else {
            Event::GuildIncomplete { guild: id, parts }
        }
    }

    fn guild_updated(&self, update: PartialGuild) -> Option<Event> {
        let mut world = self.write();
        let known = world.guild(update.id)?;
        let owner = update.owner_id.or(known.owner_id);
        world.rename(update.id, update.name, owner);
        let has_roles = !update.roles.is_empty();
        let changed = has_roles && world.put_roles(update.id, update.roles);
        (changed || known.owner_id != owner).then_some(permissions_changed(update.id))
    }

    fn guild_deleted(&self, deleted: &Deleted) -> Event {
        if deleted.unavailable == Some(true) {
            // An outage: keep what we know until the server is back.
            return Event::GuildUnavailable(deleted.id);
        }
        self.write().remove(deleted.id);
        Event::GuildRemoved(deleted.id)
    }

    fn channel_put(&self, placed: Placed) -> Option<Event> {
        let guild = placed.home.guild_id?;
        let now = placed.channel.permission_overwrites.clone();
        let before = self.write().put_channel(guild, placed.channel)?;
        (before.permission_overwrites != now).then_some(permissions_changed(guild))
    }

    fn thread_created(&self, placed: Placed) -> Event {
        let channel = placed.channel.id;
        if let Some(guild) = placed.home.guild_id {
            self.write().put_channel(guild, placed.channel);
        }
        Event::ThreadCreated {
            channel,
            newly_created: placed.home.newly_created,
        }
    }

    fn thread_put(&self, placed: Placed) -> Option<Event> {
        let mut world = self.write();
        let mut thread = placed.channel;
        // THREAD_UPDATE does not repeat our membership.
        let known = world.channel(thread.id).and_then(|known| known.member);
        thread.member = thread.member.or(known);
        world.put_channel(placed.home.guild_id?, thread);
        None
    }

    fn threads_synced(&self, list: ListSync) -> Event {
        let mut world = self.write();
        world.forget_threads(list.guild_id, list.channel_ids.as_deref());
        for mut thread in list.threads {
            let ours = list
                .members
                .iter()
                .any(|member| member.id == Some(thread.id));
            if ours {
                thread.member = Some(PartialThreadMember {});
            }
            world.put_channel(list.guild_id, thread);
        }
        permissions_changed(list.guild_id)
    }

    fn joined_thread(&self, member: &ThreadMember) -> Option<Event> {
        let changed = self.write().set_joined(member.id?, true)?;
        changed.then_some(permissions_changed(member.guild_id?))
    }

    fn thread_members(&self, change: &MembersUpdate) -> Option<Event> {
        let mut world = self.write();
        let us = world.us.as_ref().map(|us| us.user);
        let private = kind(&*world.channel(change.id)?) == ChannelKind::PrivateThread;
        let added = change.added_members.iter();
        if us.is_some() && added.map(|member| member.user_id).any(|user| user == us) {
            world.set_joined(change.id, true);
        }
        if change
            .removed_member_ids
            .iter()
            .any(|user| Some(*user) == us)
        {
            world.set_joined(change.id, false);
        }
        private.then_some(permissions_changed(change.guild_id))
    }

    fn role_put(&self, change: RoleChange) -> Option<Event> {
        let permissions = change.role.permissions;
        let before = self.write().put_role(change.guild_id, change.role)?;
        (before.permissions != permissions).then_some(permissions_changed(change.guild_id))
    }

    fn role_deleted(&self, gone: &RoleGone) -> Option<Event> {
        self.write().remove_role(gone.guild_id, gone.role_id)?;
        Some(permissions_changed(gone.guild_id))
    }

    fn member_updated(&self, guild: GuildId, member: PartialMember) -> Option<Event> {
        let mut world = self.write();
        world.guild(guild)?;
        let before = world.our_roles(guild);
        world.meet(guild, member);
        (world.our_roles(guild) != before).then_some(permissions_changed(guild))
    }
}

impl World {
    /// Returns whether membership changed; `None` for an unknown thread.
    fn set_joined(&mut self, thread: ChannelId, joined: bool) -> Option<bool> {
        let mut channel = self.channel(thread)?.value().clone();
        let before = channel.member.is_some();
        channel.member = joined.then_some(PartialThreadMember {});
        let posted = self.posted(thread);
        self.put_channel(channel.guild_id?, channel);
        // `put_channel` reset the count, but this was no count from Discord.
        self.count(thread, posted);
        Some(before != joined)
    }
}

/// `apply` fills in the hidden channels.
fn permissions_changed(guild: GuildId) -> Event {
    Event::PermissionsChanged {
        guild,
        hidden: Vec::new(),
    }
}

fn read<T: DeserializeOwned>(data: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(data)
}

/// Parsed twice, since raw values do not work with serde's `flatten`.
fn placed(data: &str) -> Result<Placed, serde_json::Error> {
    Ok(Placed {
        home: read(data)?,
        channel: read(data)?,
    })
}

/// The ids of an event that is otherwise unreadable.
pub(crate) fn unreadable(event_type: &str, data: &str) -> Unreadable {
    let Named {
        id,
        guild_id,
        channel_id,
    } = read(data).unwrap_or_default();
    let is_of = |prefix| event_type.starts_with(prefix);
    let whole_guild = matches!(event_type, "GUILD_CREATE" | "GUILD_UPDATE" | "GUILD_DELETE");
    let channel = id.filter(|_| is_of("CHANNEL_") || is_of("THREAD_"));
    Unreadable {
        event: event_type.to_ascii_lowercase(),
        guild: guild_id.or_else(|| id.filter(|_| whole_guild)),
        channel: channel_id.or_else(|| channel.map(|id| ChannelId::new(id.get()))),
        ..Unreadable::default()
    }
}

#[derive(Deserialize, Default)]
struct Named {
    /// Id of the event's object.
    #[serde(default, deserialize_with = "lenient")]
    id: Option<GuildId>,
    #[serde(default, deserialize_with = "lenient")]
    guild_id: Option<GuildId>,
    #[serde(default, deserialize_with = "lenient")]
    channel_id: Option<ChannelId>,
}

#[derive(Deserialize)]
struct Deleted {
    id: GuildId,
    #[serde(default)]
    unavailable: Option<bool>,
}

#[derive(Deserialize)]
struct Gone {
    id: ChannelId,
}

/// A channel, and the ids its event carries beside it.
struct Placed {
    home: Home,
    channel: PartialChannel,
}

#[derive(Deserialize)]
struct Home {
    #[serde(default)]
    guild_id: Option<GuildId>,
    #[serde(default)]
    newly_created: bool,
}

#[derive(Deserialize)]
struct ListSync {
    guild_id: GuildId,
    #[serde(default)]
    channel_ids: Option<Vec<ChannelId>>,
    #[serde(default)]
    threads: Vec<PartialChannel>,
    #[serde(default)]
    members: Vec<ThreadMember>,
}

#[derive(Deserialize)]
struct ThreadMember {
    #[serde(default)]
    id: Option<ChannelId>,
    #[serde(default)]
    guild_id: Option<GuildId>,
    #[serde(default)]
    user_id: Option<UserId>,
}

#[derive(Deserialize)]
struct MembersUpdate {
    id: ChannelId,
    guild_id: GuildId,
    #[serde(default)]
    added_members: Vec<ThreadMember>,
    #[serde(default)]
    removed_member_ids: Vec<UserId>,
}

#[derive(Deserialize)]
struct RoleChange {
    guild_id: GuildId,
    role: PartialRole,
}

#[derive(Deserialize)]
struct RoleGone {
    guild_id: GuildId,
    role_id: RoleId,
}
