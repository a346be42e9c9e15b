//! Servers, channels and roles, reduced to the fields our rules read and under
//! Discord's field names. Read leniently, item by item, from events and REST,
//! so that one odd channel never costs a server; written as they are to the
//! session file.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::lenient::{each, lenient};
use clew_context::engine::place::kept_topic;
use clew_context::model::{
    Channel, ChannelId, ChannelKind, GuildId, MessageId, Overwrite, OverwriteTarget, RoleId, TagId,
    UserId,
};

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialGuild {
    /// Its id.
    pub id: GuildId,
    /// Its name.
    #[serde(default, deserialize_with = "lenient")]
    pub name: String,
    /// The owner, unless that could not be read.
    #[serde(default, deserialize_with = "lenient")]
    pub owner_id: Option<UserId>,
    /// Its roles, including @everyone.
    #[serde(default, deserialize_with = "each")]
    pub roles: Vec<PartialRole>,
    /// Its channels.
    #[serde(default, deserialize_with = "each")]
    pub channels: Vec<PartialChannel>,
    /// Active threads that we may see.
    #[serde(default, deserialize_with = "each")]
    pub threads: Vec<PartialChannel>,
    /// The members Discord reported, including ourselves.
    #[serde(default, deserialize_with = "each")]
    pub members: Vec<PartialMember>,
}

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialRole {
    /// Its id.
    pub id: RoleId,
    /// Its name.
    #[serde(default, deserialize_with = "lenient")]
    pub name: String,
    /// Permission bits; none if they could not be read.
    #[serde(default, deserialize_with = "lenient")]
    pub permissions: Bits,
    /// The bot whose managed role it is.
    #[serde(default, deserialize_with = "lenient")]
    pub tags: PartialRoleTags,
}

/// A role's tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartialRoleTags {
    /// The bot whose managed role it is.
    pub bot_id: Option<UserId>,
}

/// A channel or thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialChannel {
    /// Its id.
    pub id: ChannelId,
    /// Discord's number of its type; see [`PartialChannel::kind`].
    #[serde(rename = "type")]
    pub type_number: u8,
    /// Its name.
    #[serde(default, deserialize_with = "lenient")]
    pub name: String,
    /// Its topic, of a forum its guidelines; at most [`Channel::TOPIC_CHARS`].
    #[serde(
        default,
        deserialize_with = "topic",
        skip_serializing_if = "String::is_empty"
    )]
    pub topic: String,
    /// A channel's category, or a thread's parent channel.
    #[serde(default, deserialize_with = "lenient")]
    pub parent_id: Option<ChannelId>,
    /// Who opened the thread.
    #[serde(default, deserialize_with = "lenient")]
    pub owner_id: Option<UserId>,
    /// Whether a channel is age-restricted; a thread's channel says it for the thread. Discord
    /// leaves it out where it is not.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub nsfw: bool,
    /// Absent when any of them could not be read: then only the owner's and
    /// administrators' permissions are known.
    #[serde(default = "no_overwrites", deserialize_with = "overwrites")]
    pub permission_overwrites: Option<Vec<PartialOverwrite>>,
    /// Tags a forum offers.
    #[serde(default, deserialize_with = "each")]
    pub available_tags: Vec<PartialTag>,
    /// Tags on a forum post.
    #[serde(default, deserialize_with = "each")]
    pub applied_tags: Vec<TagId>,
    /// State of a thread.
    #[serde(default, deserialize_with = "lenient")]
    pub thread_metadata: PartialThread,
    /// Messages in a thread, as Discord counted them.
    #[serde(default, deserialize_with = "lenient")]
    pub message_count: Option<u32>,
    /// The newest message as of the event; not kept up to date.
    #[serde(default, deserialize_with = "lenient", skip_serializing)]
    pub last_message_id: Option<MessageId>,
    /// Present if we are a member of the thread.
    #[serde(default, deserialize_with = "lenient")]
    pub member: Option<PartialThreadMember>,
}

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartialThread {
    /// Archived.
    #[serde(default)]
    pub archived: bool,
    /// Locked.
    #[serde(default)]
    pub locked: bool,
}

/// Our membership of a thread; only its presence matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PartialThreadMember {}

/// A forum tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialTag {
    /// Its id.
    pub id: TagId,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// A permission overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialOverwrite {
    /// The role's or the member's id.
    pub id: RoleId,
    /// 0 for a role, 1 for a member.
    #[serde(rename = "type")]
    pub kind: u8,
    /// Permissions granted.
    pub allow: Bits,
    /// Permissions denied.
    pub deny: Bits,
}

/// A member of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialMember {
    /// The member's user.
    pub user: PartialUser,
    /// Nickname in this server.
    #[serde(default, deserialize_with = "lenient")]
    pub nick: Option<String>,
    /// Roles other than @everyone.
    #[serde(default, deserialize_with = "each")]
    pub roles: Vec<RoleId>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialUser {
    /// Its id.
    pub id: UserId,
    /// Account name.
    #[serde(default, deserialize_with = "lenient")]
    pub username: String,
    /// Display name.
    #[serde(default, deserialize_with = "lenient")]
    pub global_name: Option<String>,
}

/// Permission bits, sent by Discord as a decimal string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bits(pub u64);

impl Serialize for Bits {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Fails if a newer bit does not fit 64 bits, as reading an id would.
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

impl PartialGuild {
    /// The newest message of each channel and active thread.
    pub fn newest_messages(&self) -> Vec<(ChannelId, MessageId)> {
        let channels = self.channels.iter().chain(&self.threads);
        let newest = channels.map(|one| Some((one.id, one.last_message_id?)));
        newest.flatten().collect()
    }

    /// The missing parts without which no permissions can be computed.
    pub fn missing(&self) -> Vec<&'static str> {
        let everyone = RoleId::new(self.id.get());
        let parts = [
            ("owner_id", self.owner_id.is_some()),
            ("channels", !self.channels.is_empty()),
            ("roles", self.roles.iter().any(|role| role.id == everyone)),
        ];
        let missing = parts.into_iter().filter(|(_, is_there)| !is_there);
        missing.map(|(part, _)| part).collect()
    }
}

/// The default for a channel without the field, such as a thread.
#[expect(clippy::unnecessary_wraps, reason = "serde wants the field's type")]
const fn no_overwrites() -> Option<Vec<PartialOverwrite>> {
    Some(Vec::new())
}

/// Cut, so that what a server writes there takes little room.
fn topic<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text: String = lenient(deserializer)?;
    Ok(kept_topic(&text))
}

/// All overwrites or none, since the one we cannot read may be the one that
/// hides the channel.
fn overwrites<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<PartialOverwrite>>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

impl PartialChannel {
    /// Its type.
    pub const fn kind(&self) -> ChannelKind {
        ChannelKind::from_number(self.type_number)
    }

    /// A thread as `clew-context` read it.
    pub(super) fn of_thread(thread: Channel) -> Self {
        let state = thread.thread.unwrap_or_default();
        Self {
            id: thread.id,
            type_number: thread.kind.number(),
            name: thread.name,
            topic: String::new(),
            parent_id: thread.parent,
            owner_id: state.owner,
            nsfw: false,
            permission_overwrites: no_overwrites(),
            available_tags: Vec::new(),
            applied_tags: state.applied_tags,
            thread_metadata: PartialThread {
                archived: state.archived,
                locked: state.locked,
            },
            message_count: state.message_count,
            last_message_id: None,
            member: None,
        }
    }

    /// The overwrites as `clew-context` takes them; absent if unreadable.
    pub fn overwrites(&self) -> Option<Vec<Overwrite>> {
        let partial = self.permission_overwrites.as_ref()?;
        let known = partial.iter().copied();
        Some(known.filter_map(PartialOverwrite::to_overwrite).collect())
    }
}

impl PartialMember {
    /// A member known by a single name.
    pub fn new(user: UserId, nick: Option<String>, roles: Vec<RoleId>) -> Self {
        Self {
            user: PartialUser {
                id: user,
                username: String::new(),
                global_name: None,
            },
            nick,
            roles,
        }
    }
}

impl PartialOverwrite {
    /// As `clew-context` takes it; `None` for a kind this version does not
    /// know.
    pub fn to_overwrite(self) -> Option<Overwrite> {
        let target = match self.kind {
            0 => OverwriteTarget::Role(self.id),
            1 => OverwriteTarget::Member(UserId::new(self.id.get())),
            _ => return None,
        };
        Some(Overwrite {
            target,
            allow: self.allow.0,
            deny: self.deny.0,
        })
    }
}
