//! A snapshot of one channel of the window.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::eligible::is_blank;
use crate::model::{Message, MessageId, OptedOut};

/// A snapshot of one channel of the window.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// All messages from `whole_from` on, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// Older single messages, by id.
    pub linked: BTreeMap<MessageId, Arc<Message>>,
    /// From this id on no message is missing; `None` if that is true of no id.
    pub whole_from: Option<MessageId>,
    /// The pinned messages, the last pinned first; none if they are not known.
    pub pins: Option<Vec<Arc<Message>>>,
    /// The newest message seen.
    pub newest: Option<MessageId>,
    /// Ids known to be deleted.
    pub deleted: Vec<MessageId>,
    /// Pass it back with fetched messages: a channel that was broken later does not
    /// accept them.
    pub generation: u64,
    /// The same for edits and deletions that are no longer remembered.
    pub taken: u64,
    /// Whose messages are withheld; also applied to what the turn fetches.
    pub opted_out: OptedOut,
}

impl View {
    /// A message by id, recent or linked; a pinned one only if it is one of those.
    pub fn get(&self, id: MessageId) -> Option<&Arc<Message>> {
        let at = self.recent.binary_search_by_key(&id, |message| message.id);
        at.ok()
            .map(|at| &self.recent[at])
            .or_else(|| self.linked.get(&id))
    }

    /// Leaves messages out as if they were deleted, of what is held and of what is fetched.
    pub fn leave_out(&mut self, ids: &[MessageId]) {
        self.recent.retain(|message| !ids.contains(&message.id));
        self.linked.retain(|id, _| !ids.contains(id));
        if let Some(pins) = &mut self.pins {
            pins.retain(|message| !ids.contains(&message.id));
        }
        self.deleted.extend(ids);
    }

    /// Replaces a message that the gateway blanked because the message content
    /// intent is off: copies included with a command or mention have their content.
    pub fn complete(&mut self, referenced: &Message) {
        let recent = self.recent.iter_mut();
        let mut held = recent.chain(self.linked.values_mut());
        if let Some(held) = held.find(|held| held.id == referenced.id)
            && is_blank(held)
            && !held.withheld
        {
            *held = Arc::new(referenced.clone());
        }
    }
}

/// The mark of a channel that is held from its first message on.
pub const CHANNEL_START: MessageId = MessageId::new(0);
