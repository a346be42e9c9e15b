//! What twilight's cache stores: our partial models. Its own cannot be
//! deserialised, so they could not be restored after a RESUME in a new process,
//! and they take 1.2 KB per channel and thread that nothing reads.

use twilight_cache_inmemory::model::{
    CachedEmoji, CachedMember, CachedMessage, CachedPresence, CachedSticker, CachedVoiceState,
};
use twilight_cache_inmemory::{
    CacheableChannel, CacheableGuild, CacheableModels, CacheableRole, InMemoryCache, ResourceType,
};
use twilight_model::channel::permission_overwrite::PermissionOverwrite;
use twilight_model::channel::{Channel, ChannelType, StageInstance};
use twilight_model::gateway::payload::incoming::GuildUpdate;
use twilight_model::guild::scheduled_event::GuildScheduledEvent;
use twilight_model::guild::{Guild, GuildIntegration, Role};
use twilight_model::id::Id;
use twilight_model::id::marker::{ChannelMarker, GuildMarker, RoleMarker, UserMarker};
use twilight_model::user::{CurrentUser, User};
use twilight_model::util::Timestamp;

use super::build::id;
use super::partial::{
    Bits, PartialChannel, PartialGuild, PartialOverwrite, PartialRole, PartialRoleTags, PartialTag,
    PartialThread, PartialThreadMember,
};
use clew_context::model::{ChannelId, GuildId, RoleId, TagId, UserId};

/// twilight's cache of servers, channels, threads, roles and our own members.
pub(super) type Cache = InMemoryCache<Kept>;

/// An empty cache; messages go to the window instead.
pub(super) fn cache() -> Cache {
    Cache::builder()
        .resource_types(
            ResourceType::GUILD | ResourceType::CHANNEL | ResourceType::ROLE | ResourceType::MEMBER,
        )
        .build()
}

/// The cache's model types.
#[derive(Debug, Clone)]
pub(super) struct Kept;

impl CacheableModels for Kept {
    type Channel = PartialChannel;
    type CurrentUser = CurrentUser;
    type Emoji = CachedEmoji;
    type Guild = PartialGuild;
    type GuildIntegration = GuildIntegration;
    type GuildScheduledEvent = GuildScheduledEvent;
    type Member = CachedMember;
    type Message = CachedMessage;
    type Presence = CachedPresence;
    type Role = PartialRole;
    type StageInstance = StageInstance;
    type Sticker = CachedSticker;
    type User = User;
    type VoiceState = CachedVoiceState;
}

impl From<Channel> for PartialChannel {
    fn from(channel: Channel) -> Self {
        let thread = channel.thread_metadata;
        let tags = channel.available_tags.unwrap_or_default().into_iter();
        let applied = channel.applied_tags.unwrap_or_default().into_iter();
        Self {
            id: ChannelId::new(channel.id.get()),
            guild_id: channel.guild_id.map(|guild| GuildId::new(guild.get())),
            kind: channel.kind.into(),
            name: channel.name.unwrap_or_default(),
            parent_id: channel.parent_id.map(|parent| ChannelId::new(parent.get())),
            owner_id: channel.owner_id.map(|owner| UserId::new(owner.get())),
            permission_overwrites: channel
                .permission_overwrites
                .map(|overwrites| overwrites.iter().map(PartialOverwrite::from).collect()),
            available_tags: tags
                .map(|tag| PartialTag {
                    id: TagId::new(tag.id.get()),
                    name: tag.name,
                })
                .collect(),
            applied_tags: applied.map(|tag| TagId::new(tag.get())).collect(),
            thread_metadata: thread.map_or_else(PartialThread::default, |thread| PartialThread {
                archived: thread.archived,
                locked: thread.locked,
            }),
            message_count: channel.message_count,
            member: channel.member.map(|_| PartialThreadMember {}),
        }
    }
}

impl From<&PermissionOverwrite> for PartialOverwrite {
    fn from(overwrite: &PermissionOverwrite) -> Self {
        Self {
            id: RoleId::new(overwrite.id.get()),
            kind: overwrite.kind.into(),
            allow: Bits(overwrite.allow.bits()),
            deny: Bits(overwrite.deny.bits()),
        }
    }
}

impl PartialEq<Channel> for PartialChannel {
    fn eq(&self, channel: &Channel) -> bool {
        let kept = Self::from(channel.clone());
        *self == kept
    }
}

impl CacheableChannel for PartialChannel {
    fn guild_id(&self) -> Option<Id<GuildMarker>> {
        self.guild_id.map(|guild| id(guild.get()))
    }

    fn kind(&self) -> ChannelType {
        self.kind.into()
    }

    fn id(&self) -> Id<ChannelMarker> {
        id(self.id.get())
    }

    fn set_last_pin_timestamp(&mut self, _: Option<Timestamp>) {}
}

impl From<Role> for PartialRole {
    fn from(role: Role) -> Self {
        let bot = role.tags.and_then(|tags| tags.bot_id);
        Self {
            id: RoleId::new(role.id.get()),
            name: role.name,
            permissions: Bits(role.permissions.bits()),
            tags: PartialRoleTags {
                bot_id: bot.map(|bot| UserId::new(bot.get())),
            },
        }
    }
}

impl PartialEq<Role> for PartialRole {
    fn eq(&self, role: &Role) -> bool {
        let kept = Self::from(role.clone());
        *self == kept
    }
}

impl CacheableRole for PartialRole {
    /// Not stored: nothing asks which role is highest.
    fn position(&self) -> i64 {
        0
    }

    fn id(&self) -> Id<RoleMarker> {
        id(self.id.get())
    }
}

/// Undoes `build::guild`: the server's own id means an unknown owner.
fn owner(guild: Id<GuildMarker>, owner: Id<UserMarker>) -> Option<UserId> {
    (owner.get() != guild.get()).then(|| UserId::new(owner.get()))
}

/// The server alone; the cache stores its contents separately.
impl From<Guild> for PartialGuild {
    fn from(guild: Guild) -> Self {
        Self {
            id: GuildId::new(guild.id.get()),
            owner_id: owner(guild.id, guild.owner_id),
            name: guild.name,
            roles: Vec::new(),
            channels: Vec::new(),
            threads: Vec::new(),
            members: Vec::new(),
        }
    }
}

impl PartialEq<Guild> for PartialGuild {
    fn eq(&self, guild: &Guild) -> bool {
        let kept = Self::from(guild.clone());
        *self == kept
    }
}

impl CacheableGuild for PartialGuild {
    fn id(&self) -> Id<GuildMarker> {
        id(self.id.get())
    }

    fn set_unavailable(&mut self, _: Option<bool>) {}

    fn update_with_guild_update(&mut self, update: &GuildUpdate) {
        self.name.clone_from(&update.name);
        self.owner_id = owner(update.id, update.owner_id);
    }

    fn increase_member_count(&mut self, _: u64) {}

    fn decrease_member_count(&mut self, _: u64) {}
}
