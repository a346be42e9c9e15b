//! The gateway's events of servers, channels, threads, roles and members.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::GuildState;
use super::partial::{
    PartialChannel, PartialGuild, PartialMember, PartialRole, PartialThreadMember,
};
use crate::event::{Event, UnreadableEvent};
use clew_context::model::{ChannelId, ChannelKind, GuildId, RoleId, UserId};

impl GuildState {
    /// Applies one dispatch (`t`, and `d` as text) and returns what others need
    /// to know. Events not about servers, channels, threads, roles or members
    /// change nothing.
    pub fn apply(&self, event_type: &str, data: &str) -> Option<Event> {
        let applied = self.try_apply(event_type, data);
        let mut event = applied.unwrap_or_else(|error| {
            // Other error kinds may quote what people wrote.
            tracing::warn!(
                event_type,
                damaged = error.is_syntax() || error.is_eof(),
                "an event of a server could not be read"
            );
            let event = UnreadableEvent::new(event_type, data, Vec::new());
            if is_of_rights(event_type) {
                let of_channel = || self.guild_of(event.channel?);
                self.loses(event.guild.or_else(of_channel));
            }
            Some(Event::Unreadable(event))
        });
        if let Some(Event::PermissionsChanged { guild, hidden }) = &mut event {
            *hidden = self.hidden_of(*guild);
        }
        event
    }

    fn try_apply(&self, event_type: &str, data: &str) -> Result<Option<Event>, serde_json::Error> {
        let event = match event_type {
            "GUILD_CREATE" => {
                let availability: Availability = read(data)?;
                Some(if availability.unavailable == Some(true) {
                    self.unavailable(availability.id)
                } else {
                    self.guild_created(read(data)?)
                })
            }
            "GUILD_UPDATE" => self.guild_updated(read(data)?),
            "GUILD_DELETE" => Some(self.guild_deleted(&read(data)?)),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" => {
                let (guild, channel) = in_guild(data)?;
                guild.and_then(|guild| self.channel_put(guild, channel))
            }
            "CHANNEL_DELETE" => Some(self.channel_deleted(&read(data)?)),
            "THREAD_CREATE" => {
                let (guild, thread) = in_guild(data)?;
                Some(self.thread_created(guild, thread, &read(data)?))
            }
            "THREAD_UPDATE" => {
                if let (Some(guild), thread) = in_guild(data)? {
                    self.thread_updated(guild, thread);
                }
                None
            }
            "THREAD_DELETE" => {
                let ChannelDelete { id: thread } = read(data)?;
                let mut guilds = self.write();
                let guild = guilds.guild_of(thread);
                guilds.remove_channel(thread);
                Some(Event::ThreadDeleted { guild, thread })
            }
            "THREAD_LIST_SYNC" => Some(self.threads_synced(read(data)?)),
            "THREAD_MEMBER_UPDATE" => self.joined_thread(&read(data)?),
            "THREAD_MEMBERS_UPDATE" => self.thread_members(&read(data)?),
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => self.role_put(read(data)?),
            "GUILD_ROLE_DELETE" => self.role_deleted(&read(data)?),
            "GUILD_MEMBER_UPDATE" => {
                let (guild, member) = in_guild(data)?;
                guild.and_then(|guild| self.member_updated(guild, member))
            }
            _ => return Ok(None),
        };
        self.changed();
        Ok(event)
    }

    fn guild_created(&self, guild: PartialGuild) -> Event {
        let (id, parts) = (guild.id, guild.missing());
        let newest = guild.newest_messages();
        let mut guilds = self.write();
        guilds.put(guild);
        if parts.is_empty() {
            guilds.hearing.told(id);
            Event::GuildAvailable { guild: id, newest }
        } else {
            guilds.hearing.awaits(id);
            Event::GuildIncomplete { guild: id, parts }
        }
    }

    /// An outage: what we know is kept until the server is back.
    fn unavailable(&self, guild: GuildId) -> Event {
        self.write().hearing.awaits(guild);
        Event::GuildUnavailable(guild)
    }

    fn guild_updated(&self, update: PartialGuild) -> Option<Event> {
        let mut guilds = self.write();
        let known = guilds.guild_mut(update.id)?;
        let owner_before = known.owner_id;
        known.name = update.name;
        known.owner_id = update.owner_id.or(owner_before);
        let has_roles = !update.roles.is_empty();
        let changed = has_roles && known.replace_roles(update.roles);
        (changed || known.owner_id != owner_before).then_some(permissions_changed(update.id))
    }

    fn guild_deleted(&self, deleted: &Availability) -> Event {
        if deleted.unavailable == Some(true) {
            return self.unavailable(deleted.id);
        }
        self.write().remove(deleted.id);
        Event::GuildRemoved(deleted.id)
    }

    fn channel_put(&self, guild: GuildId, channel: PartialChannel) -> Option<Event> {
        let now = channel.permission_overwrites.clone();
        let before = self.write().put_channel(guild, channel)?;
        (before.permission_overwrites != now).then_some(permissions_changed(guild))
    }

    fn channel_deleted(&self, deleted: &ChannelDelete) -> Event {
        let channel = deleted.id;
        let mut guilds = self.write();
        let guild = guilds.guild_of(channel);
        guilds.remove_channel(channel);
        let threads = guild.map(|guild| guilds.remove_threads(guild, Some(&[channel])));
        Event::ChannelDeleted {
            guild,
            channel,
            threads: threads.unwrap_or_default(),
        }
    }

    fn thread_created(
        &self,
        guild: Option<GuildId>,
        thread: PartialChannel,
        create: &ThreadCreate,
    ) -> Event {
        let channel = thread.id;
        if let Some(guild) = guild {
            self.write().put_channel(guild, thread);
        }
        Event::ThreadCreated {
            channel,
            newly_created: create.newly_created,
        }
    }

    fn thread_updated(&self, guild: GuildId, mut thread: PartialChannel) {
        let mut guilds = self.write();
        // THREAD_UPDATE does not repeat our membership.
        let known = guilds.channel(thread.id).and_then(|known| known.member);
        thread.member = thread.member.or(known);
        guilds.put_channel(guild, thread);
    }

    fn threads_synced(&self, list: ThreadListSync) -> Event {
        let mut guilds = self.write();
        guilds.remove_threads(list.guild_id, list.channel_ids.as_deref());
        for mut thread in list.threads {
            let ours = list
                .members
                .iter()
                .any(|member| member.id == Some(thread.id));
            if ours {
                thread.member = Some(PartialThreadMember {});
            }
            guilds.put_channel(list.guild_id, thread);
        }
        permissions_changed(list.guild_id)
    }

    fn joined_thread(&self, member: &ThreadMember) -> Option<Event> {
        let mut guilds = self.write();
        let thread = guilds.channel_mut(member.id?)?;
        let changed = thread.member.replace(PartialThreadMember {}).is_none();
        changed.then_some(permissions_changed(member.guild_id?))
    }

    fn thread_members(&self, change: &ThreadMembersUpdate) -> Option<Event> {
        let mut guilds = self.write();
        let us = guilds.us.as_ref().map(|us| us.user);
        let thread = guilds.channel_mut(change.id)?;
        let mut added = change.added_members.iter();
        if us.is_some() && added.any(|member| member.user_id == us) {
            thread.member = Some(PartialThreadMember {});
        }
        let mut removed = change.removed_member_ids.iter();
        if removed.any(|user| Some(*user) == us) {
            thread.member = None;
        }
        let is_private = thread.kind() == ChannelKind::PrivateThread;
        is_private.then_some(permissions_changed(change.guild_id))
    }

    fn role_put(&self, change: GuildRole) -> Option<Event> {
        let (role, permissions) = (change.role.id, change.role.permissions);
        let mut guilds = self.write();
        let guild = guilds.guild_mut(change.guild_id)?;
        let before = guild.roles.insert(role, change.role)?;
        (before.permissions != permissions).then_some(permissions_changed(change.guild_id))
    }

    fn role_deleted(&self, gone: &GuildRoleDelete) -> Option<Event> {
        let mut guilds = self.write();
        let known = guilds.guild_mut(gone.guild_id)?;
        let was_known = known.roles.remove(&gone.role_id).is_some();
        // Nothing else says that we lost it.
        let ours = known.our_roles.iter_mut();
        let ours = ours.flat_map(|ours| ours.extract_if(.., |role| *role == gone.role_id));
        let was_ours = ours.count() > 0;
        (was_known || was_ours).then_some(permissions_changed(gone.guild_id))
    }

    fn member_updated(&self, guild: GuildId, member: PartialMember) -> Option<Event> {
        let mut guilds = self.write();
        let before = guilds.guild(guild)?.our_roles.clone();
        guilds.meet(guild, member);
        let changed = guilds.guild(guild)?.our_roles != before;
        changed.then_some(permissions_changed(guild))
    }
}

/// Whether an event may change who may read what, apart from what becomes of single members.
fn is_of_rights(event_type: &str) -> bool {
    let of = ["GUILD_UPDATE", "GUILD_ROLE_", "CHANNEL_", "THREAD_"];
    of.iter().any(|of| event_type.starts_with(of)) && event_type != "CHANNEL_PINS_UPDATE"
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

/// An object and the server its event names beside it. Parsed twice, since raw
/// values do not work with serde's `flatten`.
fn in_guild<T: DeserializeOwned>(data: &str) -> Result<(Option<GuildId>, T), serde_json::Error> {
    let InGuild { guild_id } = read(data)?;
    Ok((guild_id, read(data)?))
}

/// A server's id, and whether it is out of order.
#[derive(Deserialize)]
struct Availability {
    id: GuildId,
    unavailable: Option<bool>,
}

#[derive(Deserialize)]
struct InGuild {
    guild_id: Option<GuildId>,
}

#[derive(Deserialize)]
struct ChannelDelete {
    id: ChannelId,
}

#[derive(Deserialize)]
struct ThreadCreate {
    #[serde(default)]
    newly_created: bool,
}

#[derive(Deserialize)]
struct ThreadListSync {
    guild_id: GuildId,
    channel_ids: Option<Vec<ChannelId>>,
    #[serde(default)]
    threads: Vec<PartialChannel>,
    #[serde(default)]
    members: Vec<ThreadMember>,
}

#[derive(Deserialize)]
struct ThreadMember {
    id: Option<ChannelId>,
    guild_id: Option<GuildId>,
    user_id: Option<UserId>,
}

#[derive(Deserialize)]
struct ThreadMembersUpdate {
    id: ChannelId,
    guild_id: GuildId,
    #[serde(default)]
    added_members: Vec<ThreadMember>,
    #[serde(default)]
    removed_member_ids: Vec<UserId>,
}

#[derive(Deserialize)]
struct GuildRole {
    guild_id: GuildId,
    role: PartialRole,
}

#[derive(Deserialize)]
struct GuildRoleDelete {
    guild_id: GuildId,
    role_id: RoleId,
}
