//! The frame around other people's words: two lines with a nonce that no message
//! can forge. Inside, our own text starts at the margin: titles, days, and `03:04
//! name: ` before each message. The further lines of a message are indented, so
//! that no message can imitate the start of an entry.

use std::borrow::Cow;

use crate::model::{Block, Entry, Item, Marker, OmitReason, Place, UnixMillis};

/// Put before every line of a message except its first line and blank ones.
const INDENT: &str = "  ";

/// What a framed text is.
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

/// Tags that identify a frame line even without its nonce. [`Kind::Memory`] is
/// not among them: other texts use a tag of that name.
pub(super) const TAGS: [&str; 2] = [Kind::Context.tag(), Kind::PointedAt.tag()];

/// `inside` between an opening and a closing line that contain `nonce`.
pub fn wrap(kind: Kind, nonce: &str, inside: &str) -> String {
    let tag = kind.tag();
    format!("<{tag} {nonce}>\n{inside}</{tag} {nonce}>")
}

/// A line outside all frames, marked with the nonce.
pub fn marked(nonce: &str, line: &str) -> String {
    format!("[{nonce}] {line}")
}

/// Scalars of a marked line, line break included.
pub fn marked_chars(line: &str) -> usize {
    super::nonce::NONCE_CHARS + "[] ".len() + line_chars(line)
}

/// Title, days, messages and gaps, one line each.
pub fn block(block: &Block) -> String {
    let mut out = String::with_capacity(block.chars);
    for line in lines(block.title.as_deref(), &block.entries) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// One message, preceded by its date.
pub fn item(item: &Item) -> String {
    format!("{}\n{}\n", day_line(item), message(item))
}

/// Unicode scalars of the block as [`block`] renders it.
pub fn chars(title: Option<&str>, entries: &[Entry]) -> usize {
    lines(title, entries).map(|line| line_chars(&line)).sum()
}

/// Scalars of a line, line break included.
pub(super) fn line_chars(line: &str) -> usize {
    line.chars().count() + 1
}

/// Scalars of a message's lines without its text.
pub(super) fn chars_around(item: &Item) -> usize {
    line_chars(&header(item))
}

/// Scalars of the date lines above these messages.
pub(super) fn day_chars<'a>(items: impl Iterator<Item = &'a Item>) -> usize {
    let mut last = None;
    items
        .filter(|item| begins_day(item, &mut last))
        .map(|item| line_chars(&day_line(item)))
        .sum()
}

fn lines<'a>(title: Option<&'a str>, entries: &'a [Entry]) -> impl Iterator<Item = Cow<'a, str>> {
    let mut last = None;
    let entries = entries.iter().flat_map(move |entry| match entry {
        Entry::Message(item) => {
            let day = begins_day(item, &mut last).then(|| day_line(item));
            [day, Some(message(item))]
        }
        Entry::Marker(marker) => [None, Some(marker_line(*marker))],
    });
    let entries = entries.flatten().map(Cow::Owned);
    title.map(Cow::Borrowed).into_iter().chain(entries)
}

/// Whether it has another date than the previous message.
fn begins_day(item: &Item, last: &mut Option<i64>) -> bool {
    let day = item.message.timestamp.day();
    last.replace(day) != Some(day)
}

fn day_line(item: &Item) -> String {
    item.message.timestamp.date()
}

fn message(item: &Item) -> String {
    format!("{}{}", header(item), item.text)
}

/// `text` with every line but its first indented.
pub(super) fn indented(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut out = String::with_capacity(text.len());
    out.extend(lines.next());
    for line in lines {
        out.push('\n');
        if !line.is_empty() {
            out.push_str(INDENT);
            out.push_str(line);
        }
    }
    out
}

/// Time, name and label, such as `03:04 Ada [app]: `. Names contain no brackets
/// or colons, so nobody can give themselves a label.
pub fn header(item: &Item) -> String {
    let who = if item.ours {
        " [you]"
    } else if item.message.author.webhook || item.message.author.bot {
        " [app]"
    } else {
        ""
    };
    let why = label(item.place);
    let gap = if why.is_empty() { "" } else { " " };
    let time = item.message.timestamp.clock();
    format!("{time} {}{who}{gap}{why}: ", item.name)
}

/// The label of a named message ([`Place::is_named`]); empty for others.
pub(super) const fn label(place: Place) -> &'static str {
    match place {
        Place::Starter => "[first message]",
        Place::PointedAt => "[pointed at by the asker]",
        Place::Target => "[your answer replies to it]",
        Place::Tail | Place::History | Place::Chain => "",
    }
}

/// The line above somebody's stored message, which is not in a frame.
pub fn stored_header(name: &str, timestamp: UnixMillis, is_restored: bool) -> String {
    let why = if is_restored { " | restored" } else { "" };
    format!("{name} | {} UTC{why}", timestamp.minute())
}

/// The line that stands in for missing messages.
pub fn marker_line(marker: Marker) -> String {
    let what = |place: Place| match place {
        Place::Starter => "the first message",
        Place::PointedAt => "the message pointed at",
        Place::Target | Place::Tail | Place::History | Place::Chain => "a message",
    };
    let in_chain = matches!(marker, Marker::EarlierChain(_));
    let by = |cap: Option<OmitReason>| {
        let setting = cap.and_then(|cap| cap.setting(in_chain));
        setting.map_or(String::new(), |setting| format!(" ({setting})"))
    };
    match marker {
        Marker::Gap(0, cap) => format!("... earlier messages omitted ...{}", by(cap)),
        Marker::Gap(1, cap) => format!("... 1 message omitted ...{}", by(cap)),
        Marker::Gap(count, cap) => format!("... {count} messages omitted ...{}", by(cap)),
        Marker::EarlierChain(cap) => format!("... earlier replies omitted ...{}", by(Some(cap))),
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
