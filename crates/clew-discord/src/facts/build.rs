//! Builds twilight's models from the partial ones, so that what reaches its cache
//! never depends on how strictly twilight parses JSON. Fields no rule of ours
//! reads are left empty.

use std::num::NonZeroU64;

use twilight_model::channel::Channel;
use twilight_model::channel::forum::ForumTag;
use twilight_model::channel::permission_overwrite::PermissionOverwrite;
use twilight_model::channel::thread::{AutoArchiveDuration, ThreadMember, ThreadMetadata};
use twilight_model::gateway::payload::incoming::GuildUpdate;
use twilight_model::guild::{
    AfkTimeout, DefaultMessageNotificationLevel, ExplicitContentFilter, Guild, Member, MemberFlags,
    MfaLevel, NSFWLevel, PartialGuild, Permissions, PremiumTier, Role, RoleColors, RoleFlags,
    RoleTags, SystemChannelFlags, VerificationLevel,
};
use twilight_model::id::Id;
use twilight_model::user::User;
use twilight_model::util::Timestamp;

use super::partial::{
    PartialChannel, PartialMember, PartialOverwrite, PartialRole, PartialTag, PartialThread,
};
use clew_context::model::{GuildId, UserId};

/// A twilight id. Discord never assigns zero; should it arrive anyway it
/// becomes 1, which is never assigned either.
pub(super) fn id<T>(number: u64) -> Id<T> {
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN).into()
}

/// A channel or thread of a server.
pub(super) fn channel(guild: GuildId, partial: PartialChannel) -> Channel {
    Channel {
        applied_tags: Some(
            partial
                .applied_tags
                .iter()
                .map(|tag| id(tag.get()))
                .collect(),
        ),
        available_tags: Some(partial.available_tags.into_iter().map(tag).collect()),
        guild_id: Some(id(guild.get())),
        id: id(partial.id.get()),
        kind: partial.kind.into(),
        member: partial.member.and_then(|_| thread_member()),
        message_count: partial.message_count,
        name: Some(partial.name),
        owner_id: partial.owner_id.map(|owner| id(owner.get())),
        parent_id: partial.parent_id.map(|parent| id(parent.get())),
        permission_overwrites: partial
            .permission_overwrites
            .map(|overwrites| overwrites.iter().map(overwrite).collect()),
        thread_metadata: thread_metadata(partial.thread_metadata),
        application_id: None,
        bitrate: None,
        default_auto_archive_duration: None,
        default_forum_layout: None,
        default_reaction_emoji: None,
        default_sort_order: None,
        default_thread_rate_limit_per_user: None,
        flags: None,
        icon: None,
        invitable: None,
        last_message_id: None,
        last_pin_timestamp: None,
        managed: None,
        member_count: None,
        newly_created: None,
        nsfw: None,
        position: None,
        rate_limit_per_user: None,
        recipients: None,
        rtc_region: None,
        topic: None,
        total_message_sent: None,
        user_limit: None,
        video_quality_mode: None,
    }
}

fn tag(partial: PartialTag) -> ForumTag {
    ForumTag {
        emoji_id: None,
        emoji_name: None,
        id: id(partial.id.get()),
        moderated: false,
        name: partial.name,
    }
}

fn overwrite(partial: &PartialOverwrite) -> PermissionOverwrite {
    PermissionOverwrite {
        allow: Permissions::from_bits_retain(partial.allow.0),
        deny: Permissions::from_bits_retain(partial.deny.0),
        id: id(partial.id.get()),
        kind: partial.kind.into(),
    }
}

/// twilight requires the timestamps; we do not know them, and nothing reads
/// them.
fn thread_metadata(partial: PartialThread) -> Option<ThreadMetadata> {
    Some(ThreadMetadata {
        archived: partial.archived,
        auto_archive_duration: AutoArchiveDuration::Day,
        archive_timestamp: Timestamp::from_secs(0).ok()?,
        create_timestamp: None,
        invitable: None,
        locked: partial.locked,
    })
}

fn thread_member() -> Option<ThreadMember> {
    Some(ThreadMember {
        flags: 0,
        id: None,
        join_timestamp: Timestamp::from_secs(0).ok()?,
        member: None,
        presence: None,
        user_id: None,
    })
}

/// A role.
#[expect(deprecated, reason = "the field has to be given a value")]
pub(super) fn role(partial: PartialRole) -> Role {
    let tags = RoleTags {
        available_for_purchase: false,
        bot_id: partial.tags.bot_id.map(|bot| id(bot.get())),
        guild_connections: false,
        integration_id: None,
        subscription_listing_id: None,
        premium_subscriber: false,
    };
    Role {
        color: 0,
        colors: RoleColors {
            primary_color: 0,
            secondary_color: None,
            tertiary_color: None,
        },
        hoist: false,
        icon: None,
        id: id(partial.id.get()),
        managed: false,
        mentionable: false,
        name: partial.name,
        permissions: Permissions::from_bits_retain(partial.permissions.0),
        position: 0,
        flags: RoleFlags::empty(),
        tags: Some(tags),
        unicode_emoji: None,
    }
}

/// Our own member with its roles; no other member is cached.
pub(super) fn member(partial: PartialMember) -> Member {
    Member {
        avatar: None,
        avatar_decoration_data: None,
        banner: None,
        communication_disabled_until: None,
        deaf: false,
        flags: MemberFlags::empty(),
        joined_at: None,
        mute: false,
        nick: partial.nick,
        pending: false,
        premium_since: None,
        roles: partial.roles.iter().map(|role| id(role.get())).collect(),
        user: User {
            accent_color: None,
            avatar: None,
            avatar_decoration: None,
            avatar_decoration_data: None,
            banner: None,
            bot: true,
            discriminator: 0,
            email: None,
            flags: None,
            global_name: partial.user.global_name,
            id: id(partial.user.id.get()),
            locale: None,
            mfa_enabled: None,
            name: partial.user.username,
            premium_type: None,
            primary_guild: None,
            public_flags: None,
            system: None,
            verified: None,
        },
    }
}

/// A server without its contents. If the owner could not be read, the server's
/// own id stands in, which is no user's.
pub(super) fn guild(guild: GuildId, name: String, owner: Option<UserId>) -> Guild {
    Guild {
        id: id(guild.get()),
        name,
        owner_id: id(owner.map_or(guild.get(), UserId::get)),
        afk_channel_id: None,
        afk_timeout: AfkTimeout::ONE_MINUTE,
        application_id: None,
        approximate_member_count: None,
        approximate_presence_count: None,
        banner: None,
        channels: Vec::new(),
        default_message_notifications: DefaultMessageNotificationLevel::All,
        description: None,
        discovery_splash: None,
        emojis: Vec::new(),
        explicit_content_filter: ExplicitContentFilter::None,
        features: Vec::new(),
        guild_scheduled_events: Vec::new(),
        icon: None,
        joined_at: None,
        large: false,
        max_members: None,
        max_presences: None,
        max_stage_video_channel_users: None,
        max_video_channel_users: None,
        member_count: None,
        members: Vec::new(),
        mfa_level: MfaLevel::None,
        nsfw_level: NSFWLevel::Default,
        owner: None,
        permissions: None,
        preferred_locale: String::new(),
        premium_progress_bar_enabled: false,
        premium_subscription_count: None,
        premium_tier: PremiumTier::None,
        presences: Vec::new(),
        public_updates_channel_id: None,
        roles: Vec::new(),
        rules_channel_id: None,
        safety_alerts_channel_id: None,
        splash: None,
        stage_instances: Vec::new(),
        stickers: Vec::new(),
        system_channel_flags: SystemChannelFlags::empty(),
        system_channel_id: None,
        threads: Vec::new(),
        unavailable: None,
        vanity_url_code: None,
        verification_level: VerificationLevel::None,
        voice_states: Vec::new(),
        widget_channel_id: None,
        widget_enabled: None,
    }
}

/// The name and owner of a server, as an update.
pub(super) fn guild_update(guild: GuildId, name: String, owner: Option<UserId>) -> GuildUpdate {
    GuildUpdate(PartialGuild {
        id: id(guild.get()),
        name,
        owner_id: id(owner.map_or(guild.get(), UserId::get)),
        afk_channel_id: None,
        afk_timeout: AfkTimeout::ONE_MINUTE,
        application_id: None,
        banner: None,
        default_message_notifications: DefaultMessageNotificationLevel::All,
        description: None,
        discovery_splash: None,
        emojis: Vec::new(),
        explicit_content_filter: ExplicitContentFilter::None,
        features: Vec::new(),
        icon: None,
        max_members: None,
        max_presences: None,
        member_count: None,
        mfa_level: MfaLevel::None,
        nsfw_level: NSFWLevel::Default,
        owner: None,
        permissions: None,
        preferred_locale: String::new(),
        premium_progress_bar_enabled: false,
        premium_subscription_count: None,
        premium_tier: PremiumTier::None,
        public_updates_channel_id: None,
        roles: Vec::new(),
        rules_channel_id: None,
        splash: None,
        system_channel_flags: SystemChannelFlags::empty(),
        system_channel_id: None,
        vanity_url_code: None,
        verification_level: VerificationLevel::None,
        widget_channel_id: None,
        widget_enabled: None,
    })
}
