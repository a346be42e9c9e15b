//! One channel's part of the window at one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::eligible::is_blank;
use crate::model::{Message, MessageId, OptedOut};

/// One channel's part of the window at one moment.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// All messages from `whole_from` on, oldest first.
    pub recent: Vec<Arc<Message>>,
    /// Older single messages, by id.
    pub linked: BTreeMap<MessageId, Arc<Message>>,
    /// From here on nothing is missing. `None`: nothing is known to be whole.
    pub whole_from: Option<MessageId>,
    /// The newest message seen.
    pub newest: Option<MessageId>,
    /// Ids known to be deleted.
    pub deleted: Vec<MessageId>,
    /// To be handed back with fetched messages: what was broken later than
    /// this takes none.
    pub generation: u64,
    /// The same for edits and deletions that are not remembered any more.
    pub taken: u64,
    /// Whose messages are withheld: what a turn fetches beside this is held to
    /// the same.
    pub opted_out: OptedOut,
}

impl View {
    /// A message by id, wherever it stands.
    pub fn get(&self, id: MessageId) -> Option<&Arc<Message>> {
        let at = self.recent.binary_search_by_key(&id, |message| message.id);
        at.ok()
            .map(|at| &self.recent[at])
            .or_else(|| self.linked.get(&id))
    }

    /// A message that came with a command or a mention is whole, though the
    /// gateway blanked it before for want of the message content intent.
    pub fn complete(&mut self, carried: &Message) {
        let recent = self.recent.iter_mut();
        let mut held = recent.chain(self.linked.values_mut());
        if let Some(held) = held.find(|held| held.id == carried.id)
            && is_blank(held)
            && !held.withheld
        {
            *held = Arc::new(carried.clone());
        }
    }
}

/// Where a channel is whole from that is held from its first message on.
pub const CHANNEL_START: MessageId = MessageId::new(0);
