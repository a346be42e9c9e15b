//! Servers, channels and roles reduced to what a rule of ours reads, under
//! Discord's field names: read leniently, item by item, from events and from
//! REST, so that one odd channel never costs a server, and written to the
//! session file as they are.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use clew_context::model::{ChannelId, GuildId, Overwrite, RoleId, TagId, Target, UserId};

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeanGuild {
    /// Its id.
    pub id: GuildId,
    /// Its name.
    #[serde(default, deserialize_with = "lenient")]
    pub name: String,
    /// Who owns it; nobody where that could not be read.
    #[serde(default, deserialize_with = "lenient")]
    pub owner_id: Option<UserId>,
    /// Its roles, everyone's among them.
    #[serde(default, deserialize_with = "each")]
    pub roles: Vec<LeanRole>,
    /// Its channels.
    #[serde(default, deserialize_with = "each")]
    pub channels: Vec<LeanChannel>,
    /// Its active threads that we may see.
    #[serde(default, deserialize_with = "each")]
    pub threads: Vec<LeanChannel>,
    /// The members that Discord told of, ourselves among them.
    #[serde(default, deserialize_with = "each")]
    pub members: Vec<LeanMember>,
}

/// A role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeanRole {
    /// Its id.
    pub id: RoleId,
    /// Its name.
    #[serde(default, deserialize_with = "lenient")]
    pub name: String,
    /// Permission bits, none where they could not be read.
    #[serde(default, deserialize_with = "lenient")]
    pub permissions: Bits,
    /// The bot whose managed role it is.
    #[serde(default, deserialize_with = "lenient")]
    pub tags: LeanRoleTags,
}

/// A role's tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeanRoleTags {
    /// The bot whose managed role it is.
    #[serde(default)]
    pub bot_id: Option<UserId>,
}

/// A channel or thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeanChannel {
    /// Its id.
    pub id: ChannelId,
    /// Its server; absent where the server stands around it.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub guild_id: Option<GuildId>,
    /// Discord's channel type.
    #[serde(rename = "type")]
    pub kind: u8,
    /// Its name.
    #[serde(default, deserialize_with = "lenient")]
    pub name: String,
    /// Its category, or a thread's channel.
    #[serde(default, deserialize_with = "lenient")]
    pub parent_id: Option<ChannelId>,
    /// Who opened the thread.
    #[serde(default, deserialize_with = "lenient")]
    pub owner_id: Option<UserId>,
    /// Overwrites; absent when one of them could not be read: then nothing is
    /// known of what anybody but the owner and administrators may do.
    #[serde(default = "no_overwrites", deserialize_with = "overwrites")]
    pub permission_overwrites: Option<Vec<LeanOverwrite>>,
    /// A forum's tags.
    #[serde(default, deserialize_with = "each")]
    pub available_tags: Vec<LeanTag>,
    /// A post's tags.
    #[serde(default, deserialize_with = "each")]
    pub applied_tags: Vec<TagId>,
    /// State of a thread.
    #[serde(default, deserialize_with = "lenient")]
    pub thread_metadata: LeanThread,
    /// Messages in a thread.
    #[serde(default, deserialize_with = "lenient")]
    pub message_count: Option<u32>,
    /// Present when we are a member of the thread.
    #[serde(default, deserialize_with = "lenient")]
    pub member: Option<LeanThreadMember>,
}

/// State of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeanThread {
    /// Archived.
    #[serde(default)]
    pub archived: bool,
    /// Locked.
    #[serde(default)]
    pub locked: bool,
}

/// Our membership of a thread; its mere presence counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeanThreadMember {}

/// A forum tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeanTag {
    /// Its id.
    pub id: TagId,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// A permission overwrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeanOverwrite {
    /// Of a role or a member.
    pub id: RoleId,
    /// 0 a role, 1 a member.
    #[serde(rename = "type")]
    pub kind: u8,
    /// Bits given.
    pub allow: Bits,
    /// Bits taken.
    pub deny: Bits,
}

/// A member of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeanMember {
    /// Who.
    pub user: LeanUser,
    /// Name in this server.
    #[serde(default, deserialize_with = "lenient")]
    pub nick: Option<String>,
    /// Roles beside everyone's.
    #[serde(default, deserialize_with = "each")]
    pub roles: Vec<RoleId>,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeanUser {
    /// Its id.
    pub id: UserId,
    /// The account's name.
    #[serde(default, deserialize_with = "lenient")]
    pub username: String,
    /// The name it shows.
    #[serde(default, deserialize_with = "lenient")]
    pub global_name: Option<String>,
}

/// Permission bits, a decimal string on Discord's wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bits(pub u64);

impl Serialize for Bits {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Newer bits may pass what 64 hold: an id's reader refuses those too.
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

impl LeanGuild {
    /// The parts that are missing without which nobody's permissions can be judged.
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

/// Anything unreadable becomes the default.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// A list without the items that cannot be read.
pub(crate) fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items: Vec<Box<RawValue>> = lenient(deserializer)?;
    Ok(items
        .iter()
        .filter_map(|item| serde_json::from_str(item.get()).ok())
        .collect())
}

/// A channel without the field, such as a thread, has none.
#[expect(clippy::unnecessary_wraps, reason = "serde wants the field's type")]
const fn no_overwrites() -> Option<Vec<LeanOverwrite>> {
    Some(Vec::new())
}

/// All overwrites or none: one that is lost may be the one that hides the
/// channel.
fn overwrites<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<LeanOverwrite>>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

impl LeanChannel {
    /// The overwrites in the core's words; absent where they could not be read.
    pub fn overwrites(&self) -> Option<Vec<Overwrite>> {
        let lean = self.permission_overwrites.as_ref()?;
        let known = lean.iter().copied();
        Some(known.filter_map(LeanOverwrite::to_overwrite).collect())
    }
}

impl LeanMember {
    /// A member known by one name.
    pub fn new(user: UserId, nick: Option<String>, roles: Vec<RoleId>) -> Self {
        Self {
            user: LeanUser {
                id: user,
                username: String::new(),
                global_name: None,
            },
            nick,
            roles,
        }
    }
}

impl LeanOverwrite {
    /// In the core's words; a kind this version does not know concerns nobody.
    pub fn to_overwrite(self) -> Option<Overwrite> {
        let target = match self.kind {
            0 => Target::Role(self.id),
            1 => Target::Member(UserId::new(self.id.get())),
            _ => return None,
        };
        Some(Overwrite {
            target,
            allow: self.allow.0,
            deny: self.deny.0,
        })
    }
}
