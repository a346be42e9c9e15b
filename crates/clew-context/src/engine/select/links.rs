//! What is shown of links' targets: the linked message and those around it, or a
//! thread's first message and its newest.

use std::sync::Arc;

use super::{NamedMessage, Pick, Selection, Selector};
use crate::engine::links::{GatheredLink, GatheredLinks};
use crate::model::{BlockPlace, Limits, Marker, Message, MessageId, OmitReason, Unseen};

/// What is shown of each target, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkedSelection<'a> {
    /// The targets.
    pub targets: Vec<(&'a GatheredLink, Selection)>,
    /// Whether something may not be shown.
    pub closed: bool,
}

impl LinkedSelection<'_> {
    fn shown(&self) -> usize {
        let targets = self.targets.iter();
        targets.map(|(_, selection)| selection.picks.len()).sum()
    }

    /// The caps that are left for the rest of the block.
    pub fn leave_room(&self, limits: &Limits) -> Limits {
        Limits {
            max_msgs: limits.max_msgs - self.shown(),
            ..*limits
        }
    }

    /// Leaves out what the rest of the block shows; linked messages get their label
    /// there. A message of which nothing is left has no heading either.
    pub fn show_once(&mut self, rest: &mut Selection) {
        for (link, selection) in &mut self.targets {
            selection.picks.retain(|pick| !rest.shows(pick.message.id));
            selection.markers.retain(|(id, _)| !rest.shows(*id));
            if let Some(id) = link.message {
                rest.keep_as(id, BlockPlace::Linked);
            }
        }
        self.targets.retain(|(link, selection)| {
            let is_empty = selection.picks.is_empty() && selection.markers.is_empty();
            !is_empty || link.message.is_none()
        });
    }
}

impl Selector<'_> {
    /// Selects what is shown of links: together at most half of the block's messages.
    pub fn links(self, links: &GatheredLinks) -> LinkedSelection<'_> {
        let targets = links.targets.iter();
        let mut seen: Vec<MessageId> = targets.filter_map(|link| link.message).collect();
        let mut room = self.limits.max_msgs / 2;
        let mut left = links.targets.len();
        let mut targets = Vec::with_capacity(left);
        for link in &links.targets {
            let others = link.others.iter();
            let others: Vec<_> = others.filter(|one| one.id < self.trigger.id).collect();
            let mut selection = match link.message {
                Some(id) => self.linked_message(link, id, &others),
                None => self.linked_thread(link, &others),
            };
            selection.picks.retain(|pick| {
                let id = pick.message.id;
                link.message == Some(id) || !seen.contains(&id)
            });
            cap(&mut selection, room / left);
            room -= selection.picks.len();
            left -= 1;
            seen.extend(selection.picks.iter().map(|pick| pick.message.id));
            targets.push((link, selection));
        }
        LinkedSelection {
            targets,
            closed: links.closed,
        }
    }

    /// Whether so many of these messages may be shown.
    pub(crate) fn are_enough(self, messages: &[Arc<Message>], wanted: usize) -> bool {
        let shown = messages.iter().filter(|one| self.us.rejects(one).is_none());
        shown.take(wanted).count() == wanted
    }

    fn linked_message(
        self,
        link: &GatheredLink,
        id: MessageId,
        others: &[&Arc<Message>],
    ) -> Selection {
        let (place, context) = (BlockPlace::LinkContext, self.limits.link_context);
        let mut selection = Selection::default();
        let before = others.iter().copied().filter(|one| one.id < id).rev();
        self.add_first(before, place, context.before, &mut selection);
        self.main(link, BlockPlace::Linked, &mut selection);
        let after = others.iter().copied().filter(|one| one.id > id);
        self.add_first(after, place, context.after, &mut selection);
        selection.picks.sort_by_key(|pick| pick.message.id);
        selection
    }

    fn linked_thread(self, link: &GatheredLink, others: &[&Arc<Message>]) -> Selection {
        let mut selection = Selection::default();
        self.main(link, BlockPlace::Starter, &mut selection);
        let starter = link.main.message().map(|starter| starter.id);
        let newest = others.iter().copied().rev();
        let newest = newest.filter(|one| Some(one.id) != starter);
        let (place, room) = (BlockPlace::LinkContext, self.limits.tail);
        self.add_first(newest, place, room, &mut selection);
        selection.picks.sort_by_key(|pick| pick.message.id);
        let mut picks = selection.picks.iter().map(|pick| pick.message.id);
        let oldest = picks.find(|id| Some(*id) != starter);
        let is_older = |one: &&&Arc<Message>| Some(one.id) != starter && oldest > Some(one.id);
        let mut older = others.iter().filter(is_older);
        let is_whole = link.reaches_start && older.all(|one| self.us.rejects(one).is_some());
        selection.unseen = oldest.filter(|_| !is_whole).map(|before| Unseen {
            before,
            count: None,
            cap: None,
        });
        selection
    }

    fn main(self, link: &GatheredLink, place: BlockPlace, selection: &mut Selection) {
        match &link.main {
            NamedMessage::None => {}
            NamedMessage::Known(found) => self.linked(found, place, selection),
            NamedMessage::Deleted(id) => selection.mark_deleted(*id, place),
            NamedMessage::Unavailable(id) => {
                let at = id.unwrap_or(link.id.starter());
                selection.mark(at, Marker::Unavailable(Some(at), place));
            }
        }
    }
}

/// Drops the oldest messages over the cap, the linked one last. Returns the last one dropped.
pub(super) fn cap(selection: &mut Selection, most: usize) -> Option<MessageId> {
    let mut dropped = None;
    while selection.picks.len() > most {
        let oldest = selection.picks.iter().position(|pick| !pick.kept);
        let Pick { message, .. } = selection.picks.remove(oldest.unwrap_or(0));
        selection.omit(message.id, OmitReason::Msgs);
        dropped = Some(message.id);
    }
    dropped
}
