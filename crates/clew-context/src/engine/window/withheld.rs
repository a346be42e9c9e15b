//! Messages of users who opted out: the window keeps their places, so that it
//! stays complete and reply chains stay connected, but none of their words.

use std::sync::Arc;

use super::Window;
use super::channel::{ChannelWindow, weight};
use crate::model::{ChannelId, Message, OptedOut};

impl Window {
    /// From now on the words of these users are not kept, and those already held
    /// are removed at once. Channels with withheld messages of somebody who opted back in are
    /// broken, so that the messages are fetched again. Cheap if nothing changed.
    pub fn withhold(&mut self, opted_out: OptedOut) {
        if self.opted_out.is_same(&opted_out) {
            return;
        }
        self.opted_out = opted_out.after(&self.opted_out);
        for window in self.channels.values() {
            window.remember_theirs(&self.opted_out);
        }
        let mut returned: Vec<ChannelId> = Vec::new();
        for (channel, window) in &mut self.channels {
            let before = window.bytes;
            if window.take_withheld(&self.opted_out) {
                returned.push(*channel);
            }
            window.withhold(&self.opted_out);
            self.bytes = self.bytes - before + window.bytes;
        }
        for channel in returned {
            self.break_channel(channel);
        }
    }
}

impl ChannelWindow {
    /// Remembers the messages held of these users, so that forwards of them are withheld.
    fn remember_theirs(&self, opted_out: &OptedOut) {
        let recent = self.recent.values().map(|held| &held.message);
        let linked = self.linked.values().map(|linked| &linked.message);
        for message in recent.chain(linked).chain(self.pins.iter().flatten()) {
            opted_out.remember(message);
        }
    }

    /// Removes the words from everything held.
    fn withhold(&mut self, opted_out: &OptedOut) {
        let recent = self.recent.values_mut().map(|held| &mut held.message);
        let linked = self.linked.values_mut().map(|linked| &mut linked.message);
        let changes = self.changes.iter_mut();
        let edits = changes.filter_map(|change| change.message.as_mut());
        let pins = self.pins.iter_mut().flatten();
        let mut bytes = self.bytes;
        for message in recent.chain(linked).chain(edits).chain(pins) {
            bytes -= weight(message);
            *message = opted_out.withheld(Arc::clone(message));
            bytes += weight(message);
        }
        self.bytes = bytes;
    }

    /// Whether words were removed from anything held although its author is no
    /// longer opted out. Forgets edits of such messages: they would replace what is
    /// fetched again. If true, the caller must break the channel, which also
    /// recounts its bytes.
    fn take_withheld(&mut self, opted_out: &OptedOut) -> bool {
        let returned = |message: &Arc<Message>| opted_out.gives_back(message);
        let mut found = self.recent.values().any(|held| returned(&held.message))
            || self.linked.values().any(|linked| returned(&linked.message))
            || self.pins.iter().flatten().any(returned);
        self.changes.retain(|change| {
            let stays = !change.message.as_ref().is_some_and(returned);
            found |= !stays;
            stays
        });
        found
    }
}
