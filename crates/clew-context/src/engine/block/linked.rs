//! The part of a block that shows what links lead to: each target under a heading
//! that says where and when.

use super::{MAX_TITLE_CHARS, one_line, section, title};
use crate::engine::frame;
use crate::engine::links::GatheredLink;
use crate::engine::render::Renderer;
use crate::engine::select::{LinkedSelection, Selection};
use crate::model::{Block, BlockEntry, Limits, Marker, OmitReason, Omitted};

/// What is shown and left out; `chars` counts scalars.
#[derive(Default)]
pub(super) struct LinkedPart {
    pub(super) entries: Vec<BlockEntry>,
    pub(super) omitted: Vec<Omitted>,
    pub(super) chars: usize,
}

/// Renders all targets in at most half of `limits.max_chars`. What an earlier one
/// leaves of its share the later ones may use.
pub(super) fn build(
    linked: LinkedSelection<'_>,
    renderer: &mut Renderer<'_>,
    limits: &Limits,
) -> LinkedPart {
    let mut part = LinkedPart::default();
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
        let block = target(link, selection, renderer, &limits);
        room -= block.chars;
        part.chars += block.chars;
        part.omitted.extend(block.omitted);
        part.entries.extend(block.title.map(BlockEntry::Heading));
        part.entries.extend(block.entries);
    }
    part
}

/// One target under its heading; without room for the heading nothing is shown.
fn target(
    link: &GatheredLink,
    selection: Selection,
    renderer: &mut Renderer<'_>,
    limits: &Limits,
) -> Block {
    let mut block = section(selection, Some(heading(link)), renderer, limits);
    if block.title.is_none() {
        let items = block.items().map(|item| item.message.id);
        let omitted: Vec<Omitted> = items
            .map(|id| Omitted {
                id,
                reason: OmitReason::Chars,
            })
            .collect();
        block.omitted.extend(omitted);
        block.entries.clear();
        block.chars = 0;
    }
    block
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
