//! What comes of a call: a text for the model, of bounded size, and what it was made
//! from.

use crate::memory::{OutputId, StoreError};
use crate::model::Consent;
use crate::telemetry::event::{SearchedBy, ToolOutcome};
use crate::telemetry::with_sources;
use clew_context::model::{ContentSource, Fallback, Image};

/// The most bytes of a result that are looked at.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// What a tool gives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOutput {
    /// Should be UTF-8.
    pub content: Vec<u8>,
    /// What it was made from.
    pub sources: Vec<ContentSource>,
    /// Where messages were searched, if they were.
    pub search: Option<SearchedBy>,
    pub images: Vec<ToolImage>,
}

/// An image that a tool of another's server gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolImage {
    pub image: Image,
    /// Whether the answer is posted with it.
    pub is_attached: bool,
}

impl ToolOutput {
    /// Words of our own, made from nothing.
    pub(super) fn line(line: &str) -> Self {
        Self {
            content: line.as_bytes().to_owned(),
            ..Self::default()
        }
    }
}

/// Why a tool gives nothing. Displays what the model is told.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// No such tool was offered.
    #[error("There is no tool of that name.")]
    Unknown,
    /// What the model wrote cannot be read.
    #[error("The arguments are not a JSON object. Call the tool again with one.")]
    Arguments,
    /// One of them is missing or wrong.
    #[error("The argument `{0}` is missing or wrong.")]
    Argument(&'static str),
    /// The same words whether it does not exist, or somebody who reads the answer may
    /// not read it.
    #[error("There is nothing there that everybody who reads this answer may read.")]
    NotForEverybody,
    /// It was deleted or edited while the tool ran.
    #[error("What the tool read was changed or removed meanwhile.")]
    SourceRemoved,
    /// There is no such output of this conversation, or no longer.
    #[error("There is no such output any more.")]
    NoOutput,
    /// The agent has no such document, and none has a passage with these words.
    #[error("There is no such document or heading, and no passage with these words.")]
    NoDoc,
    /// It was called with the same arguments before.
    #[error("You called this tool with the same arguments before; its result is above.")]
    Repeated,
    /// Too many calls in one answer.
    #[error("Too many tools were called at once. This one was not run.")]
    TooMany,
    /// More was read in this turn than it may be made from.
    #[error("Too many messages were read already. Answer from what you have.")]
    TooMuch,
    /// It did not end in time.
    #[error("The tool took too long and was stopped.")]
    Timeout,
    /// Discord did not give what was asked for.
    #[error("Discord did not answer ({0}).")]
    Discord(Fallback),
    /// A tool of a server that nobody could be asked for: too long, too many, or nobody there.
    #[error("This needs somebody's consent, and nobody could be asked: it was not done.")]
    NotAsked,
    #[error("Somebody denied this: it was not done. Do not try it again.")]
    Denied,
    #[error("Nobody gave consent in time: it was not done.")]
    Expired,
    #[error("It was allowed, but rights or the tool changed meanwhile: it was not done.")]
    Overruled,
    /// An earlier process asked for the same call of the same turn.
    #[error("The bot was restarted meanwhile: this {}.", if *was_allowed { "may have been done or not" } else { "was not done" })]
    CutOff { was_allowed: bool },
    /// A server's tool gave nothing.
    #[error("The tool was not run, or failed: {0}.")]
    Server(String),
    #[error("What is stored cannot be reached right now.")]
    Store(#[from] StoreError),
}

impl ToolError {
    /// Of a read that failed: what is not there and what is closed to us read the same.
    pub(super) fn of_read(reason: Fallback) -> Self {
        match reason {
            Fallback::Forbidden | Fallback::NotFound | Fallback::Deleted => Self::NotForEverybody,
            other => Self::Discord(other),
        }
    }

    const fn outcome(&self) -> ToolOutcome {
        match self {
            Self::Unknown => ToolOutcome::Unknown,
            Self::Arguments | Self::Argument(_) | Self::NoDoc => ToolOutcome::Invalid,
            Self::NotForEverybody
            | Self::SourceRemoved
            | Self::NoOutput
            | Self::NotAsked
            | Self::Denied
            | Self::Expired
            | Self::Overruled
            | Self::CutOff { .. } => ToolOutcome::Refused,
            Self::Repeated => ToolOutcome::Repeated,
            Self::TooMany | Self::TooMuch => ToolOutcome::TooMany,
            Self::Timeout => ToolOutcome::Timeout,
            Self::Discord(_) | Self::Server(_) | Self::Store(_) => ToolOutcome::Failed,
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// For the model.
    pub text: String,
    /// The size of what the tool gave.
    pub bytes: usize,
    /// What it was made from.
    pub sources: Vec<ContentSource>,
    pub outcome: ToolOutcome,
    /// Under which id all of it is kept.
    pub output: Option<OutputId>,
    /// Where messages were searched, if they were.
    pub search: Option<SearchedBy>,
    pub images: Vec<ToolImage>,
    /// Of a tool of another's server: how it came to be called, or not.
    pub consent: Option<Consent>,
}

impl ToolResult {
    /// What is not UTF-8 in it becomes U+FFFD; what is beyond `MAX_BYTES` is dropped.
    pub(super) fn of_output(output: ToolOutput) -> Self {
        let ToolOutput {
            content,
            sources,
            search,
            images,
        } = output;
        let bytes = content.len();
        let text = String::from_utf8_lossy(&content[..bytes.min(MAX_BYTES)]).into_owned();
        Self {
            text,
            bytes,
            sources,
            outcome: ToolOutcome::Ok,
            output: None,
            search,
            images,
            consent: None,
        }
    }

    /// What the model is told of an error.
    pub fn of_error(error: &ToolError) -> Self {
        if let ToolError::Store(error) = error {
            tracing::warn!(error = %with_sources(error), "a tool failed");
        }
        let text = error.to_string();
        Self {
            bytes: text.len(),
            text,
            sources: Vec::new(),
            outcome: error.outcome(),
            output: None,
            search: None,
            images: Vec::new(),
            consent: None,
        }
    }
}
