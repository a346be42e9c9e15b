//! Sends traces to a collector, in batches and beside the turns. What the collector does not
//! take in time is dropped, and the log says how much.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{StatusCode, redirect};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::super::log::with_sources;
use super::otlp::{self, Span};
use super::{ServerAddress, Traces};
use crate::config::{Endpoint, LlmConfig, TraceConfig};

/// How long traces are gathered before they are sent.
const GATHERING: Duration = Duration::from_secs(2);
/// The most spans of a request; a turn is not divided.
const BATCH_SPANS: usize = 512;
/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(10);
/// How often a batch is sent until the collector takes it, and the pause between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);
/// How long the last batch may take when the process ends.
const CLOSING: Duration = Duration::from_secs(5);
/// How often the log says that traces are lost.
const WARN_EVERY: Duration = Duration::from_mins(1);

/// The client for the collector could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up the HTTP client for OTEL_EXPORTER_OTLP_ENDPOINT")]
pub struct SetupError(#[from] reqwest::Error);

/// Sends traces until it is closed.
#[derive(Debug)]
pub struct Exporter {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

/// The sending end.
struct Sender {
    traces: Traces,
    http: reqwest::Client,
    endpoint: Endpoint,
    headers: HeaderMap,
    instance: Uuid,
    stop: CancellationToken,
    /// Turns that were lost and not told of yet.
    lost: u64,
    warned: Option<Instant>,
}

/// Why a batch was not taken.
enum Refusal {
    /// Another try may help.
    Passing(String),
    Final(String),
}

impl Traces {
    /// Starts to export.
    ///
    /// # Errors
    /// If there can be no client for HTTP.
    pub fn export(
        config: &TraceConfig,
        model: Option<&LlmConfig>,
    ) -> Result<(Self, Exporter), SetupError> {
        let (traces, waiting) = Self::new(model.map_or_else(Vec::new, addresses));
        let http = http_client(&config.endpoint)?;
        let stop = CancellationToken::new();
        let sender = Sender {
            traces: traces.clone(),
            http,
            endpoint: config.endpoint.clone(),
            headers: headers(config),
            instance: Uuid::new_v4(),
            stop: stop.clone(),
            lost: 0,
            warned: None,
        };
        let task = tokio::spawn(sender.run(waiting));
        Ok((traces, Exporter { stop, task }))
    }
}

/// Of the model servers, in their order.
fn addresses(model: &LlmConfig) -> Vec<ServerAddress> {
    let fallbacks = model.fallbacks.iter().map(|one| &one.base_url);
    let all = std::iter::once(&model.base_url).chain(fallbacks);
    let addresses = all.map(|url| {
        let (host, port) = url.host_and_port();
        ServerAddress {
            host: host.to_owned(),
            port,
        }
    });
    addresses.collect()
}

/// A collector without TLS stands in the operator's own network: it is reached without a
/// proxy, and the system's root certificates are not loaded.
fn http_client(endpoint: &Endpoint) -> Result<reqwest::Client, reqwest::Error> {
    let _already_installed = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .user_agent(concat!("clew/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .timeout(REQUEST);
    if endpoint.to_string().starts_with("http:") {
        return builder.no_proxy().tls_certs_only([]).build();
    }
    builder.build()
}

fn headers(config: &TraceConfig) -> HeaderMap {
    let headers = config.headers.iter().filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    });
    headers.collect()
}

impl Exporter {
    /// Sends what waits, within seconds, and ends.
    pub async fn close(self) {
        self.stop.cancel();
        if timeout(CLOSING, self.task).await.is_err() {
            tracing::warn!("the last traces were not exported: the collector does not answer");
        }
    }
}

impl Sender {
    async fn run(mut self, mut waiting: mpsc::Receiver<Vec<Span>>) {
        loop {
            let mut batch = tokio::select! {
                biased;
                Some(turn) = waiting.recv() => turn,
                () = self.stop.cancelled() => return,
            };
            let mut turns = 1;
            let until = Instant::now() + GATHERING;
            while batch.len() < BATCH_SPANS {
                tokio::select! {
                    biased;
                    Some(turn) = waiting.recv() => {
                        batch.extend(turn);
                        turns += 1;
                    }
                    () = self.stop.cancelled() => break,
                    () = sleep_until(until) => break,
                }
            }
            self.send(&batch, turns).await;
        }
    }

    async fn send(&mut self, batch: &[Span], turns: u64) {
        let body = otlp::body(batch, self.instance);
        let mut last = String::new();
        for attempt in 1..=TRIES {
            match self.post(body.clone()).await {
                Ok(()) => return self.warn("the queue is full"),
                Err(Refusal::Final(why)) => {
                    last = why;
                    break;
                }
                Err(Refusal::Passing(why)) => last = why,
            }
            if attempt < TRIES {
                tokio::select! {
                    () = sleep(PAUSE) => {}
                    () = self.stop.cancelled() => {}
                }
            }
        }
        self.lost += turns;
        self.warn(&last);
    }

    async fn post(&self, body: String) -> Result<(), Refusal> {
        let url = format!("{}/v1/traces", self.endpoint.url());
        let request = self.http.post(url).headers(self.headers.clone());
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let answer = request.send().await;
        let status = match answer {
            Ok(answer) => answer.status(),
            Err(error) => return Err(Refusal::Passing(with_sources(&error.without_url()))),
        };
        // OTLP/HTTP names these as passing.
        let passing = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::BAD_GATEWAY,
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::GATEWAY_TIMEOUT,
        ];
        match status {
            status if status.is_success() => Ok(()),
            status if passing.contains(&status) => Err(Refusal::Passing(status.to_string())),
            status => Err(Refusal::Final(status.to_string())),
        }
    }

    /// Says how many traces were lost, at most once a minute.
    fn warn(&mut self, why: &str) {
        self.lost += self.traces.take_dropped();
        let is_due = self.warned.is_none_or(|last| last.elapsed() >= WARN_EVERY);
        if self.lost > 0 && is_due {
            tracing::warn!(
                turns = self.lost,
                endpoint = %self.endpoint,
                why,
                "traces were lost: look at OTEL_EXPORTER_OTLP_ENDPOINT"
            );
            self.lost = 0;
            self.warned = Some(Instant::now());
        }
    }
}
