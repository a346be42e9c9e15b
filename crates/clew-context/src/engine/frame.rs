//! The frame around other people's words, between two lines with a nonce that
//! no message can forge. Within it what we say stands at the margin: titles,
//! days, and `03:04 name: ` before each message. Further lines of a message are
//! indented, so that nothing inside can start an entry of its own.

use std::borrow::Cow;

use crate::model::{Block, Entry, Item, Marker, OmitReason, Place, UnixMillis};

/// Before every line of a message but its first and blank ones.
const INDENT: &str = "  ";

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

/// Tags by which a line of a frame is known even without its nonce. Not that of
/// [`Kind::Memory`]: other texts have a tag of that name.
pub(super) const TAGS: [&str; 2] = [Kind::Context.tag(), Kind::PointedAt.tag()];

/// `inside` between an opening and a closing line that carry `nonce`.
pub fn wrap(kind: Kind, nonce: &str, inside: &str) -> String {
    let tag = kind.tag();
    format!("<{tag} {nonce}>\n{inside}</{tag} {nonce}>")
}

/// A line that stands in no frame, under the nonce.
pub fn marked(nonce: &str, line: &str) -> String {
    format!("[{nonce}] {line}")
}

/// Scalars of such a line, its end among them.
pub fn marked_chars(line: &str) -> usize {
    super::nonce::NONCE_CHARS + "[] ".len() + line_chars(line)
}

/// Title, days, messages and gaps, a line each.
pub fn block(block: &Block) -> String {
    let mut out = String::with_capacity(block.chars);
    for line in lines(block.title.as_deref(), &block.entries) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// One message, under its day.
pub fn item(item: &Item) -> String {
    format!("{}\n{}\n", day_line(item), message(item))
}

/// Unicode scalars of the block as [`block`] renders it.
pub fn chars(title: Option<&str>, entries: &[Entry]) -> usize {
    lines(title, entries).map(|line| line_chars(&line)).sum()
}

/// Scalars of a line, its end among them.
pub(super) fn line_chars(line: &str) -> usize {
    line.chars().count() + 1
}

/// Scalars of a message's lines beside its text.
pub(super) fn chars_around(item: &Item) -> usize {
    line_chars(&header(item))
}

/// Scalars of the lines that say a new day, over these messages.
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

/// Whether it is of another day than the one before.
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

/// `text` as it stands behind a header: its further lines are indented.
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

/// Time, name, and why the message is there, as in `03:04 Ada [app]: `. Brackets
/// and colons occur in no name, so that nobody can give himself a label.
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

/// What is said of a message that a rule asks for by name.
pub(super) const fn label(place: Place) -> &'static str {
    match place {
        Place::Starter => "[first message]",
        Place::PointedAt => "[pointed at by the asker]",
        Place::Target => "[your answer replies to it]",
        Place::Tail | Place::History | Place::Chain => "",
    }
}

/// Above somebody's stored message, which stands in no frame.
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
