//! How requests reach a server.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::{Client, IntoUrl, Method, Request, RequestBuilder, Response};

/// Sends HTTP requests instead of a client: a simulation that answers in its process.
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

/// Makes requests, and sends them by itself or through a [`Transport`].
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    transport: Option<Arc<dyn Transport>>,
}

impl Http {
    /// Sends by itself.
    pub const fn new(client: Client) -> Self {
        Self {
            client,
            transport: None,
        }
    }

    /// Sends through something else, if there is anything.
    #[must_use]
    pub fn through(self, transport: Option<Arc<dyn Transport>>) -> Self {
        Self { transport, ..self }
    }

    /// A request, to be sent by [`Http::send`].
    pub fn request(&self, method: Method, url: impl IntoUrl) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// It cannot be built, or there is no answer.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, SendError> {
        let request = request.build()?;
        match &self.transport {
            Some(transport) => transport.send(request).await,
            None => Ok(self.client.execute(request).await?),
        }
    }
}
