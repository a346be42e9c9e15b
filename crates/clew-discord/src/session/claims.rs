//! Claims each message once, however often the gateway delivers it.

use std::collections::{HashSet, VecDeque};

use clew_context::model::MessageId;

/// Claimed messages remembered; a resumed session replays only minutes.
const REMEMBERED: usize = 10_000;
/// Answered messages written to the session file.
const ANSWERED: usize = 1_000;

/// Which messages were claimed, and which of them are answered.
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
    /// Restores the answered messages of the session file; they count as
    /// claimed.
    pub fn restore(answered: &[MessageId]) -> Self {
        let mut claims = Self::default();
        for id in answered {
            claims.answered(*id);
        }
        claims
    }

    /// Returns true the first time.
    pub fn claim(&mut self, id: MessageId) -> bool {
        self.taken.insert(id)
    }

    /// Its turn is over: no restart will answer it again.
    pub fn answered(&mut self, id: MessageId) {
        self.taken.insert(id);
        self.answered.insert(id);
    }

    /// The answered messages, oldest first, for the session file.
    pub fn all_answered(&self) -> Vec<MessageId> {
        self.answered.order.iter().copied().collect()
    }
}

/// The most recent ids, up to a limit.
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
