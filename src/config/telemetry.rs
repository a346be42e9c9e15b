//! Where the JSONL events and the state are written.

use std::net::SocketAddr;
use std::path::PathBuf;

use clew_context::model::Secret;

use super::check::Checker;
use super::endpoint::Endpoint;
use super::variable as var;

/// The names of the other subsystems.
pub(crate) const OTHER_SUBSYS: [&str; 9] = [
    "mem.thread",
    "route",
    "llm",
    "tools",
    "discord",
    "store",
    "memory",
    "command",
    "process",
];
/// The longest name that `MEM_LOG_SUBSYS` accepts, in bytes.
const LONGEST_SUBSYS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// `TELEMETRY_DIR`.
    pub dir: PathBuf,
    /// `TELEMETRY_KEEP_DAYS`; if none, for ever.
    pub keep_days: Option<u32>,
    /// `TELEMETRY_IDS`.
    pub ids: TelemetryIds,
    /// `MEM_LOG_SUBSYS`: the name of the context subsystem.
    pub context_subsys: String,
    /// `METRICS_ADDR`; if none, nothing is served.
    pub metrics: Option<SocketAddr>,
    /// `ALERT_WEBHOOK`; whoever has the URL can post there.
    pub alerts: Option<Secret>,
    /// Where traces go; if none, none are made.
    #[cfg(feature = "otel")]
    pub traces: Option<TraceConfig>,
}

#[cfg(feature = "otel")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub endpoint: Endpoint,
    /// `OTEL_EXPORTER_OTLP_HEADERS`: names and values.
    pub headers: Vec<(String, Secret)>,
}

/// How users and direct conversations are named in the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryIds {
    /// By their ids.
    Plain,
    /// By pseudonyms that only this bot can create.
    Keyed,
}

pub(super) fn read(check: &mut Checker) -> TelemetryConfig {
    let keep_days = check.number(&var::TELEMETRY_KEEP_DAYS, 0..=36_500);
    let endpoint = check.optional(
        &var::OTEL_EXPORTER_OTLP_ENDPOINT,
        "http://host:port or https://host: the address before /v1/traces, without query, user name \
         and password",
        |text| Endpoint::parse(text, &["http", "https"]),
    );
    let headers = check.optional(
        &var::OTEL_EXPORTER_OTLP_HEADERS,
        "name=value pairs separated by commas, as HTTP headers can be",
        headers,
    );
    #[cfg(feature = "otel")]
    let traces = endpoint.map(|endpoint| TraceConfig {
        endpoint,
        headers: headers.unwrap_or_default(),
    });
    #[cfg(not(feature = "otel"))]
    if endpoint.is_some() || headers.is_some() {
        let name = var::OTEL_EXPORTER_OTLP_ENDPOINT.name;
        check.warn(format!(
            "{name} has no effect: this program was built without the feature otel"
        ));
    }
    TelemetryConfig {
        dir: check.path(&var::TELEMETRY_DIR),
        keep_days: (keep_days > 0).then_some(keep_days),
        ids: check.one_of(
            &var::TELEMETRY_IDS,
            &[
                ("plain", TelemetryIds::Plain),
                ("keyed", TelemetryIds::Keyed),
            ],
        ),
        context_subsys: check
            .optional(
                &var::MEM_LOG_SUBSYS,
                "lower-case letters, digits, `_` and dots, at most 32, and not the name of another \
                 subsystem",
                subsys,
            )
            .unwrap_or_default(),
        metrics: check.optional(
            &var::METRICS_ADDR,
            "an IP address and a port, such as 127.0.0.1:9464 or [::1]:9464",
            |text| text.parse().ok(),
        ),
        alerts: check.optional(&var::ALERT_WEBHOOK, "an http or https URL", |text| {
            let url = reqwest::Url::parse(text).ok()?;
            matches!(url.scheme(), "http" | "https").then(|| Secret::new(text))
        }),
        #[cfg(feature = "otel")]
        traces,
    }
}

/// Pairs of header and value. A value may have percent-encoded bytes, which are left as they
/// are: keys have none.
fn headers(text: &str) -> Option<Vec<(String, Secret)>> {
    let pairs = text.split(',').map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_value = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        let fits = !name.is_empty() && name.bytes().all(is_name) && value.bytes().all(is_value);
        fits.then(|| (name.to_owned(), Secret::new(value)))
    });
    pairs.collect()
}

/// The form that `telemetry/schema.json` requires of every subsystem's name. What is called
/// as another one could not be told apart from it.
fn subsys(text: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let parts = text
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(allowed));
    let is_free = !OTHER_SUBSYS.contains(&text);
    (parts && is_free && text.len() <= LONGEST_SUBSYS).then(|| text.to_owned())
}
