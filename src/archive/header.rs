//! What an export says about its channel.

use serde::Deserialize;

use super::names;
use clew_context::engine::place::kept_topic;
use clew_context::model::{Channel, ChannelId, ChannelKind, GuildId, ThreadState};

#[derive(Deserialize)]
pub(super) struct ExportGuild {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportChannel {
    id: ChannelId,
    #[serde(rename = "type")]
    kind: String,
    category_id: Option<String>,
    category: Option<String>,
    name: Option<String>,
    topic: Option<String>,
}

impl ExportChannel {
    /// Exports write a thread's parent as its category.
    pub(super) fn into_channel(self, guild: Option<&ExportGuild>) -> Channel {
        let kind = names::channel_kind(&self.kind);
        // For direct messages, server and category have the id 0.
        let guild: Option<GuildId> = guild.and_then(|guild| guild.id.parse().ok());
        let parent: Option<ChannelId> = self.category_id.and_then(|id| id.parse().ok());
        let parent = parent.filter(|_| !kind.is_direct());
        Channel {
            guild: guild.filter(|_| !kind.is_direct()),
            name: match kind {
                ChannelKind::Dm | ChannelKind::GroupDm => String::new(),
                _ => self.name.unwrap_or_default(),
            },
            topic: kept_topic(&self.topic.unwrap_or_default()),
            parent,
            parent_name: parent.and(self.category),
            thread: kind.is_thread().then(ThreadState::default),
            ..Channel::new(self.id, kind)
        }
    }
}
