//! Discord's message object, the fields we read. Unknown fields are skipped;
//! every known one is optional.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::part::{Count, List, Object, Part, Text};
use crate::model::{ApplicationId, ChannelId, GuildId, MessageId, RoleId, UserId};

/// Declares objects of Discord's by the fields that we read, each of them a [`Part`].
macro_rules! wire {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $field:ident: $type:ty,)+
    })+) => {$(
        $(#[$doc])*
        #[derive(Deserialize, Default)]
        #[serde(bound(deserialize = "'de: 'a"), default)]
        pub(super) struct $name<'a> {
            $($(#[$field_doc])* pub(super) $field: Part<$type>,)+
        }
    )+};
}
pub(super) use wire;

/// The message object (Discord's reference, "Message Object"), with the fields
/// that gateway events add. `R` is the type of the message it replies to.
#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a, R: Deserialize<'de> + Default"), default)]
pub(super) struct WireMessage<'a, R = WireReferenced<'a>> {
    pub(super) id: Part<MessageId>,
    pub(super) channel_id: Part<ChannelId>,
    pub(super) guild_id: Part<GuildId>,
    pub(super) channel_type: Part<u8>,
    pub(super) r#type: Part<u16>,
    pub(super) author: Part<WireUser<'a>>,
    pub(super) member: Part<WireMember<'a>>,
    pub(super) webhook_id: Part<UserId>,
    pub(super) application_id: Part<ApplicationId>,
    pub(super) timestamp: Part<Text<'a>>,
    pub(super) edited_timestamp: Part<Text<'a>>,
    pub(super) flags: Part<Count>,
    pub(super) content: Part<Text<'a>>,
    pub(super) message_reference: Part<WireReference>,
    pub(super) referenced_message: Part<R>,
    pub(super) mentions: Part<List<WireUser<'a>>>,
    pub(super) mention_roles: Part<List<RoleId>>,
    pub(super) embeds: Part<List<WireEmbed<'a>>>,
    pub(super) attachments: Part<List<WireAttachment<'a>>>,
    pub(super) sticker_items: Part<List<WireTexts<'a>>>,
    pub(super) poll: Part<WirePoll<'a>>,
    pub(super) components: Part<List<WireComponent<'a>>>,
    pub(super) message_snapshots: Part<List<WireSnapshot<'a>>>,
}

/// The message replied to; its own reference is not read. Never `None`.
pub(super) type WireReferenced<'a> = Option<Object<Box<WireMessage<'a, IgnoredAny>>>>;

wire! {
    /// A user: an author or somebody mentioned.
    WireUser {
        id: UserId,
        username: Text<'a>,
        global_name: Text<'a>,
        bot: bool,
        /// Only present for users mentioned in gateway events.
        member: WireMember<'a>,
    }
    /// A user's data in a server.
    WireMember {
        nick: Text<'a>,
        roles: List<RoleId>,
        communication_disabled_until: Text<'a>,
    }
    /// Any small object of which we only read texts; each kind has some of them.
    WireTexts {
        name: Text<'a>,
        value: Text<'a>,
        text: Text<'a>,
        label: Text<'a>,
        description: Text<'a>,
    }
    WireEmbed {
        provider: WireTexts<'a>,
        author: WireTexts<'a>,
        title: Text<'a>,
        url: Text<'a>,
        description: Text<'a>,
        fields: List<WireTexts<'a>>,
        footer: WireTexts<'a>,
        image: &'a RawValue,
        video: &'a RawValue,
        thumbnail: &'a RawValue,
    }
    WireAttachment {
        filename: Text<'a>,
        content_type: Text<'a>,
        size: Count,
        url: Text<'a>,
        description: Text<'a>,
    }
    WirePoll {
        question: WireTexts<'a>,
        answers: List<WirePollAnswer<'a>>,
        results: WirePollResults,
    }
    WirePollAnswer {
        answer_id: u64,
        poll_media: WireTexts<'a>,
    }
    /// A component of any type, old or new. Its children are read one level at a
    /// time, so that deep nesting cannot exhaust the stack.
    WireComponent {
        content: Text<'a>,
        label: Text<'a>,
        placeholder: Text<'a>,
        description: Text<'a>,
        name: Text<'a>,
        options: List<WireTexts<'a>>,
        items: List<WireTexts<'a>>,
        components: &'a RawValue,
        component: &'a RawValue,
        accessory: &'a RawValue,
    }
    WireSnapshot {
        message: WireSnapshotMessage<'a>,
    }
    /// A forwarded message (Discord's reference, "Message Snapshot Structure").
    WireSnapshotMessage {
        content: Text<'a>,
        timestamp: Text<'a>,
        embeds: List<WireEmbed<'a>>,
        attachments: List<WireAttachment<'a>>,
        sticker_items: List<WireTexts<'a>>,
        components: List<WireComponent<'a>>,
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireReference {
    pub(super) r#type: Part<u8>,
    pub(super) message_id: Part<MessageId>,
    pub(super) channel_id: Part<ChannelId>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WirePollResults {
    pub(super) answer_counts: Part<List<WirePollCount>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WirePollCount {
    pub(super) id: Part<u64>,
    pub(super) count: Part<u64>,
}
