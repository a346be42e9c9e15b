//! Discord's message object, the fields we read. Unknown fields are skipped;
//! every known one is optional.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::part::{Count, List, Object, Part, Text};
use crate::model::{ApplicationId, ChannelId, GuildId, MessageId, RoleId, UserId};

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
    pub(super) sticker_items: Part<List<WireNamed<'a>>>,
    pub(super) poll: Part<WirePoll<'a>>,
    pub(super) components: Part<List<WireComponent<'a>>>,
    pub(super) message_snapshots: Part<List<WireSnapshot<'a>>>,
}

/// The message replied to; its own reference is not read. Never `None`.
pub(super) type WireReferenced<'a> = Option<Object<Box<WireMessage<'a, IgnoredAny>>>>;

/// A user: an author or somebody mentioned.
#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireUser<'a> {
    pub(super) id: Part<UserId>,
    pub(super) username: Part<Text<'a>>,
    pub(super) global_name: Part<Text<'a>>,
    pub(super) bot: Part<bool>,
    /// Only present for users mentioned in gateway events.
    pub(super) member: Part<WireMember<'a>>,
}

/// A user's data in a server.
#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireMember<'a> {
    pub(super) nick: Part<Text<'a>>,
    pub(super) roles: Part<List<RoleId>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireReference {
    pub(super) r#type: Part<u8>,
    pub(super) message_id: Part<MessageId>,
    pub(super) channel_id: Part<ChannelId>,
}

/// Any object of which we only read the name.
#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireNamed<'a> {
    pub(super) name: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireEmbed<'a> {
    pub(super) provider: Part<WireNamed<'a>>,
    pub(super) author: Part<WireNamed<'a>>,
    pub(super) title: Part<Text<'a>>,
    pub(super) url: Part<Text<'a>>,
    pub(super) description: Part<Text<'a>>,
    pub(super) fields: Part<List<WireEmbedField<'a>>>,
    pub(super) footer: Part<WireFooter<'a>>,
    pub(super) image: Part<&'a RawValue>,
    pub(super) video: Part<&'a RawValue>,
    pub(super) thumbnail: Part<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireEmbedField<'a> {
    pub(super) name: Part<Text<'a>>,
    pub(super) value: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireFooter<'a> {
    pub(super) text: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireAttachment<'a> {
    pub(super) filename: Part<Text<'a>>,
    pub(super) content_type: Part<Text<'a>>,
    pub(super) size: Part<Count>,
    pub(super) url: Part<Text<'a>>,
    pub(super) description: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WirePoll<'a> {
    pub(super) question: Part<WirePollMedia<'a>>,
    pub(super) answers: Part<List<WirePollAnswer<'a>>>,
    pub(super) results: Part<WirePollResults>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WirePollMedia<'a> {
    pub(super) text: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WirePollAnswer<'a> {
    pub(super) answer_id: Part<u64>,
    pub(super) poll_media: Part<WirePollMedia<'a>>,
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

/// A component of any type, old or new. Its children are read one level at a
/// time, so that deep nesting cannot exhaust the stack.
#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireComponent<'a> {
    pub(super) content: Part<Text<'a>>,
    pub(super) label: Part<Text<'a>>,
    pub(super) placeholder: Part<Text<'a>>,
    pub(super) description: Part<Text<'a>>,
    pub(super) name: Part<Text<'a>>,
    pub(super) options: Part<List<WireOption<'a>>>,
    pub(super) items: Part<List<WireGalleryItem<'a>>>,
    pub(super) components: Part<&'a RawValue>,
    pub(super) component: Part<&'a RawValue>,
    pub(super) accessory: Part<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireOption<'a> {
    pub(super) label: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireGalleryItem<'a> {
    pub(super) description: Part<Text<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireSnapshot<'a> {
    pub(super) message: Part<WireSnapshotMessage<'a>>,
}

/// A forwarded message (Discord's reference, "Message Snapshot Structure").
#[derive(Deserialize, Default)]
#[serde(bound(deserialize = "'de: 'a"), default)]
pub(super) struct WireSnapshotMessage<'a> {
    pub(super) content: Part<Text<'a>>,
    pub(super) timestamp: Part<Text<'a>>,
    pub(super) embeds: Part<List<WireEmbed<'a>>>,
    pub(super) attachments: Part<List<WireAttachment<'a>>>,
    pub(super) sticker_items: Part<List<WireNamed<'a>>>,
    pub(super) components: Part<List<WireComponent<'a>>>,
}
