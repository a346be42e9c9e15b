//! How requests reach a server.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::{Client, IntoUrl, Method, Request, RequestBuilder, Response};

use super::Lease;

/// Sends HTTP requests instead of a client: a simulation that answers in its process.
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request. The answer's body may come later, and may break off.
    fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, SendError>>;
}

/// What requests go through.
#[derive(Debug, Clone, Default)]
pub struct Sending {
    /// Sends them instead of the client.
    pub transport: Option<Arc<dyn Transport>>,
    /// Without it nothing is sent, and what is under way breaks off.
    pub lease: Option<Lease>,
}

impl<T: Transport + 'static> From<Arc<T>> for Sending {
    fn from(transport: Arc<T>) -> Self {
        Self {
            transport: Some(transport),
            lease: None,
        }
    }
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
    /// This process may send nothing any more.
    #[error("the lease is over: another process goes on")]
    LeaseOver,
}

impl SendError {
    /// Whether time ran out.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Http(error) => error.is_timeout(),
            Self::BrokenOff | Self::LeaseOver => false,
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

/// Makes requests, and sends them by itself or through a [`Transport`], as long as a lease holds.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    sending: Sending,
}

impl Http {
    /// Sends by itself.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            sending: Sending::default(),
        }
    }

    /// Sends in another way.
    #[must_use]
    pub fn through(self, sending: Sending) -> Self {
        Self { sending, ..self }
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
        let Some(lease) = &self.sending.lease else {
            return self.answer_to(request).await;
        };
        let answer = lease.during(self.answer_to(request)).await;
        answer.unwrap_or(Err(SendError::LeaseOver))
    }

    async fn answer_to(&self, request: Request) -> Result<Response, SendError> {
        match &self.sending.transport {
            Some(transport) => transport.send(request).await,
            None => Ok(self.client.execute(request).await?),
        }
    }
}
