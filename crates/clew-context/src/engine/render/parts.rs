//! What a message shows, split into lines and paragraphs.

use crate::model::{Attachment, Embed, Extras, Message, Poll, Snapshot};

/// One line or paragraph.
#[derive(Clone)]
pub(super) enum MessagePart {
    /// Our own labels, and names of files.
    Plain(String),
    /// Text that may contain Discord's markup.
    Markup(String),
}

impl MessagePart {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Markup(text) => text,
        }
    }

    /// The scalars from `from` up to `to`, as far as they exist.
    fn slice(&self, from: usize, to: usize) -> Self {
        let text = self.text().chars().skip(from).take(to.saturating_sub(from));
        let text = text.collect();
        match self {
            Self::Plain(_) => Self::Plain(text),
            Self::Markup(_) => Self::Markup(text),
        }
    }
}

/// The beginning and the end of what a message shows.
pub(super) struct Ends {
    pub(super) head: Vec<MessagePart>,
    /// Scalars left out between them; if 0, everything is in the head.
    pub(super) cut: usize,
    pub(super) tail: Vec<MessagePart>,
}

/// Keeps `most` scalars: two thirds of them from the beginning, the rest from the end.
pub(super) fn ends(parts: Vec<MessagePart>, most: usize) -> Ends {
    let length = |part: &MessagePart| part.text().chars().count();
    let total: usize = parts.iter().map(length).sum();
    if total <= most {
        return Ends {
            head: parts,
            cut: 0,
            tail: Vec::new(),
        };
    }
    let (head_ends, tail_starts) = (most - most / 3, total - most / 3);
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    let mut at = 0;
    for part in parts {
        let length = length(&part);
        if at < head_ends {
            head.push(part.slice(0, head_ends - at));
        }
        if at + length > tail_starts {
            tail.push(part.slice(tail_starts.saturating_sub(at), length));
        }
        at += length;
    }
    Ends {
        head,
        cut: tail_starts - head_ends,
        tail,
    }
}

/// Everything the message shows, in reading order. Of ours without its components, which are
/// buttons: a model would repeat them.
pub(super) fn all(message: &Message, is_ours: bool) -> Vec<MessagePart> {
    let mut all = vec![MessagePart::Markup(message.content.to_string())];
    if let Some(extras) = message.extras.as_deref() {
        let buttons = extras.component_text.len() * usize::from(is_ours);
        all.extend(lines(extras).into_iter().skip(buttons));
    }
    all
}

fn lines(extras: &Extras) -> Vec<MessagePart> {
    let mut lines = Vec::new();
    lines.extend(
        extras
            .component_text
            .iter()
            .map(|text| MessagePart::Markup(text.to_string())),
    );
    for snapshot in &extras.snapshots {
        forwarded(snapshot, &mut lines);
    }
    for embed in &extras.embeds {
        lines.extend(embed_text(embed).map(MessagePart::Markup));
    }
    for file in &extras.attachments {
        lines.extend(file_lines(file));
    }
    lines.extend(
        extras
            .stickers
            .iter()
            .map(|name| MessagePart::Plain(format!("[sticker: {name}]"))),
    );
    lines.extend(
        extras
            .poll
            .as_ref()
            .map(|poll| MessagePart::Markup(poll_text(poll))),
    );
    if !extras.unread.is_empty() {
        lines.push(MessagePart::Plain(format!(
            "[not readable: {}]",
            extras.unread.join(", ")
        )));
    }
    lines
}

fn forwarded(snapshot: &Snapshot, out: &mut Vec<MessagePart>) {
    if snapshot.withheld {
        let line = "[forwarded message, which its author keeps private]";
        out.push(MessagePart::Plain(line.to_owned()));
        return;
    }
    let when = snapshot
        .timestamp
        .map(|time| format!(" of {} UTC", time.minute()));
    out.push(MessagePart::Plain(format!(
        "[forwarded message{}:]",
        when.unwrap_or_default()
    )));
    if !snapshot.content.is_empty() {
        out.push(MessagePart::Markup(snapshot.content.to_string()));
    }
    if let Some(extras) = snapshot.extras.as_deref() {
        out.extend(lines(extras));
    }
    out.push(MessagePart::Plain("[end of forwarded message]".to_owned()));
}

fn embed_text(embed: &Embed) -> Option<String> {
    let mut head: Vec<&str> = Vec::new();
    head.extend(embed.provider.as_deref());
    head.extend(embed.author.as_deref());
    head.extend(embed.title.as_deref());
    head.extend(embed.url.as_deref());
    let mut text = match (head.is_empty(), embed.media) {
        (false, _) => format!("[embed: {}]", head.join(" · ")),
        (true, true) => "[embed: image or video]".to_owned(),
        (true, false) => "[embed]".to_owned(),
    };
    let bare = text.len();
    for line in embed
        .description
        .iter()
        .map(ToString::to_string)
        .chain(fields(embed))
    {
        text.push('\n');
        text.push_str(&line);
    }
    if let Some(footer) = &embed.footer {
        text.push('\n');
        text.push_str(footer);
    }
    let empty = head.is_empty() && !embed.media && text.len() == bare;
    (!empty).then_some(text)
}

fn fields(embed: &Embed) -> impl Iterator<Item = String> {
    embed
        .fields
        .iter()
        .map(|field| format!("{}: {}", field.name, field.value))
}

fn file_lines(file: &Attachment) -> Vec<MessagePart> {
    let kind = file.content_type.as_deref().unwrap_or("unknown type");
    let mut label = format!("[file: {} ({kind}, {})]", file.filename, size(file.size));
    if let Some(description) = &file.description {
        label.push_str(&format!(" {description}"));
    }
    let mut lines = vec![MessagePart::Plain(label)];
    if let Some(text) = &file.text {
        lines.push(MessagePart::Plain(format!("{text}\n[end of file]")));
    }
    lines
}

/// `12 bytes`, `3.4 kB`, `5.6 MB`.
#[expect(
    clippy::cast_precision_loss,
    reason = "one decimal of a file size is shown"
)]
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

fn poll_text(poll: &Poll) -> String {
    let mut text = format!("[poll: {}]", poll.question);
    for (answer, votes) in &poll.answers {
        let votes = votes
            .map(|votes| format!(" ({votes} votes)"))
            .unwrap_or_default();
        text.push_str(&format!("\n- {answer}{votes}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parts: &[MessagePart]) -> Vec<&str> {
        parts.iter().map(MessagePart::text).collect()
    }

    #[test]
    fn the_middle_of_much_is_left_out() {
        let parts = || {
            let texts = ["abcd", "efgh", "ijäl", "mnop"];
            texts
                .map(|text| MessagePart::Markup(text.to_owned()))
                .to_vec()
        };
        let whole = ends(parts(), 16);
        assert_eq!((whole.head.len(), whole.cut, whole.tail.len()), (4, 0, 0));
        let both = ends(parts(), 9);
        assert_eq!(shown(&both.head), ["abcd", "ef"]);
        assert_eq!(shown(&both.tail), ["nop"]);
        assert_eq!(both.cut, 7);
        let within_one = ends(parts()[2..3].to_vec(), 3);
        assert_eq!(shown(&within_one.head), ["ij"]);
        assert_eq!(shown(&within_one.tail), ["l"]);
        assert_eq!(within_one.cut, 1);
    }
}
