//! Scenario files as JSON: users, channels, messages and operations.

use serde::Deserialize;

use super::parts::ExportExtras;
use clew_context::model::{
    ApplicationId, ChannelId, ChannelKind, GuildId, MessageId, MessageKind, Reference,
    ReferenceKind, UserId,
};

#[derive(Deserialize)]
pub(super) struct ScenarioUser {
    pub(super) id: UserId,
    pub(super) username: Option<String>,
    pub(super) global_name: Option<String>,
    pub(super) nick: Option<String>,
    #[serde(default)]
    pub(super) bot: bool,
}

#[derive(Deserialize)]
pub(super) struct ScenarioGuild {
    pub(super) id: GuildId,
    #[serde(default)]
    pub(super) channels: Vec<ScenarioChannel>,
    #[serde(default)]
    pub(super) threads: Vec<ScenarioThread>,
}

#[derive(Deserialize)]
pub(super) struct ScenarioChannel {
    pub(super) id: ChannelId,
    #[serde(default, rename = "type")]
    pub(super) kind: u8,
    #[serde(default)]
    pub(super) name: String,
    pub(super) parent_id: Option<ChannelId>,
    #[serde(default)]
    pub(super) available_tags: Vec<ScenarioTag>,
    #[serde(default)]
    pub(super) hidden: bool,
}

#[derive(Deserialize)]
pub(super) struct ScenarioTag {
    pub(super) id: String,
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct ScenarioThread {
    pub(super) id: ChannelId,
    #[serde(default = "public_thread", rename = "type")]
    pub(super) kind: u8,
    pub(super) parent_id: ChannelId,
    #[serde(default)]
    pub(super) name: String,
    pub(super) owner_id: Option<UserId>,
    #[serde(default)]
    pub(super) applied_tags: Vec<String>,
    #[serde(default)]
    pub(super) archived: bool,
    #[serde(default)]
    pub(super) locked: bool,
}

const fn public_thread() -> u8 {
    ChannelKind::PublicThread.number()
}

/// One operation of a timeline.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(super) enum Op {
    Create {
        message: Box<ScenarioMessage>,
    },
    Thread {
        thread: ScenarioThread,
        /// The id of the thread's message of type 21, if it was started from a message.
        starter_id: Option<MessageId>,
    },
    Edit {
        channel_id: ChannelId,
        id: MessageId,
        content: String,
        ms: Option<i64>,
    },
    Delete {
        channel_id: ChannelId,
        id: MessageId,
    },
    Archive {
        channel_id: ChannelId,
        #[serde(default)]
        locked: bool,
    },
    React {},
    Typing {},
}

#[derive(Deserialize)]
pub(super) struct ScenarioMessage {
    pub(super) id: MessageId,
    pub(super) channel_id: ChannelId,
    pub(super) author_id: UserId,
    #[serde(default)]
    pub(super) content: String,
    #[serde(rename = "type")]
    pub(super) kind: Option<u16>,
    #[serde(rename = "ref")]
    pub(super) reference: Option<ScenarioReference>,
    #[serde(default)]
    pub(super) ping: bool,
    #[serde(default)]
    pub(super) flags: u32,
    pub(super) ms: Option<i64>,
    pub(super) edited_ms: Option<i64>,
    pub(super) webhook_id: Option<UserId>,
    pub(super) application_id: Option<ApplicationId>,
    #[serde(flatten)]
    pub(super) extras: ExportExtras,
}

#[derive(Deserialize, Clone, Copy)]
pub(super) struct ScenarioReference {
    pub(super) message_id: Option<MessageId>,
    pub(super) channel_id: Option<ChannelId>,
    #[serde(default, rename = "type")]
    pub(super) kind: u8,
}

impl Op {
    /// The message that it concerns.
    pub(super) fn message(&self) -> Option<MessageId> {
        match self {
            Self::Create { message } => Some(message.id),
            Self::Edit { id, .. } | Self::Delete { id, .. } => Some(*id),
            Self::Thread { .. } | Self::Archive { .. } | Self::React {} | Self::Typing {} => None,
        }
    }
}

impl ScenarioUser {
    /// The name shown; server nicknames do not apply in direct messages.
    pub(super) fn shown_name(&self, in_guild: bool) -> String {
        let nick = self.nick.as_ref().filter(|_| in_guild);
        let name = nick
            .or(self.global_name.as_ref())
            .or(self.username.as_ref());
        name.map_or_else(|| self.id.to_string(), Clone::clone)
    }
}

impl ScenarioReference {
    pub(super) fn into_reference(self) -> Reference {
        Reference {
            kind: match self.kind {
                0 => ReferenceKind::Default,
                1 => ReferenceKind::Forward,
                other => ReferenceKind::Other(other),
            },
            channel: self.channel_id,
            message: self.message_id,
        }
    }
}

impl ScenarioMessage {
    /// The message of type 21 at the head of a thread started from a message.
    pub(super) fn starter(
        id: MessageId,
        thread: ChannelId,
        parent: ChannelId,
        author: UserId,
    ) -> Self {
        Self {
            id,
            channel_id: thread,
            author_id: author,
            content: String::new(),
            kind: Some(MessageKind::ThreadStarter.number()),
            reference: Some(ScenarioReference {
                message_id: Some(thread.starter()),
                channel_id: Some(parent),
                kind: 0,
            }),
            ping: false,
            flags: 0,
            ms: None,
            edited_ms: None,
            webhook_id: None,
            application_id: None,
            extras: ExportExtras::default(),
        }
    }

    /// Its type; if not given, a default reference makes it a reply.
    pub(super) fn message_kind(&self) -> MessageKind {
        let replies = self.reference.is_some_and(|to| to.kind == 0);
        match self.kind {
            Some(number) => MessageKind::from_number(number),
            None if replies => MessageKind::Reply,
            None => MessageKind::Default,
        }
    }
}
