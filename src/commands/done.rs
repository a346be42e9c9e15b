//! The result of a call.

use super::words;
use crate::model::Again;
use crate::runs::RunSlot;
use crate::telemetry::event::CommandOutcome;
use crate::telemetry::with_sources;
use clew_context::model::{ChannelId, GuildId, InteractionId, MessageId, TurnRequest, UserId};
use clew_discord::model::{Answer, AnswerEmbed};

/// The result of a call.
#[derive(Debug)]
pub struct Done {
    /// What the caller sees.
    pub reply: Reply,
    pub outcome: CommandOutcome,
    /// What `app` has to do before it sends the reply.
    pub effect: Option<Effect>,
}

/// What is shown if the work takes long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// "... is thinking", for the caller alone.
    Thinking,
    /// Nothing; the message with the button changes later.
    Update,
    /// Nothing; there are no choices then.
    NoChoices,
}

/// What the caller sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Message(Answer),
    /// Replaces the message with the button.
    Update(Answer),
    /// Choices for the option being typed, as name and value.
    Choices(Vec<(String, String)>),
}

/// What `app` has to do before it sends the reply.
#[derive(Debug)]
pub enum Effect {
    /// Somebody opted out or in again: whatever holds messages must be told.
    OptOutsChanged,
    /// Direct messages to the caller. If one cannot be delivered, `closed` replaces the
    /// reply, and the messages from that one on follow it, for the caller only.
    DirectMessages {
        /// In the order of sending.
        messages: Vec<Answer>,
        /// The reply if the caller takes no direct messages.
        closed: Answer,
    },
    /// An answer for everybody there follows the reply.
    Share(Answer),
    /// An agent run begins. The reply says where it stands.
    Run(Box<BeginningRun>),
    /// An agent run ends.
    StopRun(InteractionId),
    /// A turn is told something; what comes of it is the reply's text.
    Steer(Steer),
}

/// What a turn is told.
#[derive(Debug)]
pub enum Steer {
    /// Its answer ends here.
    Stop {
        question: MessageId,
        channel: ChannelId,
        /// Whose it has to be; none: anybody's.
        of: Option<UserId>,
    },
    /// A question is answered again.
    Regenerate(Box<TurnRequest>, Again),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steered {
    Stopping,
    Asking,
    NotTheirs,
    /// The operator's lists forbid it to whoever asked.
    NotAllowed,
    /// Its turn is over, perhaps with an earlier process.
    TooOld,
    /// The question is being answered.
    Busy,
    /// The asker may ask nothing now: no tokens are left, or they are blocked.
    Spent,
    /// The process ends.
    Unfinished,
}

impl Steered {
    /// What the caller is told.
    ///
    /// # Errors
    /// The same, if nothing was done.
    pub const fn line(self) -> Result<&'static str, &'static str> {
        match self {
            Self::Stopping => Ok("Stopping it."),
            Self::Asking => Ok("I'll answer again."),
            Self::NotTheirs => Err(words::NOT_THEIRS),
            Self::NotAllowed => Err("I may not answer whoever asked that."),
            Self::TooOld => Err(words::TOO_OLD),
            Self::Busy => Err("I'm answering this question just now."),
            Self::Spent => Err("Whoever asked that has no tokens left today, or is blocked."),
            Self::Unfinished => Err(words::UNFINISHED),
        }
    }
}

/// An agent run that has no place on Discord yet.
#[derive(Debug)]
pub struct BeginningRun {
    /// Its place among the runs.
    pub slot: RunSlot,
    /// The turn that does it, in the channel where it was asked for.
    pub request: TurnRequest,
    /// The channel in which a thread may be started for it, if one may be.
    pub thread_in: Option<(GuildId, ChannelId)>,
}

impl Done {
    /// A success, reported to the caller only.
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

    /// An embed of these fields.
    pub(super) fn fields(title: &str, fields: Vec<(&str, String)>) -> Self {
        Self::described(title, "", fields)
    }

    /// An embed of a text and these fields.
    pub(super) fn described(title: &str, text: &str, fields: Vec<(&str, String)>) -> Self {
        let fields = fields.into_iter();
        let embed = AnswerEmbed {
            title: title.to_owned(),
            description: text.to_owned(),
            fields: fields
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..AnswerEmbed::default()
        };
        Self::answer(Answer::default().with_embed(embed))
    }

    /// Plain text.
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

    /// Of a call that the end of the process broke off.
    pub fn unfinished(deferral: Deferral) -> Self {
        finished(deferral, Err(Stop::Unfinished))
    }

    pub(super) fn with(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }
}

/// Why a call was not done.
#[derive(Debug)]
pub(super) enum Stop {
    /// A refusal in one line, for the caller.
    Refused(String),
    Store(clew_store::Error),
    /// The process ends before it is done.
    Unfinished,
}

impl Stop {
    pub(super) fn refused(line: impl Into<String>) -> Self {
        Self::Refused(line.into())
    }
}

impl From<clew_store::Error> for Stop {
    fn from(error: clew_store::Error) -> Self {
        match error {
            clew_store::Error::NeedsDatabase { what } => {
                Self::Refused(format!("{what} need a database, and this bot keeps files."))
            }
            error => Self::Store(error),
        }
    }
}

/// Turns a refusal into one small line, and puts the answer where it belongs.
pub(super) fn finished(deferral: Deferral, done: Result<Done, Stop>) -> Done {
    let done = match done {
        Ok(done) => done,
        // There is no other answer to somebody who types.
        Err(_) if deferral == Deferral::NoChoices => Done::choices(Vec::new()),
        Err(stop) => stopped(stop),
    };
    match done.reply {
        Reply::Message(answer) if deferral == Deferral::Update => Done {
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
        Stop::Unfinished => (words::UNFINISHED.to_owned(), CommandOutcome::Failed),
    };
    Done {
        outcome,
        ..Done::say(format!("-# {line}"))
    }
}
