//! The events that change the facts.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Facts;
use super::lean::{LeanChannel, LeanGuild, LeanMember, LeanRole, LeanThreadMember};
use super::world::{World, kind};
use crate::event::Event;
use clew_context::model::{ChannelId, ChannelKind, GuildId, RoleId, UserId};

impl Facts {
    /// Takes in one dispatch (`t` and the text of `d`) and says what others
    /// have to know of it. Other types than those of servers, channels,
    /// threads, roles and members change nothing.
    pub fn apply(&self, event_type: &str, data: &str) -> Option<Event> {
        let mut event = self.take(event_type, data);
        if let Some(Event::PermissionsChanged { guild, hidden }) = &mut event {
            *hidden = self.hidden_of(*guild);
        }
        event
    }

    fn take(&self, event_type: &str, data: &str) -> Option<Event> {
        match event_type {
            "GUILD_CREATE" => {
                let head: Deleted = read(event_type, data)?;
                if head.unavailable == Some(true) {
                    return Some(Event::GuildUnavailable(head.id));
                }
                read(event_type, data).map(|guild| self.guild_created(guild))
            }
            "GUILD_UPDATE" => read(event_type, data).and_then(|guild| self.guild_updated(guild)),
            "GUILD_DELETE" => read(event_type, data).map(|guild| self.guild_deleted(&guild)),
            "CHANNEL_CREATE" | "CHANNEL_UPDATE" => {
                placed(event_type, data).and_then(|channel| self.channel_put(channel))
            }
            "CHANNEL_DELETE" => read(event_type, data).map(|gone: Gone| {
                let threads = self.write().remove_channel(gone.id);
                Event::ChannelDeleted {
                    channel: gone.id,
                    threads,
                }
            }),
            "THREAD_CREATE" => placed(event_type, data).map(|thread| self.thread_created(thread)),
            "THREAD_UPDATE" => placed(event_type, data).and_then(|thread| self.thread_put(thread)),
            "THREAD_DELETE" => read(event_type, data).map(|gone: Gone| {
                self.write().remove_channel(gone.id);
                Event::ThreadDeleted(gone.id)
            }),
            "THREAD_LIST_SYNC" => read(event_type, data).map(|list| self.threads_synced(list)),
            "THREAD_MEMBER_UPDATE" => {
                read(event_type, data).and_then(|member| self.joined_thread(&member))
            }
            "THREAD_MEMBERS_UPDATE" => {
                read(event_type, data).and_then(|change| self.thread_members(&change))
            }
            "GUILD_ROLE_CREATE" | "GUILD_ROLE_UPDATE" => {
                read(event_type, data).and_then(|change| self.role_put(change))
            }
            "GUILD_ROLE_DELETE" => read(event_type, data).and_then(|gone| self.role_deleted(&gone)),
            "GUILD_MEMBER_UPDATE" => {
                let home: Home = read(event_type, data)?;
                let member = read(event_type, data)?;
                self.member_updated(home.guild_id?, member)
            }
            _ => None,
        }
    }

    fn guild_created(&self, guild: LeanGuild) -> Event {
        let (id, whole) = (guild.id, guild.is_whole());
        let built = guild.into();
        self.write().put(built);
        if whole {
            Event::GuildAvailable(id)
        } else {
            Event::GuildIncomplete(id)
        }
    }

    fn guild_updated(&self, update: LeanGuild) -> Option<Event> {
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
            // An outage: what is known stays until the server comes back.
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
                thread.member = Some(LeanThreadMember {});
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

    fn member_updated(&self, guild: GuildId, member: LeanMember) -> Option<Event> {
        let mut world = self.write();
        world.guild(guild)?;
        let before = world.our_roles(guild);
        world.meet(guild, member);
        (world.our_roles(guild) != before).then_some(permissions_changed(guild))
    }
}

impl World {
    /// Says whether the answer changed; nothing for an unknown thread.
    fn set_joined(&mut self, thread: ChannelId, joined: bool) -> Option<bool> {
        let mut channel = self.channel(thread)?.value().clone();
        let before = channel.member.is_some();
        channel.member = joined.then_some(LeanThreadMember {});
        let posted = self.posted(thread);
        self.put_channel(channel.guild_id?, channel);
        // This is no count of Discord's.
        self.count(thread, posted);
        Some(before != joined)
    }
}

/// What is hidden is looked up when the event is taken in.
fn permissions_changed(guild: GuildId) -> Event {
    Event::PermissionsChanged {
        guild,
        hidden: Vec::new(),
    }
}

/// Reads an event; one that cannot be read leaves the facts as they are.
fn read<T: DeserializeOwned>(event_type: &str, data: &str) -> Option<T> {
    match serde_json::from_str(data) {
        Ok(event) => Some(event),
        Err(error) => {
            tracing::warn!(event_type, %error, "an event of a server could not be read");
            None
        }
    }
}

/// Reads a channel event in two goes: raw values do not pass serde's flatten.
fn placed(event_type: &str, data: &str) -> Option<Placed> {
    Some(Placed {
        home: read(event_type, data)?,
        channel: read(event_type, data)?,
    })
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

/// A channel and what its event says beside it.
struct Placed {
    home: Home,
    channel: LeanChannel,
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
    threads: Vec<LeanChannel>,
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
    role: LeanRole,
}

#[derive(Deserialize)]
struct RoleGone {
    guild_id: GuildId,
    role_id: RoleId,
}
