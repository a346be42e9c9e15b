//! Ids and links of messages and channels, as people and models write them.

use clew_context::model::{ChannelId, GuildId, MessageId};

/// What stands before the ids of a link, whichever of Discord's hosts it names.
const CHANNELS: &str = "/channels/";
/// Hosts of links to Discord, without `ptb.` and `canary.`.
const HOSTS: [&str; 2] = ["discord.com", "discordapp.com"];
/// Instead of a server's id, in links to direct messages.
const DIRECT: &str = "@me";

/// What a text points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Address {
    /// A bare id.
    Id(u64),
    /// A link to a channel or message.
    Link {
        guild: Option<GuildId>,
        channel: ChannelId,
        message: Option<MessageId>,
    },
}

impl Address {
    /// Reads an id, `<#id>` or a link, with or without `<` and `>`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('<').trim_end_matches('>');
        let id = text.strip_prefix('#').unwrap_or(text);
        if let Ok(id) = id.parse() {
            return (id > 0).then_some(Self::Id(id));
        }
        let (host, path) = text.strip_prefix("https://")?.split_once(CHANNELS)?;
        let host = host.strip_prefix("ptb.").unwrap_or(host);
        let host = host.strip_prefix("canary.").unwrap_or(host);
        if !HOSTS.contains(&host) {
            return None;
        }
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let mut ids = path.trim_end_matches('/').split('/');
        let guild = match ids.next()? {
            DIRECT => None,
            guild => Some(guild.parse().ok()?),
        };
        let channel = ids.next()?.parse().ok()?;
        let message = ids.next().map(str::parse).transpose().ok()?;
        ids.next().is_none().then_some(Self::Link {
            guild,
            channel,
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn link(text: &str, guild: Option<u64>, channel: u64, message: Option<u64>) {
        let expected = Address::Link {
            guild: guild.map(GuildId::new),
            channel: ChannelId::new(channel),
            message: message.map(MessageId::new),
        };
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
