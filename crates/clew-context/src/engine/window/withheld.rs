//! Messages of people who opted out: the window keeps their husks, so that it
//! stays whole and reply chains hold together, and none of their words.

use std::sync::Arc;

use super::Window;
use super::channel::{ChannelWindow, weight};
use crate::model::{ChannelId, Message, OptedOut};

impl Window {
    /// From now on nothing that these people say is kept, and what is held of
    /// them loses its words at once. Channels that hold husks of somebody who
    /// is back are broken, so that what was said is fetched again. Costs next to
    /// nothing if nothing changed.
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
            if window.take_husks(&self.opted_out) {
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
    /// What is held of them is known as theirs, whoever forwards it where.
    fn remember_theirs(&self, opted_out: &OptedOut) {
        let recent = self.recent.values().map(|held| &held.message);
        let linked = self.linked.values().map(|linked| &linked.message);
        for message in recent.chain(linked) {
            opted_out.remember(message);
        }
    }

    /// Takes the words out of everything held.
    fn withhold(&mut self, opted_out: &OptedOut) {
        let recent = self.recent.values_mut().map(|held| &mut held.message);
        let linked = self.linked.values_mut().map(|linked| &mut linked.message);
        let changes = self.changes.iter_mut();
        let edits = changes.filter_map(|change| change.message.as_mut());
        let mut bytes = self.bytes;
        for message in recent.chain(linked).chain(edits) {
            bytes -= weight(message);
            *message = opted_out.withheld(Arc::clone(message));
            bytes += weight(message);
        }
        self.bytes = bytes;
    }

    /// Whether words were taken out of what is held that nobody keeps private any
    /// more. Edits among it are forgotten: they would stand for what is fetched
    /// again. A channel of which this is so is to be broken, which counts its bytes
    /// anew.
    fn take_husks(&mut self, opted_out: &OptedOut) -> bool {
        let returned = |message: &Arc<Message>| opted_out.gives_back(message);
        let mut found = self.recent.values().any(|held| returned(&held.message))
            || self.linked.values().any(|linked| returned(&linked.message));
        self.changes.retain(|change| {
            let stays = !change.message.as_ref().is_some_and(returned);
            found |= !stays;
            stays
        });
        found
    }
}
