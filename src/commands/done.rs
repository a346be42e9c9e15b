//! What came of a call.

use super::call::Call;
use super::words;
use crate::telemetry::event::CommandOutcome;
use crate::telemetry::with_sources;
use clew_discord::model::Answer;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// What the caller gets to see.
    pub reply: Reply,
    /// How it ended.
    pub outcome: CommandOutcome,
    /// What else is to be done, before the answer.
    pub effect: Option<Effect>,
}

/// What the caller gets to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A message.
    Message(Answer),
    /// In place of the message that the button is under.
    Update(Answer),
    /// Choices for the option that is typed, as name and value.
    Choices(Vec<(String, String)>),
}

/// What is to be done beside the answer, and before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Somebody opted out, or is back: what holds messages hears of it.
    OptOutsChanged,
    /// Direct messages to the caller. If the caller takes none, they follow
    /// the answer, which then is the one given here, for the caller alone.
    DirectMessages {
        /// In order.
        messages: Vec<Answer>,
        /// In place of the reply.
        closed: Answer,
    },
}

impl Done {
    /// It is done; the caller alone is told so.
    pub(super) fn answer(answer: Answer) -> Self {
        Self {
            reply: Reply::Message(Answer {
                ephemeral: true,
                ..answer
            }),
            outcome: CommandOutcome::Done,
            effect: None,
        }
    }

    /// The same in a text.
    pub(super) fn say(text: impl Into<String>) -> Self {
        Self::answer(Answer::for_caller(text))
    }

    pub(super) fn choices(choices: Vec<(String, String)>) -> Self {
        Self {
            reply: Reply::Choices(choices),
            outcome: CommandOutcome::Done,
            effect: None,
        }
    }

    pub(super) fn with(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }
}

/// Why a call was not done.
#[derive(Debug)]
pub(super) enum Stop {
    /// In one line, for the caller.
    Refused(String),
    /// A store's fault.
    Store(clew_store::Error),
}

impl Stop {
    pub(super) fn refused(line: impl Into<String>) -> Self {
        Self::Refused(line.into())
    }
}

impl From<clew_store::Error> for Stop {
    fn from(error: clew_store::Error) -> Self {
        match error {
            clew_store::Error::NeedsDatabase { what } => Self::Refused(format!(
                "{what} need a database, and I keep conversations in files here."
            )),
            error => Self::Store(error),
        }
    }
}

/// With a refusal as one small line, in the place where the answer goes.
pub(super) fn finished(call: &Call, done: Result<Done, Stop>) -> Done {
    let done = done.unwrap_or_else(stopped);
    match done.reply {
        Reply::Message(answer) if call.updates() => Done {
            reply: Reply::Update(answer),
            ..done
        },
        _ => done,
    }
}

fn stopped(stop: Stop) -> Done {
    let (line, outcome) = match stop {
        Stop::Refused(line) => (line, CommandOutcome::Refused),
        Stop::Store(error) => {
            tracing::warn!(error = %with_sources(&error), "a command failed");
            (words::FAILED.to_owned(), CommandOutcome::Failed)
        }
    };
    Done {
        outcome,
        ..Done::say(format!("-# {line}"))
    }
}
