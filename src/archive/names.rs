//! The names that exports use instead of Discord's numbers. For a type that it
//! does not know, an exporter writes the number as a string.

use std::str::FromStr;

use clew_context::model::{ChannelKind, MessageKind};

/// Message types by the exporter's names (numbers from Discord's documentation,
/// "Message Types").
const MESSAGE_KINDS: [(&str, u16); 22] = [
    ("Default", 0),
    ("RecipientAdd", 1),
    ("RecipientRemove", 2),
    ("Call", 3),
    ("ChannelNameChange", 4),
    ("ChannelIconChange", 5),
    ("ChannelPinnedMessage", 6),
    ("GuildMemberJoin", 7),
    ("GuildBoost", 8),
    ("GuildBoostTier1", 9),
    ("GuildBoostTier2", 10),
    ("GuildBoostTier3", 11),
    ("ChannelFollowAdd", 12),
    ("ThreadCreated", 18),
    ("Reply", 19),
    ("ChatInputCommand", 20),
    ("ApplicationCommand", 20),
    ("ThreadStarterMessage", 21),
    ("GuildInviteReminder", 22),
    ("ContextMenuCommand", 23),
    ("AutoModerationAction", 24),
    ("PollResult", 46),
];

/// Channel types by the exporter's names (numbers from Discord's documentation,
/// "Channel Types").
const CHANNEL_KINDS: [(&str, u8); 16] = [
    ("GuildTextChat", 0),
    ("DirectTextChat", 1),
    ("GuildVoiceChat", 2),
    ("DirectGroupTextChat", 3),
    ("GuildCategory", 4),
    ("GuildNews", 5),
    ("GuildNewsThread", 10),
    ("GuildPublicThread", 11),
    ("GuildPrivateThread", 12),
    ("GuildStageVoice", 13),
    ("GuildDirectory", 14),
    ("GuildForum", 15),
    ("GuildMedia", 16),
    // Discord's own names.
    ("GuildText", 0),
    ("PublicThread", 11),
    ("PrivateThread", 12),
];

/// A message type; an unknown name counts as a system message.
pub(super) fn message_kind(name: &str) -> MessageKind {
    MessageKind::from_number(number(&MESSAGE_KINDS, name).unwrap_or(u16::MAX))
}

/// A channel type; an unknown name gives a type that no rule applies to.
pub(super) fn channel_kind(name: &str) -> ChannelKind {
    ChannelKind::from_number(number(&CHANNEL_KINDS, name).unwrap_or(u8::MAX))
}

fn number<N: Copy + FromStr>(kinds: &[(&str, N)], name: &str) -> Option<N> {
    let known = kinds.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| name.parse().ok(), |(_, number)| Some(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        for (name, number) in [
            ("Default", 0),
            ("Reply", 19),
            ("21", 21),
            ("Sparkle", 65535),
        ] {
            assert_eq!(message_kind(name).number(), number, "{name}");
        }
        for (name, number) in [
            ("GuildForum", 15),
            ("16", 16),
            ("DirectTextChat", 1),
            ("?", 255),
        ] {
            assert_eq!(channel_kind(name).number(), number, "{name}");
        }
    }
}
