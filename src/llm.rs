//! Access to a language model behind OpenAI-compatible servers.
//!
//! [`ModelServers`] knows which server is asked, and which one when that fails.
//! [`ServerAttempts::answer`] makes one streamed request and gives the answer in
//! steps, as it arrives. Only `llm/wire.rs` knows what a server may send.
//!
//! Invariant: once text has arrived nothing is asked again, and no error's text
//! contains the key, the prompt or the answer.

mod answer;
mod breaker;
mod calls;
mod capabilities;
mod dialect;
mod error;
mod estimate;
mod meter;
mod redact;
mod request;
mod server_error;
mod servers;
mod stream;
mod thinking;
mod vision;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url, redirect};
use tokio::time::{Instant, timeout};

use crate::model::{ToolDefinition, Vision};
use clew_context::model::{ChatMessage, Secret, ToolCall};
use clew_context::outside::Http;

use self::capabilities::{Capabilities, Extra};
pub use self::error::{Error, SetupError};
pub use self::estimate::{IMAGE_TOKENS, estimated, tokens};
pub use self::meter::TokenMeter;
use self::redact::Redactor;
pub use self::servers::{Attempt, Follower, ModelServers, ServerAttempts};
pub use crate::model::FinishReason;

/// The longest time to wait for a connection.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(10);

/// The path of the completions endpoint, below the base URL.
const COMPLETIONS: &str = "/chat/completions";
/// The path of the list of models.
const MODELS: &str = "/models";
/// How many bytes of a list of models are read: the longest known has some hundred models
/// with a kilobyte of description each.
const MAX_LIST_BYTES: usize = 4 << 20;

/// One model at one server. Holds the connection pool: create one and share it.
#[derive(Debug, Clone)]
pub struct Client {
    http: Http,
    endpoint: Url,
    settings: ModelSettings,
    capabilities: Arc<Capabilities>,
}

/// Where the model is, and how to ask it.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// The server's address, ending in `/v1`.
    pub base_url: String,
    /// Sent as a bearer token; local servers need none.
    pub api_key: Option<Secret>,
    /// The model's name as the server knows it.
    pub model: String,
    /// The longest silence: before the first byte and between any two. A whole
    /// answer may take four times as long.
    pub timeout: Duration,
    /// The most tokens an answer may have.
    pub max_output_tokens: u32,
    /// The tokens that the model takes, prompt and answer together, if known.
    pub context_tokens: Option<u32>,
    /// The most bytes of text in an answer; anything beyond is not read.
    pub max_answer_bytes: usize,
    /// The sampling temperature; left to the server if absent.
    pub temperature: Option<f32>,
    /// Whether the model is sent images.
    pub vision: Vision,
}

/// What happens next in an answer.
#[derive(Debug)]
pub enum AnswerStep {
    /// The request failed at this time, and is made again next unless the stream is dropped.
    /// Comes before anything else.
    Retry(Error, Instant),
    /// The next piece of text, never empty. The first does not start with white
    /// space.
    Text(String),
    /// The model wants a tool called. Calls come after all text.
    ToolCall(ToolCall),
    /// The answer is complete. Comes last.
    End(AnswerEnd),
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// All pieces of text joined.
    pub text: String,
    /// What is known at its end.
    pub end: AnswerEnd,
}

/// What is known of an answer at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerEnd {
    pub finish_reason: FinishReason,
    /// Whether the text, or part of it, came as the provider's refusal.
    pub refused: bool,
    /// The tokens used, if the server said so.
    pub usage: Option<Usage>,
    /// The model that answered, as the server names it: often more exact than what was asked for.
    pub model: Option<String>,
}

/// Tokens as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "test-util"),
    expect(
        clippy::struct_field_names,
        reason = "the servers' own names; the lint passes over what is exported"
    )
)]
pub struct Usage {
    /// Tokens of the prompt, what came from the server's cache included.
    pub prompt_tokens: u64,
    /// Those of them that came from the cache, if the server says.
    pub cached_tokens: Option<u64>,
    /// Tokens of the answer, hidden reasoning included.
    pub completion_tokens: u64,
    /// Those of them that were reasoning, if the server says.
    pub reasoning_tokens: Option<u64>,
}

impl Client {
    /// Prepares the connection pool, without connecting yet.
    ///
    /// # Errors
    /// If the address is not an HTTP URL, no header can carry the key, or the
    /// system has no root certificates.
    pub fn new(settings: ModelSettings) -> Result<Self, SetupError> {
        let endpoint = endpoint(&settings.base_url)?;
        Ok(Self {
            http: Http::new(http_client(&settings, is_loopback(&endpoint))?),
            endpoint,
            settings,
            capabilities: Arc::default(),
        })
    }

    /// A client for another model at the same server, sharing the connections and
    /// what was learnt of both; with `None`, for this model.
    #[must_use]
    pub fn with_model(&self, model: Option<&str>) -> Self {
        let mut client = self.clone();
        if let Some(model) = model {
            model.clone_into(&mut client.settings.model);
        }
        client
    }

    /// The most tokens that a prompt may have, if known.
    pub fn prompt_room(&self) -> Option<usize> {
        let set = self
            .settings
            .context_tokens
            .map(|all| self.beside_answer(all));
        let learnt = self
            .capabilities
            .prompt_room(&self.settings.model, Instant::now());
        set.into_iter().chain(learnt).min()
    }

    /// A prompt was too long, and one of `next` tokens will be tried: for an hour
    /// prompts to this model may have no more, nor more than the server named.
    pub fn learn_room(&self, next: usize, context_tokens: Option<u32>) {
        let said = context_tokens.map(|all| self.beside_answer(all));
        let room = said.into_iter().chain([next]).min().unwrap_or(next);
        self.capabilities
            .learn_room(&self.settings.model, room, Instant::now());
    }

    /// Whether the model is sent images: with `LLM_VISION=auto` until it refuses some.
    pub fn takes_images(&self) -> bool {
        let model = &self.settings.model;
        match self.settings.vision {
            Vision::Auto => self
                .capabilities
                .takes(Extra::Images, model, Instant::now()),
            Vision::On => true,
            Vision::Off => false,
        }
    }

    /// The model has answered a request with images.
    pub fn took_images(&self) {
        let model = &self.settings.model;
        self.capabilities.took(Extra::Images, model, Instant::now());
    }

    /// A request was refused because of its images, perhaps since the model takes none at
    /// all; then it gets none for an hour. Returns whether to ask without them.
    pub fn refused_images(&self, by_model: bool) -> bool {
        let model = &self.settings.model;
        if self.settings.vision == Vision::On {
            tracing::warn!(%model, "with LLM_VISION=auto or off it would be asked without images");
            return false;
        }
        if by_model {
            tracing::info!(%model, "the model refuses images: it is asked without them");
            self.capabilities
                .refused(Extra::Images, model, Instant::now());
        }
        true
    }

    /// The tokens that a context leaves for the prompt: at least half.
    fn beside_answer(&self, context_tokens: u32) -> usize {
        let left = context_tokens.saturating_sub(self.settings.max_output_tokens);
        left.max(context_tokens / 2) as usize
    }

    /// The model's name, as the server knows it.
    pub fn model(&self) -> &str {
        &self.settings.model
    }

    /// Asks the server for the list of its models, to see whether it is there.
    ///
    /// # Errors
    /// Whatever keeps it from answering or accepting the key.
    pub async fn look(&self) -> Result<(), Error> {
        self.model_list().await.map(drop)
    }

    async fn model_list(&self) -> Result<Response, Error> {
        let request = self.http.request(Method::GET, self.models_url());
        let redactor = Redactor::new(self.settings.api_key.as_ref(), &[]);
        let sent = self.send(request).await;
        sent.map_err(|error| error.redacted(&redactor))
    }

    /// The names of the models that the server lists, in its order.
    ///
    /// # Errors
    /// Whatever keeps it from listing them; [`Error::Malformed`] if it lists something else.
    pub async fn models(&self) -> Result<Vec<String>, Error> {
        let response = self.model_list().await?;
        let patience = self.settings.timeout;
        let body = timeout(patience, server_error::body(response, MAX_LIST_BYTES)).await;
        let body = body.map_err(|_| Error::Timeout)?;
        wire::models(&body).ok_or(Error::malformed("no list of models"))
    }

    /// The address that [`Client::look`] asks.
    pub fn models_url(&self) -> Url {
        let mut url = self.endpoint.clone();
        let base = url.path().trim_end_matches(COMPLETIONS);
        url.set_path(&format!("{base}{MODELS}"));
        url
    }

    async fn post(
        &self,
        prompt: &[ChatMessage],
        tools: &[ToolDefinition],
        dialect: dialect::Dialect,
    ) -> Result<Response, Error> {
        let body = wire::RequestBody::new(&self.settings, prompt, tools, dialect);
        let request = self.http.request(Method::POST, self.endpoint.clone());
        self.send(request.json(&body)).await
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let response = timeout(self.settings.timeout, self.http.send(request))
            .await
            .map_err(|_| Error::Timeout)?
            .map_err(Error::unreachable)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(server_error::of_response(response, self.settings.timeout).await)
    }
}

impl AnswerEnd {
    /// The tokens of a request and its answer, as counted by the server, else estimated.
    pub fn tokens(&self, prompt: &[ChatMessage], text: &str, calls: &[ToolCall]) -> u64 {
        let calls = calls.iter();
        let calls = calls.map(|call| call.name.len() + call.arguments.len());
        let answer_bytes = text.len() + calls.sum::<usize>();
        meter::used(self.usage, tokens(prompt), answer_bytes)
    }

    /// The end of an answer with this text, where no tools were offered.
    ///
    /// # Errors
    /// [`Error::Empty`] without text: a model that calls tools nevertheless has not
    /// answered.
    pub fn with_text(self, text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Empty {
                finish_reason: self.finish_reason,
            });
        }
        Ok(self)
    }
}

fn endpoint(base_url: &str) -> Result<Url, SetupError> {
    let mut url = Url::parse(base_url.trim()).map_err(|_| SetupError::BaseUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(SetupError::BaseUrl);
    }
    let path = format!("{}{COMPLETIONS}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Redirects are not followed: the prompt goes to the configured server or
/// nowhere. A server on this machine is reached without a proxy, and for
/// plain HTTP the client does not load the system's root certificates.
fn http_client(settings: &ModelSettings, local: bool) -> Result<reqwest::Client, SetupError> {
    // reqwest uses the process's provider and panics without one. An error means that
    // one has already been installed.
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("clew/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers(settings)?)
        .redirect(redirect::Policy::none())
        .connect_timeout(settings.timeout.min(MAX_CONNECT_TIME))
        .tcp_nodelay(true);
    if local {
        builder = builder.no_proxy();
        if settings.base_url.trim_start().starts_with("http:") {
            builder = builder.tls_certs_only([]);
        }
    }
    builder.build().map_err(SetupError::Http)
}

fn headers(settings: &ModelSettings) -> Result<HeaderMap, SetupError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &settings.api_key {
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
            .map_err(|_| SetupError::ApiKey)?;
        bearer.set_sensitive(true);
        headers.insert(AUTHORIZATION, bearer);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::{endpoint, is_loopback};

    #[test]
    fn addresses() {
        for (base_url, expected, loopback) in [
            (
                "http://127.0.0.1:8080/v1",
                "http://127.0.0.1:8080/v1/chat/completions",
                true,
            ),
            (
                "http://[::1]:8080/v1/",
                "http://[::1]:8080/v1/chat/completions",
                true,
            ),
            (
                "http://localhost/v1",
                "http://localhost/v1/chat/completions",
                true,
            ),
            (
                " https://api.example.org/v1 ",
                "https://api.example.org/v1/chat/completions",
                false,
            ),
        ] {
            let url = endpoint(base_url).unwrap();
            assert_eq!(url.as_str(), expected);
            assert_eq!(is_loopback(&url), loopback, "{base_url}");
        }
        for base_url in ["", "api.example.org/v1", "ftp://example.org/v1", "http://"] {
            assert!(endpoint(base_url).is_err(), "{base_url}");
        }
    }
}
