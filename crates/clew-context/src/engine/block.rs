//! Builds the block: renders the selected messages and shortens them until they
//! fit `MEM_MAX_CHARS`. Long messages are shortened first, then those of the lowest
//! rank dropped, the oldest first; starter, pointed-at and target are shortened but never dropped.

mod linked;
mod place;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Block, BlockEntry, BlockItem, Channel, ChannelKind, Limits, Marker, MessageId, OmitReason,
    Omitted, Unseen,
};

use super::frame;
use super::render::Renderer;
use super::sanitise;
use super::select::{GapMarks, LinkedSelection, Pick, PlaceSelection, Selection};
use super::shorten;

/// A message shortened below this many scalars says too little: older ones are
/// dropped instead, so that newer ones keep this much.
pub(super) const SHORTEST_CHARS: usize = 300;
/// Longest title shown, in scalars; Discord's own limit is 100.
const MAX_TITLE_CHARS: usize = 100;
/// Longest list of tags shown, in scalars; Discord allows five of 20 each.
const MAX_TAGS_CHARS: usize = 200;

/// An item that may still be shortened or dropped.
struct ItemDraft {
    item: BlockItem,
    /// Whether it may only be shortened, not dropped.
    kept: bool,
    /// The lowest is dropped first.
    rank: usize,
    /// Scalars of its line without the text, line break included.
    header: usize,
    /// Scalars of its text.
    length: usize,
}

/// How many scalars a section may take, and the cap that says so.
#[derive(Clone, Copy)]
struct Room {
    chars: usize,
    cap: OmitReason,
}

/// A part of a block below the conversation, under headings; `chars` counts scalars.
#[derive(Default)]
struct Part {
    entries: Vec<BlockEntry>,
    omitted: Vec<Omitted>,
    chars: usize,
}

/// Renders a selection into a block of at most `limits.max_chars` scalars. What belongs to the
/// channel follows and takes at most a quarter of them, then what links lead to, at most half.
pub fn build(
    selection: Selection,
    place: PlaceSelection<'_>,
    linked: LinkedSelection<'_>,
    channel: Option<&Channel>,
    renderer: &mut Renderer<'_>,
    limits: &Limits,
) -> Block {
    let linked = linked::build(linked, renderer, limits);
    let (topic, place) = place::build(place, channel, renderer, limits);
    let limits = Limits {
        max_chars: limits.max_chars - linked.chars - place.chars,
        ..*limits
    };
    let mut block = section(selection, channel.and_then(title), renderer, &limits);
    block.topic = topic;
    // A pinned message may be one that the conversation leaves out.
    let pins = place.entries.iter().filter_map(BlockEntry::item);
    let pins: BTreeSet<MessageId> = pins.map(|pin| pin.message.id).collect();
    block.omitted.retain(|omitted| !pins.contains(&omitted.id));
    for part in [place, linked] {
        block.entries.extend(part.entries);
        block.omitted.extend(part.omitted);
        block.chars += part.chars;
    }
    block.omitted.sort_by_key(|omitted| omitted.id);
    block
}

impl Part {
    /// Adds a selection under its heading, in at most `limits.max_chars` scalars; without room
    /// for the heading nothing is shown. Returns how many it took.
    fn add(
        &mut self,
        selection: Selection,
        heading: String,
        renderer: &mut Renderer<'_>,
        limits: &Limits,
    ) -> usize {
        let block = section(selection, Some(heading), renderer, limits);
        self.omitted.extend(&block.omitted);
        let Some(heading) = block.title else {
            let items = block.entries.iter().filter_map(BlockEntry::item);
            self.omitted.extend(items.map(|item| Omitted {
                id: item.message.id,
                reason: OmitReason::Chars,
            }));
            return 0;
        };
        self.entries.push(BlockEntry::Heading(heading));
        self.entries.extend(block.entries);
        self.chars += block.chars;
        block.chars
    }
}

/// Renders one selection under its title, in at most `limits.max_chars` scalars, or what the
/// selection says.
fn section(
    selection: Selection,
    mut title: Option<String>,
    renderer: &mut Renderer<'_>,
    limits: &Limits,
) -> Block {
    let Selection {
        picks,
        mut markers,
        mut omitted,
        unseen,
        gaps: marks,
        max_chars,
        tail: _,
    } = selection;
    let lone = max_chars.filter(|chars| *chars < limits.max_chars);
    let room = Room {
        chars: lone.unwrap_or(limits.max_chars),
        cap: lone.map_or(OmitReason::Chars, |_| OmitReason::LoneChars),
    };
    markers.sort_by_key(|(id, _)| *id);
    let mut drafts = Vec::with_capacity(picks.len());
    for pick in picks {
        match draft(pick, renderer, limits) {
            Ok(draft) => drafts.push(draft),
            Err(id) => omitted.push(Omitted {
                id,
                reason: OmitReason::Empty,
            }),
        }
    }
    let gaps = Gaps {
        markers,
        unseen,
        marks,
    };
    fit(&mut drafts, title.as_deref(), &gaps, &mut omitted, room);
    let items: Vec<BlockItem> = drafts.into_iter().map(|draft| draft.item).collect();
    let mut entries = gaps.entries(items, &omitted);
    let mut chars = frame::chars(title.as_deref(), &entries);
    if chars > room.chars {
        entries.retain(|entry| matches!(entry, BlockEntry::Message(_)));
        title = None;
        chars = hold(&mut entries, &mut omitted, room);
    }
    Block {
        title,
        entries,
        omitted,
        unseen,
        topic: 0,
        chars,
    }
}

/// Renders one message. The error is the id of a message with nothing to show.
fn draft(pick: Pick, renderer: &mut Renderer<'_>, limits: &Limits) -> Result<ItemDraft, MessageId> {
    let item = renderer.item(pick.message, pick.place, limits.max_msg_chars);
    if item.text.is_empty() {
        return Err(item.message.id);
    }
    Ok(ItemDraft {
        kept: pick.kept,
        rank: pick.rank,
        header: frame::chars_around(&item),
        length: item.text.chars().count(),
        item,
    })
}

/// Shortens the texts; drops the oldest of the lowest rank if shortening would leave too little.
fn fit(
    drafts: &mut Vec<ItemDraft>,
    title: Option<&str>,
    gaps: &Gaps,
    omitted: &mut Vec<Omitted>,
    room: Room,
) {
    loop {
        let texts = texts_budget(drafts, title, gaps, omitted, room.chars);
        let least: usize = drafts
            .iter()
            .map(|draft| draft.length.min(SHORTEST_CHARS))
            .sum();
        if texts.is_some_and(|texts| least <= texts) {
            break;
        }
        let may_go = drafts.iter().enumerate().filter(|(_, draft)| !draft.kept);
        let Some((lowest, _)) = may_go.min_by_key(|(_, draft)| draft.rank) else {
            break;
        };
        let dropped = drafts.remove(lowest);
        omitted.push(Omitted {
            id: dropped.item.message.id,
            reason: room.cap,
        });
    }
    let texts = texts_budget(drafts, title, gaps, omitted, room.chars).unwrap_or(0);
    let lengths: Vec<usize> = drafts.iter().map(|draft| draft.length).collect();
    for (draft, length) in drafts
        .iter_mut()
        .zip(shorten::fit(&lengths, texts, SHORTEST_CHARS))
    {
        if let Some(shorter) = shorten::head_and_tail(&draft.item.text, length) {
            draft.item.text = shorter;
            draft.item.cut = Some(room.cap);
        }
    }
}

/// The scalars that headers, markers and title leave for the texts; `None` if
/// those alone exceed the cap.
fn texts_budget(
    drafts: &[ItemDraft],
    title: Option<&str>,
    gaps: &Gaps,
    omitted: &[Omitted],
    max_chars: usize,
) -> Option<usize> {
    let headers: usize = drafts.iter().map(|draft| draft.header).sum();
    let days = frame::day_chars(drafts.iter().map(|draft| &draft.item));
    let ids: Vec<MessageId> = drafts.iter().map(|draft| draft.item.message.id).collect();
    let markers: usize = gaps
        .place(&ids, omitted)
        .values()
        .flatten()
        .map(|marker| frame::line_chars(&frame::marker_line(*marker)))
        .sum();
    let title = title.map_or(0, frame::line_chars);
    max_chars.checked_sub(headers + days + markers + title)
}

/// The cap is too small even for the headers: keeps the newest entries that fit.
fn hold(entries: &mut Vec<BlockEntry>, omitted: &mut Vec<Omitted>, room: Room) -> usize {
    while frame::chars(None, entries) > room.chars && !entries.is_empty() {
        if let BlockEntry::Message(item) = entries.remove(0) {
            omitted.push(Omitted {
                id: item.message.id,
                reason: room.cap,
            });
        }
    }
    frame::chars(None, entries)
}

/// Where messages are missing.
struct Gaps {
    markers: Vec<(MessageId, Marker)>,
    unseen: Option<Unseen>,
    /// How it is marked what a cap left out.
    marks: GapMarks,
}

impl Gaps {
    /// Markers by the index of the shown message they precede (its length: at the end).
    fn place(&self, shown: &[MessageId], omitted: &[Omitted]) -> BTreeMap<usize, Vec<Marker>> {
        let before = |id: MessageId| shown.partition_point(|shown| *shown < id);
        // The number of missing messages, and the newest of them with the cap that excluded it.
        let mut gaps: BTreeMap<usize, (usize, Option<(MessageId, OmitReason)>)> = BTreeMap::new();
        let capped = omitted.iter().filter(|one| one.reason.setting().is_some());
        for one in capped.filter(|_| self.marks != GapMarks::None) {
            let (count, newest) = gaps.entry(before(one.id)).or_default();
            *count += 1;
            *newest = (*newest).max(Some((one.id, one.reason)));
        }
        if let Some(unseen) = self.unseen {
            let (count, newest) = gaps.entry(before(unseen.before)).or_default();
            *count += unseen.count.unwrap_or(0);
            *newest = newest.or(unseen.cap.map(|cap| (unseen.before, cap)));
        }
        let has_earlier = self
            .markers
            .iter()
            .any(|(_, marker)| matches!(marker, Marker::EarlierChain(_)));
        let mut places: BTreeMap<usize, Vec<Marker>> = BTreeMap::new();
        for (id, marker) in &self.markers {
            push(places.entry(before(*id)).or_default(), *marker);
        }
        for (place, (count, newest)) in gaps {
            let is_between = place > 0 && place < shown.len();
            let marker = match self.marks {
                GapMarks::Short if is_between && count == 1 => continue,
                GapMarks::Short if is_between => Marker::Skipped,
                _ if has_earlier && place == 0 => continue,
                _ => Marker::Gap(count, newest.map(|(_, cap)| cap)),
            };
            places.entry(place).or_default().push(marker);
        }
        places
    }

    fn entries(&self, items: Vec<BlockItem>, omitted: &[Omitted]) -> Vec<BlockEntry> {
        let ids: Vec<MessageId> = items.iter().map(|item| item.message.id).collect();
        let mut places = self.place(&ids, omitted);
        let mut entries = Vec::with_capacity(items.len() + places.len());
        for (index, item) in items.into_iter().enumerate() {
            let markers = places.remove(&index).unwrap_or_default();
            entries.extend(markers.into_iter().map(BlockEntry::Marker));
            entries.push(BlockEntry::Message(item));
        }
        entries.extend(places.into_values().flatten().map(BlockEntry::Marker));
        entries
    }
}

/// Adjacent withheld messages share one marker.
fn push(markers: &mut Vec<Marker>, marker: Marker) {
    if let (Some(Marker::Withheld(count, last)), Marker::Withheld(more, place)) =
        (markers.last_mut(), marker)
        && !last.is_named()
        && !place.is_named()
    {
        *count += more;
        return;
    }
    markers.push(marker);
}

/// `Thread "title" in #parent · tags: a, b`, for threads only. The title is left
/// out if it is empty because its owner opted out.
fn title(channel: &Channel) -> Option<String> {
    if !channel.kind.is_thread() {
        return None;
    }
    let post = channel.parent_kind.is_some_and(ChannelKind::is_forum);
    let what = if post { "Forum post" } else { "Thread" };
    let name = one_line(&channel.name, MAX_TITLE_CHARS);
    let mut title = what.to_owned();
    if !channel.name.is_empty() {
        title.push_str(&format!(" \"{name}\""));
    }
    if let Some(parent) = &channel.parent_name {
        title.push_str(&format!(" in #{}", one_line(parent, MAX_TITLE_CHARS)));
    }
    if !channel.tags.is_empty() {
        let tags = one_line(&channel.tags.join(", "), MAX_TAGS_CHARS);
        title.push_str(&format!(" · tags: {tags}"));
    }
    Some(title)
}

/// Makes text safe for a line of our own: it cannot close its quotation marks.
pub(super) fn one_line(text: &str, max_chars: usize) -> String {
    let line = sanitise::text(text)
        .replace('"', "'")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    shorten::head_and_tail(&line, max_chars).unwrap_or(line)
}
