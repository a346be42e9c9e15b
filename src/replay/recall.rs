//! Which earlier exchanges would be recalled for a trigger: of the bot's answers in the
//! recording, each with what it replies to.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::Us;
use crate::archive::{ArchiveError, Recording};
use clew_context::engine::recall::{RecallEntry, RecallIndex};
use clew_context::model::{ChannelId, Message, MessageId, TurnId, UnixMillis, UserId};

/// What stored history would show, and what would be recalled beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallSettings {
    /// `RECALL_MESSAGES`.
    pub most: usize,
    /// `MAX_CONTEXT_MESSAGES`.
    pub max_messages: usize,
    /// `CONTEXT_ROLLING_WINDOW_S`.
    pub rolling_window: Duration,
}

/// The exchanges of each member in each channel, as with `CONTEXT_SCOPE=member`. Indexes
/// hold no text: about 300 bytes an exchange.
pub(super) struct Recalls<'a> {
    recording: &'a Recording,
    us: &'a Us,
    settings: RecallSettings,
    of: HashMap<(ChannelId, UserId), Exchanges>,
}

#[derive(Default)]
struct Exchanges {
    index: RecallIndex,
    /// The newest, which stored history shows: question and time.
    history: VecDeque<(TurnId, UnixMillis)>,
}

impl<'a> Recalls<'a> {
    pub(super) fn new(recording: &'a Recording, us: &'a Us, settings: RecallSettings) -> Self {
        Self {
            recording,
            us,
            settings,
            of: HashMap::new(),
        }
    }

    /// Sees every message in order.
    pub(super) fn see(&mut self, message: &Message) -> Result<(), ArchiveError> {
        if !self.us.wrote(message) || message.replies_to().is_none() {
            return Ok(());
        }
        let mut answer = message.clone();
        self.recording.carry(&mut answer)?;
        let Some(question) = answer.referenced_message() else {
            return Ok(());
        };
        if !self.us.is_person(question) || self.us.wrote(question) {
            return Ok(());
        }
        let of = (message.channel, question.author.id);
        let exchanges = self.of.entry(of).or_default();
        let turn = TurnId(question.id.get());
        let words = self.us.own_words(question);
        exchanges.index.add_newer(&[RecallEntry {
            turn,
            at: question.timestamp,
            author: &question.author.name,
            texts: vec![&words, &message.content],
        }]);
        exchanges.history.push_back((turn, question.timestamp));
        if exchanges.history.len() * 2 > self.settings.max_messages {
            exchanges.history.pop_front();
        }
        Ok(())
    }

    /// The questions of the exchanges that would be recalled, best first.
    pub(super) fn of(&self, trigger: &Message) -> Vec<MessageId> {
        // No stored history is none at all.
        if self.settings.max_messages == 0 {
            return Vec::new();
        }
        let Some(exchanges) = self.of.get(&(trigger.channel, trigger.author.id)) else {
            return Vec::new();
        };
        let window = i64::try_from(self.settings.rolling_window.as_millis()).unwrap_or(i64::MAX);
        let since = trigger.timestamp.0.saturating_sub(window);
        let shown = exchanges.history.iter().filter(|(_, at)| at.0 > since);
        let shown: BTreeSet<TurnId> = shown.map(|(turn, _)| *turn).collect();
        let (words, ever) = (self.us.own_words(trigger), UnixMillis(i64::MIN));
        let best = exchanges
            .index
            .best(&words, ever, &shown, self.settings.most);
        best.into_iter()
            .map(|turn| MessageId::new(turn.0))
            .collect()
    }
}
