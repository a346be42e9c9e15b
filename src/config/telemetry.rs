//! Where the JSONL events and the state are written.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::check::Checker;
use super::variable as var;

/// The longest name that `MEM_LOG_SUBSYS` accepts, in bytes.
const LONGEST_SUBSYS: usize = 32;

/// The JSONL events.
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
}

/// How users and direct conversations are named in the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryIds {
    /// By their ids.
    Plain,
    /// By pseudonyms that only this bot can create.
    Keyed,
}

#[derive(Default, Deserialize)]
struct RawTelemetry {
    telemetry_dir: Option<String>,
    telemetry_keep_days: Option<String>,
    telemetry_ids: Option<String>,
    mem_log_subsys: Option<String>,
    metrics_addr: Option<String>,
    state_dir: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> TelemetryConfig {
    let raw: RawTelemetry = check.raw();
    let keep_days = check.number(
        &var::TELEMETRY_KEEP_DAYS,
        raw.telemetry_keep_days,
        0..=36_500,
    );
    TelemetryConfig {
        dir: check.path(&var::TELEMETRY_DIR, raw.telemetry_dir),
        keep_days: (keep_days > 0).then_some(keep_days),
        ids: check.one_of(
            &var::TELEMETRY_IDS,
            raw.telemetry_ids,
            &[
                ("plain", TelemetryIds::Plain),
                ("keyed", TelemetryIds::Keyed),
            ],
        ),
        context_subsys: check
            .optional(
                &var::MEM_LOG_SUBSYS,
                raw.mem_log_subsys,
                "lower-case letters, digits, `_` and dots, at most 32",
                subsys,
            )
            .unwrap_or_default(),
        metrics: check.optional(
            &var::METRICS_ADDR,
            raw.metrics_addr,
            "an IP address and a port, such as 127.0.0.1:9464 or [::1]:9464",
            |text| text.parse().ok(),
        ),
    }
}

/// `STATE_DIR`.
pub(super) fn state_dir(check: &mut Checker) -> PathBuf {
    let raw: RawTelemetry = check.raw();
    check.path(&var::STATE_DIR, raw.state_dir)
}

/// The form that `telemetry/schema.json` requires of every subsystem's name.
fn subsys(text: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let parts = text
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(allowed));
    (parts && text.len() <= LONGEST_SUBSYS).then(|| text.to_owned())
}
