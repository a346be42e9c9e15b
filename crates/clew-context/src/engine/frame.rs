//! The frame around other people's words: every header carries a nonce that
//! no message can forge, so that nothing inside can end the frame or start an
//! entry of its own.

use crate::model::{Block, Entry, Item, Marker, Place, UnixMillis};

/// Scalars that the nonce adds to each header: brackets and a space.
const NONCE_CHARS: usize = super::nonce::NONCE_CHARS + 3;

/// Where a framed text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The collected block.
    Context,
    /// The message that a trigger without text points at.
    PointedAt,
    /// Remembered facts.
    Memory,
}

impl Kind {
    const fn tag(self) -> &'static str {
        match self {
            Self::Context => "discord-context",
            Self::PointedAt => "pointed-at-message",
            Self::Memory => "memory",
        }
    }
}

/// `inside` between an opening and a closing line that carry `nonce`.
pub fn wrap(kind: Kind, nonce: &str, inside: &str) -> String {
    let tag = kind.tag();
    format!("<{tag} {nonce}>\n{inside}</{tag} {nonce}>")
}

/// Title, entries and gaps, each under a header with the nonce.
pub fn block(block: &Block, nonce: &str) -> String {
    let mut out = String::new();
    for line in block
        .title
        .iter()
        .cloned()
        .chain(block.entries.iter().map(entry))
    {
        out.push_str(&format!("[{nonce}] {line}\n"));
    }
    out
}

/// One message under its header.
pub fn item(item: &Item, nonce: &str) -> String {
    format!("[{nonce}] {}\n", message(item))
}

/// Unicode scalars of the block as [`block`] renders it.
pub fn chars(title: Option<&str>, entries: &[Entry]) -> usize {
    let title = title.map_or(0, line_chars);
    title
        + entries
            .iter()
            .map(|one| line_chars(&entry(one)))
            .sum::<usize>()
}

/// Scalars of one header with an empty text below it.
pub fn line_chars(line: &str) -> usize {
    NONCE_CHARS + line.chars().count() + 1
}

fn entry(entry: &Entry) -> String {
    match entry {
        Entry::Message(item) => message(item),
        Entry::Marker(marker) => marker_line(*marker),
    }
}

fn message(item: &Item) -> String {
    format!("{}\n{}", header(item), item.text)
}

/// Name, time, and why the message is there. Square brackets and bars occur in
/// no name, so that nobody can give himself a label.
pub fn header(item: &Item) -> String {
    let who = if item.ours {
        " [you]"
    } else if item.message.author.webhook || item.message.author.bot {
        " [app]"
    } else {
        ""
    };
    let why = match item.place {
        Place::Starter => " | first message",
        Place::PointedAt => " | pointed at by the asker",
        Place::Target => " | your answer replies to it",
        Place::Tail | Place::History | Place::Chain => "",
    };
    format!(
        "{}{who} | {} UTC{why}",
        item.name,
        item.message.timestamp.minute()
    )
}

/// As [`header`], of somebody's stored message.
pub fn stored_header(name: &str, timestamp: UnixMillis, is_restored: bool) -> String {
    let why = if is_restored { " | restored" } else { "" };
    format!("{name} | {} UTC{why}", timestamp.minute())
}

/// The line that stands where messages are missing.
pub fn marker_line(marker: Marker) -> String {
    let what = |place: Place| match place {
        Place::Starter => "the first message",
        Place::PointedAt => "the message pointed at",
        Place::Target | Place::Tail | Place::History | Place::Chain => "a message",
    };
    match marker {
        Marker::Gap(0) => "... earlier messages omitted ...".to_owned(),
        Marker::Gap(1) => "... 1 message omitted ...".to_owned(),
        Marker::Gap(count) => format!("... {count} messages omitted ..."),
        Marker::EarlierChain => "... earlier replies omitted ...".to_owned(),
        Marker::Deleted(_, place) => format!("({} was deleted)", what(place)),
        Marker::Ineligible(_) => "(a message of an app, not shown)".to_owned(),
        Marker::Unavailable(_, place) => format!("({} could not be loaded)", what(place)),
        Marker::Withheld(1, place @ (Place::Starter | Place::PointedAt)) => {
            format!("... {}, which its author keeps private ...", what(place))
        }
        Marker::Withheld(1, _) => "... a message that its author keeps private ...".to_owned(),
        Marker::Withheld(count, _) => {
            format!("... {count} messages that their authors keep private ...")
        }
    }
}
