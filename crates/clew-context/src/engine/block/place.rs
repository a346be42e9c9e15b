//! The part of a block that shows what belongs to the channel: its topic on a line, then its
//! pinned messages under a heading.

use super::{MAX_TITLE_CHARS, Part, one_line};
use crate::engine::frame;
use crate::engine::render::Renderer;
use crate::engine::select::PlaceSelection;
use crate::model::{BlockEntry, Channel, ChannelKind, Limits};

/// Renders both in at most a quarter of `limits.max_chars`; returns the scalars of the topic's
/// line, too.
pub(super) fn build(
    place: PlaceSelection<'_>,
    channel: Option<&Channel>,
    renderer: &mut Renderer<'_>,
    limits: &Limits,
) -> (usize, Part) {
    let mut part = Part::default();
    let mut room = limits.max_chars / 4;
    if let Some(line) = topic(place.topic, channel, renderer) {
        let chars = frame::line_chars(&line);
        if chars <= room {
            room -= chars;
            part.chars = chars;
            part.entries.push(BlockEntry::Heading(line));
        }
    }
    let topic = part.chars;
    if place.pins.picks.is_empty() {
        part.omitted.extend(place.pins.omitted);
        return (topic, part);
    }
    let is_thread = channel.is_some_and(|channel| channel.kind.is_thread());
    let here = if is_thread { "thread" } else { "channel" };
    let limits = Limits {
        max_chars: room,
        ..*limits
    };
    let heading = format!("Pinned in this {here}:");
    part.add(place.pins, heading, renderer, &limits);
    (topic, part)
}

/// `Topic of #general: ...`, or a forum's guidelines; none without one.
fn topic(topic: &str, channel: Option<&Channel>, renderer: &mut Renderer<'_>) -> Option<String> {
    let line = one_line(&renderer.stored(topic), Channel::TOPIC_CHARS);
    let channel = channel.filter(|_| !line.is_empty())?;
    let is_post = channel.parent_kind.is_some_and(ChannelKind::is_forum);
    let what = if is_post { "Guidelines" } else { "Topic" };
    let of = if channel.kind.is_thread() {
        channel.parent_name.as_ref()
    } else {
        Some(&channel.name)
    };
    let of = of.map_or(String::new(), |name| {
        format!(" of #{}", one_line(name, MAX_TITLE_CHARS))
    });
    Some(format!("{what}{of}: {line}"))
}
