//! The frame around other people's words: two lines with a nonce that no message
//! can forge. Inside, our own text starts at the margin: titles, days, and `03:04
//! name: ` before each message. The further lines of a message are indented, so
//! that no message can imitate the start of an entry.

use crate::model::{
    Block, BlockEntry, BlockItem, BlockPlace, HistoryMessage, Marker, OmitReason, UnixMillis,
};
use crate::words;

/// Put before every line of a message except its first line and blank ones.
const INDENT: &str = "  ";
/// After the name of a person who writes through an app, which lets people choose any.
pub(super) const THROUGH_APP: &str = " [through an app]";
/// After our own name.
const OURS: &str = " [you]";
/// Scalars of a time of day, `03:04`.
const CLOCK_CHARS: usize = 5;
/// Scalars of a date, `2026-01-02`.
const DATE_CHARS: usize = 10;

words! {
    /// What a framed text is, by the tag that with its nonce identifies a frame line.
    FrameKind {
        /// The collected block.
        Context = "discord-context",
        /// The message that a trigger without text points at.
        PointedAt = "pointed-at-message",
        /// Remembered facts.
        Memory = "memory",
        /// What a tool gave.
        ToolResult = "tool-result",
        /// Whose the images below it are.
        Images = "images",
        /// Earlier exchanges that resemble the question.
        Recalled = "recalled",
    }
}

/// Tags that identify a frame line even without its nonce. [`FrameKind::Memory`],
/// [`FrameKind::ToolResult`], [`FrameKind::Images`] and [`FrameKind::Recalled`] are not among
/// them: other texts use tags of those names.
pub(super) const TAGS: [&str; 2] = [FrameKind::Context.as_str(), FrameKind::PointedAt.as_str()];

/// `inside` between an opening and a closing line that contain `nonce`.
pub fn wrap(kind: FrameKind, nonce: &str, inside: &str) -> String {
    format!("<{kind} {nonce}>\n{inside}</{kind} {nonce}>")
}

/// A marked line, and a frame below it.
pub fn headed(head: &str, kind: FrameKind, nonce: &str, inside: &str) -> String {
    format!("{}\n{}", marked(nonce, head), wrap(kind, nonce, inside))
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
    if let Some(title) = &block.title {
        push_line(&mut out, &[title]);
    }
    let mut last = None;
    for entry in &block.entries {
        match entry {
            BlockEntry::Message(item) => {
                if begins_day(item, &mut last) {
                    push_line(&mut out, &[&item.message.timestamp.date()]);
                }
                push_message(&mut out, item);
            }
            BlockEntry::Marker(marker) => push_line(&mut out, &[&marker_line(*marker)]),
            BlockEntry::Heading(heading) => {
                last = None;
                push_line(&mut out, &[heading]);
            }
        }
    }
    out
}

/// One message, preceded by its date.
pub fn item(item: &BlockItem) -> String {
    let mut out = String::new();
    push_line(&mut out, &[&item.message.timestamp.date()]);
    push_message(&mut out, item);
    out
}

/// Stored messages as a block shows messages, with a gap between exchanges.
pub fn recalled(messages: &[&HistoryMessage], our_name: &str) -> String {
    let mut out = String::new();
    let mut last = None;
    let mut was_ours = false;
    for message in messages {
        let (name, who) = match &message.author {
            Some((_, name)) => (name.as_str(), ""),
            None => (our_name, OURS),
        };
        // Of an exchange the answer alone may be left.
        let goes_on = message.ours && !was_ours;
        if !goes_on && !out.is_empty() {
            push_line(&mut out, &["..."]);
        }
        was_ours = message.ours;
        let at = message.timestamp;
        if last.replace(at.day()) != Some(at.day()) {
            push_line(&mut out, &[&at.date()]);
        }
        let restored = if message.restored { " [restored]" } else { "" };
        let text = indented(&message.text);
        push_line(
            &mut out,
            &[&at.clock(), " ", name, who, restored, ": ", &text],
        );
    }
    out
}

/// Unicode scalars of the block as [`block`] renders it.
pub fn chars(title: Option<&str>, entries: &[BlockEntry]) -> usize {
    let parts = entries.split(|entry| matches!(entry, BlockEntry::Heading(_)));
    let days = parts.map(|part| day_chars(part.iter().filter_map(BlockEntry::item)));
    let lines = entries.iter().map(|entry| match entry {
        BlockEntry::Message(item) => chars_around(item) + item.text.chars().count(),
        BlockEntry::Marker(marker) => line_chars(&marker_line(*marker)),
        BlockEntry::Heading(heading) => line_chars(heading),
    });
    title.map_or(0, line_chars) + days.sum::<usize>() + lines.sum::<usize>()
}

/// Scalars of a line, line break included.
pub(super) fn line_chars(line: &str) -> usize {
    line.chars().count() + 1
}

/// Scalars of a message's lines without its text.
pub(super) fn chars_around(item: &BlockItem) -> usize {
    let header = header_parts(item);
    CLOCK_CHARS
        + header
            .map(|part| part.chars().count())
            .iter()
            .sum::<usize>()
        + 1
}

/// Scalars of the date lines above these messages.
pub(super) fn day_chars<'a>(items: impl Iterator<Item = &'a BlockItem>) -> usize {
    let mut last = None;
    let days = items.filter(|item| begins_day(item, &mut last));
    days.count() * (DATE_CHARS + 1)
}

/// Whether it has another date than the previous message.
fn begins_day(item: &BlockItem, last: &mut Option<i64>) -> bool {
    let day = item.message.timestamp.day();
    last.replace(day) != Some(day)
}

fn push_message(out: &mut String, item: &BlockItem) {
    push_line(out, &[&header(item), &item.text]);
}

fn push_line(out: &mut String, parts: &[&str]) {
    out.extend(parts.iter().copied().chain(["\n"]));
}

/// `text` with every line but its first indented.
pub fn indented(text: &str) -> String {
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
pub fn header(item: &BlockItem) -> String {
    item.message.timestamp.clock() + &header_parts(item).concat()
}

/// What follows the time.
fn header_parts(item: &BlockItem) -> [&str; 6] {
    let who = if item.ours {
        OURS
    } else if item.proxied {
        THROUGH_APP
    } else if item.message.author.webhook || item.message.author.bot {
        " [app]"
    } else {
        ""
    };
    let why = label(item.place);
    let gap = if why.is_empty() { "" } else { " " };
    [" ", &item.name, who, gap, why, ": "]
}

/// The label of a named message ([`BlockPlace::is_named`]); empty for others.
pub(super) const fn label(place: BlockPlace) -> &'static str {
    match place {
        BlockPlace::Starter => "[first message]",
        BlockPlace::PointedAt => "[pointed at by the asker]",
        BlockPlace::Target => "[your answer replies to it]",
        BlockPlace::Linked => "[linked]",
        BlockPlace::Tail
        | BlockPlace::History
        | BlockPlace::Chain
        | BlockPlace::LinkContext
        | BlockPlace::Pinned
        | BlockPlace::Conversation(_) => "",
    }
}

/// The line above somebody's stored message, which is not in a frame.
pub fn stored_header(name: &str, timestamp: UnixMillis, is_restored: bool) -> String {
    let why = if is_restored { " | restored" } else { "" };
    format!("{name} | {} UTC{why}", timestamp.minute())
}

/// The line that stands in for missing messages.
pub fn marker_line(marker: Marker) -> String {
    let what = |place: BlockPlace| match place {
        BlockPlace::Starter => "the first message",
        BlockPlace::PointedAt => "the message pointed at",
        BlockPlace::Linked => "the linked message",
        BlockPlace::Target
        | BlockPlace::Tail
        | BlockPlace::History
        | BlockPlace::Chain
        | BlockPlace::LinkContext
        | BlockPlace::Pinned
        | BlockPlace::Conversation(_) => "a message",
    };
    let by = |cap: Option<OmitReason>| {
        let setting = cap.and_then(OmitReason::setting);
        setting.map_or(String::new(), |setting| format!(" ({setting})"))
    };
    match marker {
        Marker::Gap(0, cap) => format!("... earlier messages omitted ...{}", by(cap)),
        Marker::Gap(1, cap) => format!("... 1 message omitted ...{}", by(cap)),
        Marker::Gap(count, cap) => format!("... {count} messages omitted ...{}", by(cap)),
        Marker::Skipped => "...".to_owned(),
        Marker::EarlierChain(cap) => format!("... earlier replies omitted ...{}", by(Some(cap))),
        Marker::Deleted(_, place) => format!("({} was deleted)", what(place)),
        Marker::Ineligible(_) => "(a message of an app, not shown)".to_owned(),
        Marker::Unavailable(_, place) => format!("({} could not be loaded)", what(place)),
        Marker::Withheld(
            1,
            place @ (BlockPlace::Starter | BlockPlace::PointedAt | BlockPlace::Linked),
        ) => {
            format!("... {}, which its author keeps private ...", what(place))
        }
        Marker::Withheld(1, _) => "... a message that its author keeps private ...".to_owned(),
        Marker::Withheld(count, _) => {
            format!("... {count} messages that their authors keep private ...")
        }
        Marker::ClosedLink => "(a link leads to what cannot be shown here)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{
        Author, ChannelId, Message, MessageFlags, MessageId, MessageKind, Referenced, UserId,
    };

    fn shown(time: i64, bot: bool) -> Message {
        Message {
            id: MessageId::new(1),
            channel: ChannelId::new(1),
            guild: None,
            kind: MessageKind::Default,
            author: Author {
                id: UserId::new(1),
                name: "".into(),
                bot,
                webhook: false,
                application: None,
            },
            timestamp: UnixMillis(time),
            edited: None,
            flags: MessageFlags::default(),
            content: "".into(),
            reference: None,
            referenced: Referenced::Absent,
            mentions: Box::default(),
            mention_roles: Box::default(),
            extras: None,
            withheld: false,
        }
    }

    fn place() -> impl Strategy<Value = BlockPlace> {
        let places = [
            BlockPlace::Starter,
            BlockPlace::PointedAt,
            BlockPlace::Target,
            BlockPlace::Tail,
            BlockPlace::History,
            BlockPlace::Chain,
            BlockPlace::Linked,
            BlockPlace::LinkContext,
        ];
        prop::sample::select(places.to_vec())
    }

    prop_compose! {
        fn message()(
            time in 0..4_000_000_000_000_i64,
            bot in any::<bool>(),
            ours in any::<bool>(),
            proxied in any::<bool>(),
            place in place(),
            name in "\\PC{0,8}",
            text in "[\\PC\n]{0,40}",
        ) -> BlockEntry {
            let message = Arc::new(shown(time, bot));
            BlockEntry::Message(BlockItem { message, place, ours, proxied, name, text, cut: None })
        }
    }

    fn marker() -> impl Strategy<Value = BlockEntry> {
        let id = MessageId::new(1);
        let marker = (0..4_usize, place(), 0..8).prop_map(move |(count, place, kind)| match kind {
            0 => Marker::Gap(count, Some(OmitReason::Age)),
            1 => Marker::EarlierChain(OmitReason::Msgs),
            2 => Marker::Deleted(id, place),
            3 => Marker::Ineligible(id),
            4 => Marker::Unavailable(None, place),
            5 => Marker::ClosedLink,
            6 => Marker::Skipped,
            _ => Marker::Withheld(count, place),
        });
        marker.prop_map(BlockEntry::Marker)
    }

    fn heading() -> impl Strategy<Value = BlockEntry> {
        "\\PC{0,12}".prop_map(BlockEntry::Heading)
    }

    proptest! {
        #[test]
        fn what_is_counted_is_what_is_rendered(
            title in prop::option::of("\\PC{0,12}"),
            entries in prop::collection::vec(prop_oneof![message(), marker(), heading()], 0..8),
        ) {
            let counted = chars(title.as_deref(), &entries);
            let rendered = block(&Block { title, entries, ..Block::default() });
            prop_assert_eq!(counted, rendered.chars().count(), "{}", rendered);
        }
    }
}
