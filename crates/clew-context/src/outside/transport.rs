//! How requests reach a server.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::{Client, Request, Response};

/// Sends HTTP requests: a [`Client`], or a simulation that answers in its process.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request. The answer's body may come later, and may break off.
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, SendError>>;
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The client's error.
    #[error(transparent)]
    Http(#[from] reqwest::Error),
    /// The connection broke off before the answer.
    #[error("the connection broke off")]
    BrokenOff,
    /// The answer did not come in the request's own time.
    #[error("no answer came in time")]
    Timeout,
}

impl SendError {
    /// Whether time ran out.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Http(error) => error.is_timeout(),
            Self::BrokenOff => false,
            Self::Timeout => true,
        }
    }

    /// The same without the address, which may hold a login.
    #[must_use]
    pub fn without_url(self) -> Self {
        match self {
            Self::Http(error) => Self::Http(error.without_url()),
            other => other,
        }
    }
}

impl Transport for Client {
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, SendError>> {
        self.execute(request).map(|sent| Ok(sent?)).boxed()
    }
}
