//! Links to messages, threads and posts: which ones a text contains, and what was
//! found behind them.

use std::sync::Arc;

use crate::model::{Channel, ChannelId, GuildId, Message, MessageId, UnixMillis};

use super::render::markup;
use super::select::NamedMessage;

/// Most links that are followed in one turn.
pub const MOST_TARGETS: usize = 3;
/// Most different links and `<#id>` of one turn that are looked at: judging who may
/// read a channel takes up to some milliseconds.
const MOST_LINKS: usize = 10;

const HOSTS: [&str; 6] = [
    "https://discord.com/channels/",
    "https://ptb.discord.com/channels/",
    "https://canary.discord.com/channels/",
    "https://discordapp.com/channels/",
    "https://ptb.discordapp.com/channels/",
    "https://canary.discordapp.com/channels/",
];

/// A link to a message or a channel, or a channel's mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// What it says of the channel's place.
    pub place: LinkPlace,
    /// The channel or thread.
    pub channel: ChannelId,
    /// The message; `None` for the channel itself.
    pub message: Option<MessageId>,
}

/// What a link says of its channel's place. Whoever types it can say anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPlace {
    /// In this server.
    Guild(GuildId),
    /// A direct message, `@me`.
    Direct,
    /// Nothing: it is a mention, `<#id>`.
    Mention,
}

impl Link {
    fn leads_to(self) -> (ChannelId, Option<MessageId>) {
        (self.channel, self.message)
    }
}

/// The links of these texts outside code, in order, each target once; the first of
/// many.
pub fn found_in<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Link> {
    let mut found: Vec<Link> = Vec::new();
    for link in texts.into_iter().flat_map(Links) {
        if found.len() == MOST_LINKS {
            break;
        }
        if found.iter().all(|one| one.leads_to() != link.leads_to()) {
            found.push(link);
        }
    }
    found
}

/// The links of the rest of a text.
struct Links<'a>(&'a str);

impl Iterator for Links<'_> {
    type Item = Link;

    fn next(&mut self) -> Option<Link> {
        while let Some(at) = self.0.find(['`', '<', 'h']) {
            let rest = &self.0[at..];
            let (link, length) = match rest.as_bytes()[0] {
                b'`' => (None, markup::code_length(rest)),
                b'<' => apart(mention(rest)),
                _ => apart(at_start(rest)),
            };
            self.0 = &rest[length..];
            if link.is_some() {
                return link;
            }
        }
        None
    }
}

/// The link and its length; without one, the length of the character it began with.
fn apart(found: Option<(Link, usize)>) -> (Option<Link>, usize) {
    found.map_or((None, 1), |(link, length)| (Some(link), length))
}

/// `<#id>` at the start, and its length in bytes.
fn mention(text: &str) -> Option<(Link, usize)> {
    let rest = text.strip_prefix("<#")?;
    let (channel, rest) = number(rest)?;
    let rest = rest.strip_prefix('>')?;
    let link = Link {
        place: LinkPlace::Mention,
        channel: ChannelId::new(channel),
        message: None,
    };
    Some((link, text.len() - rest.len()))
}

/// The link at the start of a text, and its length in bytes.
pub fn at_start(text: &str) -> Option<(Link, usize)> {
    let rest = HOSTS.iter().find_map(|host| text.strip_prefix(host))?;
    let (place, rest) = if let Some(rest) = rest.strip_prefix("@me") {
        (LinkPlace::Direct, rest)
    } else {
        let (guild, rest) = number(rest)?;
        (LinkPlace::Guild(GuildId::new(guild)), rest)
    };
    let (channel, rest) = number(rest.strip_prefix('/')?)?;
    let message = rest.strip_prefix('/').and_then(number);
    let (message, rest) = message.map_or((None, rest), |(id, rest)| (Some(id), rest));
    let link = Link {
        place,
        channel: ChannelId::new(channel),
        message: message.map(MessageId::new),
    };
    Some((link, text.len() - rest.len()))
}

/// The number at the start of a text, and what follows.
fn number(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

/// What the links of a question led to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GatheredLinks {
    /// What may be shown, in order.
    pub targets: Vec<GatheredLink>,
    /// Whether something may not be shown. Why is nobody's business: it may not even
    /// exist.
    pub closed: bool,
}

/// What one link led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatheredLink {
    /// Its channel or thread; `None` in a direct message.
    pub channel: Option<Channel>,
    /// The channel's id.
    pub id: ChannelId,
    /// The linked message; `None` if the link leads to a thread or post as a whole.
    pub message: Option<MessageId>,
    /// The linked message, or a thread's starter.
    pub main: NamedMessage,
    /// Messages around the linked one, or a thread's newest, oldest first.
    pub others: Vec<Arc<Message>>,
    /// Whether `others` begins with the thread's first message.
    pub reaches_start: bool,
}

impl GatheredLink {
    /// When the message was posted or the thread opened.
    pub(crate) fn time(&self) -> UnixMillis {
        self.message.unwrap_or(self.id.starter()).created()
    }

    pub(crate) fn messages_mut(&mut self) -> impl Iterator<Item = &mut Arc<Message>> {
        self.main.message_mut().into_iter().chain(&mut self.others)
    }
}

impl GatheredLinks {
    /// Whether the question had no link that matters.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && !self.closed
    }

    /// The messages that we have.
    pub fn messages(&self) -> impl Iterator<Item = &Arc<Message>> {
        let targets = self.targets.iter();
        targets.flat_map(|one| one.main.message().into_iter().chain(&one.others))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn message(place: LinkPlace, channel: u64, message: u64) -> Link {
        Link {
            place,
            channel: ChannelId::new(channel),
            message: Some(MessageId::new(message)),
        }
    }

    const HERE: LinkPlace = LinkPlace::Guild(GuildId::new(1));

    #[track_caller]
    fn check(text: &str, expected: &[Link]) {
        assert_eq!(found_in([text]), expected, "{text}");
    }

    #[test]
    fn links_in_every_form() {
        let expected = message(HERE, 22, 333);
        for host in HOSTS {
            check(&format!("see {host}1/22/333."), &[expected]);
        }
        let link = "https://discord.com/channels/1/22/333";
        check(&format!("<{link}>"), &[expected]);
        check(&format!("[that]({link})"), &[expected]);
        check(&format!("{link}/"), &[expected]);
        check(&format!("{link}me"), &[expected]);
        check(&format!("{link}?q=1"), &[expected]);
        check(
            &link.replace("/1/", "/@me/"),
            &[message(LinkPlace::Direct, 22, 333)],
        );
        let channel = Link {
            message: None,
            ..expected
        };
        check("https://discord.com/channels/1/22", &[channel]);
        check("https://discord.com/channels/1/22/x", &[channel]);
        let mention = Link {
            place: LinkPlace::Mention,
            ..channel
        };
        check("in <#22>", &[mention]);
    }

    #[test]
    fn what_is_no_link() {
        for text in [
            "`https://discord.com/channels/1/22/333`",
            "```\nhttps://discord.com/channels/1/22/333\n```",
            "`<#22>` <#x> <#22 <@22> #22",
            "https://discord.com/channels/1",
            "https://discord.com/channels/@me",
            "https://discord.com/channels/x/22/333",
            "https://discord.example/channels/1/22/333",
            "https://discord.com/channels/1/99999999999999999999999/3",
            "http://discord.com.example/channels/1/22/333",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn each_target_once_and_the_first_of_many() {
        let link = |id: u64| format!("https://discord.com/channels/1/22/{id} ");
        let twice = format!(
            "{}<#22>{}",
            link(3),
            link(3).replace("discord", "ptb.discord")
        );
        assert_eq!(found_in([&*twice, &*link(3), &*link(4)]).len(), 3);
        let many: String = (0..10_000).map(link).collect();
        let expected: Vec<Link> = (0..10).map(|id| message(HERE, 22, id)).collect();
        check(&many, &expected);
    }

    /// Searching the rest of the text for each would take hours.
    #[test]
    fn many_beginnings_are_read_once() {
        for begun in ["<#", "https://discord.com/channels/", "h", "a` "] {
            check(&begun.repeat(2_000_000 / begun.len()), &[]);
        }
    }

    proptest! {
        /// Whatever stands around it, a link outside code is found; within code it is not.
        #[test]
        fn a_link_is_found_in_any_text(
            before in "[^`<h]{0,20}",
            after in "[^0-9/`][^`]{0,20}",
            ids in (any::<u64>(), any::<u64>(), any::<u64>()),
        ) {
            let (guild, channel, id) = ids;
            let link = format!("https://discord.com/channels/{guild}/{channel}/{id}");
            let found = found_in([&*format!("{before}{link}{after}")]);
            let expected = message(LinkPlace::Guild(GuildId::new(guild)), channel, id);
            prop_assert_eq!(found.first(), Some(&expected));
            let code = format!("{before}`{link}`");
            prop_assert_eq!(found_in([&*code]), []);
        }

        /// No text is too strange, and what is found stands in it.
        #[test]
        fn nothing_is_found_that_is_not_there(text in "([<#>0-9`@me/ ]|https://discord.com/channels/){0,60}") {
            for link in found_in([&*text]) {
                prop_assert!(text.contains(&link.channel.to_string()));
                prop_assert!(link.message.is_none_or(|id| text.contains(&id.to_string())));
            }
        }
    }
}
