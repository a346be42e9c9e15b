//! The part of a block that shows what links lead to: each target under a heading
//! that says where and when.

use super::{MAX_TITLE_CHARS, Part, one_line, title};
use crate::engine::frame;
use crate::engine::links::GatheredLink;
use crate::engine::render::Renderer;
use crate::engine::select::LinkedSelection;
use crate::model::{BlockEntry, Limits, Marker};

/// Renders all targets in at most half of `limits.max_chars`. What an earlier one
/// leaves of its share the later ones may use.
pub(super) fn build(
    linked: LinkedSelection<'_>,
    renderer: &mut Renderer<'_>,
    limits: &Limits,
) -> Part {
    let mut part = Part::default();
    let mut room = limits.max_chars / 2;
    let marker = [BlockEntry::Marker(Marker::ClosedLink)];
    let chars = frame::chars(None, &marker);
    if linked.closed && chars <= room {
        room -= chars;
        part.chars = chars;
        part.entries.extend(marker);
    }
    let mut left = linked.targets.len();
    for (link, selection) in linked.targets {
        let limits = Limits {
            max_chars: room / left,
            ..*limits
        };
        left -= 1;
        room -= part.add(selection, heading(link), renderer, &limits);
    }
    part
}

/// `Linked message, #general, 2026-01-02 10:00 UTC:`, or a thread with its title.
fn heading(link: &GatheredLink) -> String {
    let what = match link.message {
        Some(_) => "Linked message",
        None => "Linked",
    };
    let place = match &link.channel {
        None => "this conversation".to_owned(),
        Some(channel) => title(channel)
            .unwrap_or_else(|| format!("#{}", one_line(&channel.name, MAX_TITLE_CHARS))),
    };
    format!("{what}, {place}, {} UTC:", link.time().minute())
}
