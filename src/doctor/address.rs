//! `METRICS_ADDR`: whether the bot can listen there.

use std::io::ErrorKind;
use std::net::TcpListener;

use super::Finding;
use crate::app;
use crate::config::Config;
use clew_discord::session::LockError;

/// None if nothing is to be served.
pub(super) fn found(config: &Config) -> Option<Finding> {
    let address = config.telemetry.metrics?;
    let Err(error) = TcpListener::bind(address) else {
        let found = format!("METRICS_ADDR={address}: free");
        return Some(Finding::ok("metrics", found));
    };
    let is_taken = error.kind() == ErrorKind::AddrInUse;
    if is_taken && matches!(app::claim(config), Err(LockError::Held { .. })) {
        let found = format!("METRICS_ADDR={address}: in use, and a bot runs");
        return Some(Finding::ok("metrics", found));
    }
    Some(Finding::failed(
        "metrics",
        format!("METRICS_ADDR={address}: {error}"),
        "set it to a free port on an address of this machine, or leave it empty",
    ))
}
