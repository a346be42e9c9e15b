//! Servers differ in the parameters they take. What one rejects by name is
//! said the other way from then on.

use super::Error;

/// Which parameters a request is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Dialect(u8);

/// The limit is called `max_completion_tokens`: OpenAI's reasoning models.
const COMPLETION_TOKENS: u8 = 1;
/// No `stream_options`: older servers; they then report no usage.
const NO_STREAM_OPTIONS: u8 = 1 << 1;
/// No `temperature`: models that have only one.
const NO_TEMPERATURE: u8 = 1 << 2;

/// What is the server's: all of its models are asked so. The rest is one
/// model's.
const OF_SERVER: u8 = COMPLETION_TOKENS | NO_STREAM_OPTIONS;

/// A rejection that contains the word is answered by the change.
const CORRECTIONS: [(&str, u8); 3] = [
    ("max_completion_tokens", COMPLETION_TOKENS),
    ("stream_options", NO_STREAM_OPTIONS),
    ("temperature", NO_TEMPERATURE),
];

impl Dialect {
    /// What two know together.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What holds for the server's other models too.
    pub(super) fn of_server(self) -> Self {
        Self(self.0 & OF_SERVER)
    }

    pub(super) fn says_completion_tokens(self) -> bool {
        self.0 & COMPLETION_TOKENS != 0
    }

    pub(super) fn asks_for_usage(self) -> bool {
        self.0 & NO_STREAM_OPTIONS == 0
    }

    pub(super) fn sets_temperature(self) -> bool {
        self.0 & NO_TEMPERATURE == 0
    }

    /// A dialect that differs in what the server rejected by name. None if
    /// that has been tried, so that each change is made once.
    pub(super) fn corrected_by(self, error: &Error) -> Option<Self> {
        let Error::Rejected { message, .. } = error else {
            return None;
        };
        CORRECTIONS
            .iter()
            .find(|(word, change)| self.0 & change == 0 && message.contains(word))
            .map(|(_, change)| Self(self.0 | change))
    }
}
