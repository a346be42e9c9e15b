//! Each message is taken once, however often the gateway delivers it.

use std::collections::{HashSet, VecDeque};

use clew_context::model::MessageId;

/// Messages remembered; a resumed session replays minutes, not more.
const REMEMBERED: usize = 10_000;
/// Answered messages that go into the session file.
const ANSWERED: usize = 1_000;

/// Which messages were taken, and which of them are answered.
#[derive(Debug)]
pub struct Claims {
    taken: Recent,
    answered: Recent,
}

impl Default for Claims {
    fn default() -> Self {
        Self {
            taken: Recent::new(REMEMBERED),
            answered: Recent::new(ANSWERED),
        }
    }
}

impl Claims {
    /// With the answered messages of the session file: they are taken too.
    pub fn restore(answered: &[MessageId]) -> Self {
        let mut claims = Self::default();
        for id in answered {
            claims.answered(*id);
        }
        claims
    }

    /// True the first time.
    pub fn claim(&mut self, id: MessageId) -> bool {
        self.taken.insert(id)
    }

    /// Its turn is over: a restart does not answer it again.
    pub fn answered(&mut self, id: MessageId) {
        self.taken.insert(id);
        self.answered.insert(id);
    }

    /// The answered ones, oldest first, for the session file.
    pub fn all_answered(&self) -> Vec<MessageId> {
        self.answered.order.iter().copied().collect()
    }
}

/// The last so many ids.
#[derive(Debug)]
struct Recent {
    most: usize,
    ids: HashSet<MessageId>,
    order: VecDeque<MessageId>,
}

impl Recent {
    fn new(most: usize) -> Self {
        Self {
            most,
            ids: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    fn insert(&mut self, id: MessageId) -> bool {
        if !self.ids.insert(id) {
            return false;
        }
        self.order.push_back(id);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_claimed_once() {
        let mut claims = Claims::default();
        assert!(claims.claim(MessageId::new(1)));
        assert!(!claims.claim(MessageId::new(1)));
        assert!(claims.claim(MessageId::new(2)));
    }

    #[test]
    fn after_a_restart_answered_messages_stay_claimed_and_others_do_not() {
        let mut claims = Claims::default();
        claims.claim(MessageId::new(1));
        claims.claim(MessageId::new(2));
        claims.answered(MessageId::new(1));
        let mut restored = Claims::restore(&claims.all_answered());
        assert!(!restored.claim(MessageId::new(1)));
        assert!(restored.claim(MessageId::new(2)));
        assert_eq!(restored.all_answered(), [MessageId::new(1)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut claims = Claims::default();
        for id in 1..=REMEMBERED as u64 * 2 {
            claims.claim(MessageId::new(id));
            claims.answered(MessageId::new(id));
        }
        assert_eq!(claims.taken.ids.len(), REMEMBERED);
        assert_eq!(claims.all_answered().len(), ANSWERED);
    }
}
