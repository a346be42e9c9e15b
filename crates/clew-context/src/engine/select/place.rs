//! What is shown of the channel itself: its topic and its pinned messages.

use super::{GapMarks, LinkedSelection, Selection, Selector};
use crate::engine::place::{GatheredPlace, MOST_PINS};
use crate::model::{BlockPlace, Limits};

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PlaceSelection<'a> {
    /// The topic; empty if there is none.
    pub topic: &'a str,
    /// The pinned messages, oldest first.
    pub pins: Selection,
}

impl PlaceSelection<'_> {
    /// The caps that are left for the rest of the block.
    pub fn leave_room(&self, limits: &Limits) -> Limits {
        Limits {
            max_msgs: limits.max_msgs - self.pins.picks.len(),
            ..*limits
        }
    }

    /// Leaves out what the rest of the block shows.
    pub fn show_once(&mut self, rest: &Selection, linked: &LinkedSelection<'_>) {
        let in_links = |id| linked.targets.iter().any(|(_, one)| one.shows(id));
        let is_new = |id| !rest.shows(id) && !in_links(id);
        self.pins.picks.retain(|pick| is_new(pick.message.id));
    }
}

impl Selector<'_> {
    /// Selects the pinned messages: those pinned last, at most a quarter of the block's. One
    /// whose author opted out leaves no trace.
    pub fn place(self, place: &GatheredPlace) -> PlaceSelection<'_> {
        let mut pins = Selection {
            gaps: GapMarks::None,
            ..Selection::default()
        };
        let most = MOST_PINS.min(self.limits.max_msgs / 4);
        let older = place.pins.iter().filter(|one| one.id < self.trigger.id);
        self.add_first(older, BlockPlace::Pinned, most, &mut pins);
        pins.markers.clear();
        pins.picks.sort_by_key(|pick| pick.message.id);
        PlaceSelection {
            topic: &place.topic,
            pins,
        }
    }
}
