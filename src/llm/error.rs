//! What can go wrong between the question and the whole answer.

use std::time::Duration;

use super::FinishReason;
use super::redact::Redactor;
use crate::model::LlmFailure;
use clew_context::outside::SendError;

/// The cause of an error, for the log.
type ErrorCause = Box<dyn std::error::Error + Send + Sync>;

/// Why there is no whole answer. `message` is the server's own, on one line,
/// shortened, without key and prompt; it may be empty.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server does not accept the key, or the account behind it.
    #[error("the model server refuses the API key{}", said(.message))]
    Unauthorized {
        /// The server's words.
        message: String,
    },
    /// Too many requests or tokens, or the quota is used up.
    #[error("the model server limits our rate{}", said(.message))]
    RateLimited {
        /// How long to wait, if the server says so.
        retry_after: Option<Duration>,
        /// The server's words.
        message: String,
    },
    /// The prompt does not fit the model's window: shorten it and ask again.
    #[error("the prompt is too long for the model{}", said(.message))]
    ContextTooLong {
        /// The tokens that the model takes, prompt and answer together, if the
        /// server said so.
        limit: Option<u32>,
        /// The server's words.
        message: String,
    },
    /// The server is down, unreachable, overloaded or broken.
    #[error("the model server is unavailable{}{}", status_note(*.status), said(.message))]
    Unavailable {
        /// The HTTP status, if there was one.
        status: Option<u16>,
        /// How long to wait, if the server says so.
        retry_after: Option<Duration>,
        /// The server's words.
        message: String,
        /// Why it could not be reached.
        #[source]
        cause: Option<ErrorCause>,
    },
    /// No such model, or no such endpoint at the configured address.
    #[error("the model server has no such model or endpoint{}", said(.message))]
    ModelNotFound {
        /// The server's words.
        message: String,
    },
    /// The server rejects our request for another reason.
    #[error("the model server rejects the request with status {status}{}", said(.message))]
    Rejected {
        /// The HTTP status.
        status: u16,
        /// The server's words.
        message: String,
    },
    /// The server does not take the images of the request.
    #[error("the model server refuses images{}", said(.message))]
    ImagesRefused {
        /// Whether the model seems to take none at all.
        by_model: bool,
        /// The server's words.
        message: String,
    },
    /// Nothing came for the whole time allowed, or the answer as a whole took too
    /// long.
    #[error("the model server did not answer in time")]
    Timeout,
    /// The server's answer is not what chat completion endpoints send.
    #[error("the model server's answer is malformed: {what}")]
    Malformed {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The answer is complete but has neither text nor tool calls: only reasoning, or
    /// nothing.
    #[error("the model's answer is empty")]
    Empty {
        /// Why the model stopped; [`FinishReason::Length`] means that it used
        /// up its tokens before it began to answer.
        finish_reason: FinishReason,
    },
    /// The answer broke off: text may have arrived, but not the end.
    #[error("the model's answer broke off")]
    Truncated {
        /// What broke it off; none if the server simply ended it.
        #[source]
        cause: Option<ErrorCause>,
    },
}

/// Why a [`super::Client`] cannot be created from its settings.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The base URL is not one.
    #[error("the model's base URL is not an HTTP or HTTPS URL")]
    BaseUrl,
    /// The key has characters that no HTTP header can carry.
    #[error("the model's API key has characters that cannot be sent")]
    ApiKey,
    /// The HTTP client could not be created.
    #[error("the HTTP client for the model could not be made")]
    Http(#[source] reqwest::Error),
}

impl Error {
    /// The same without its details.
    pub const fn reason(&self) -> LlmFailure {
        match self {
            Self::Unauthorized { .. } => LlmFailure::Unauthorized,
            Self::RateLimited { .. } => LlmFailure::RateLimited,
            Self::ContextTooLong { .. } => LlmFailure::ContextTooLong,
            Self::Unavailable { .. } => LlmFailure::Unavailable,
            Self::ModelNotFound { .. } => LlmFailure::NotFound,
            Self::Rejected { .. } => LlmFailure::Rejected,
            Self::Malformed { .. } => LlmFailure::Malformed,
            Self::ImagesRefused { .. } => LlmFailure::ImagesRefused,
            Self::Timeout => LlmFailure::Timeout,
            Self::Empty { .. } => LlmFailure::Empty,
            Self::Truncated { .. } => LlmFailure::Truncated,
        }
    }

    pub(super) fn malformed(what: &'static str) -> Self {
        Self::Malformed { what }
    }

    /// The request failed before there was a status. The URL is removed, as it may
    /// contain credentials.
    pub(super) fn unreachable(cause: SendError) -> Self {
        if cause.is_timeout() {
            return Self::Timeout;
        }
        Self::Unavailable {
            status: None,
            retry_after: None,
            message: String::new(),
            cause: Some(Box::new(cause.without_url())),
        }
    }

    /// The body ended in the middle.
    pub(super) fn broken_off(cause: Option<reqwest::Error>) -> Self {
        Self::Truncated {
            cause: cause.map(|cause| Box::new(cause.without_url()) as ErrorCause),
        }
    }

    /// The same error after text had arrived: whatever broke the answer off, part
    /// of it is there, so nothing may be asked again.
    pub(super) fn after_text(self) -> Self {
        match self {
            Self::Timeout | Self::Truncated { .. } => self,
            error => Self::Truncated {
                cause: Some(Box::new(error)),
            },
        }
    }

    /// The same error with a message that is safe to log.
    pub(super) fn redacted(self, redactor: &Redactor<'_>) -> Self {
        self.with_message(|message| redactor.clean(message))
    }

    /// The same error without what its message quotes, to be judged by.
    pub(super) fn without_prompt(self, redactor: &Redactor<'_>) -> Self {
        self.with_message(|message| redactor.without_prompt(message))
    }

    fn with_message(mut self, change: impl FnOnce(&str) -> String) -> Self {
        if let Some(message) = self.message_mut() {
            *message = change(message);
        }
        self
    }

    /// The server's words in lower case, if they may be about a part of the request that it
    /// does not take, and whether it surely means the request: rejections with 400 or 422
    /// (Ollama, vLLM, `LiteLLM`); 404 (`OpenRouter`), 500 and 501 (llama.cpp) may mean it.
    pub(super) fn objection(&self) -> Option<(String, bool)> {
        match self {
            Self::Rejected { message, .. } => Some((message.to_lowercase(), true)),
            Self::ModelNotFound { message }
            | Self::Unavailable {
                status: Some(500 | 501),
                message,
                ..
            } => Some((message.to_lowercase(), false)),
            _ => None,
        }
    }

    fn message_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Unauthorized { message }
            | Self::RateLimited { message, .. }
            | Self::ContextTooLong { message, .. }
            | Self::Unavailable { message, .. }
            | Self::ModelNotFound { message }
            | Self::Rejected { message, .. }
            | Self::ImagesRefused { message, .. } => Some(message),
            Self::Timeout
            | Self::Malformed { .. }
            | Self::Empty { .. }
            | Self::Truncated { .. } => None,
        }
    }
}

fn said(message: &str) -> String {
    if message.is_empty() {
        return String::new();
    }
    format!(": {message}")
}

fn status_note(status: Option<u16>) -> String {
    status.map_or_else(String::new, |status| format!(" (status {status})"))
}
