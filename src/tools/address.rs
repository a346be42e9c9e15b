//! Ids and links of messages and channels, as people and models write them.

use clew_context::engine::links::{self, Link};

/// What a text points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// A bare id.
    Id(u64),
    /// A link to a channel or message.
    Link(Link),
}

impl Address {
    /// Reads an id, `<#id>` or a link, with or without `<` and `>`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('<').trim_end_matches('>');
        let id = text.strip_prefix('#').unwrap_or(text);
        if let Ok(id) = id.parse() {
            return (id > 0).then_some(Self::Id(id));
        }
        let (link, length) = links::at_start(text)?;
        let rest = text[length..].trim_start_matches('/');
        let ends = rest.is_empty() || rest.starts_with(['?', '#']);
        ends.then_some(Self::Link(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clew_context::engine::links::LinkPlace;
    use clew_context::model::{ChannelId, GuildId, MessageId};

    #[track_caller]
    fn link(text: &str, guild: Option<u64>, channel: u64, message: Option<u64>) {
        let expected = Address::Link(Link {
            place: guild.map_or(LinkPlace::Direct, |guild| {
                LinkPlace::Guild(GuildId::new(guild))
            }),
            channel: ChannelId::new(channel),
            message: message.map(MessageId::new),
        });
        assert_eq!(Address::parse(text), Some(expected), "{text}");
    }

    #[test]
    fn ids_and_links() {
        for text in ["12", " 12 ", "<#12>", "#12"] {
            assert_eq!(Address::parse(text), Some(Address::Id(12)), "{text}");
        }
        link("https://discord.com/channels/1/2/3", Some(1), 2, Some(3));
        link(
            "<https://ptb.discord.com/channels/1/2/3>",
            Some(1),
            2,
            Some(3),
        );
        link(
            "https://canary.discordapp.com/channels/@me/2/3/",
            None,
            2,
            Some(3),
        );
        link("https://discord.com/channels/1/2?x=y", Some(1), 2, None);
    }

    #[test]
    fn nothing_else() {
        for text in [
            "",
            "0",
            "general",
            "https://example.org/channels/1/2/3",
            "https://discord.com.example.org/channels/1/2/3",
            "http://discord.com/channels/1/2/3",
            "https://discord.com/channels/1",
            "https://discord.com/channels/1/2/3/4",
            "https://discord.com/channels/1/x/3",
            "99999999999999999999999",
        ] {
            assert_eq!(Address::parse(text), None, "{text}");
        }
    }
}
