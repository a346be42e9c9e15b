//! `METRICS_ADDR` and `MCP_LISTEN`: whether the bot can listen there.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

use super::Finding;
use crate::app;
use crate::config::{Config, McpListen};
use clew_discord::session::LockError;

/// None where nothing is to be served.
pub(super) fn found(config: &Config) -> impl Iterator<Item = Finding> {
    let metrics = config.telemetry.metrics.map(|address| {
        let said = format!("METRICS_ADDR={address}");
        tried(config, "metrics", &said, address)
    });
    let programs = config.mcp_listen.and_then(McpListen::address);
    let programs = programs.map(|address| {
        let said = format!("MCP_LISTEN={address}");
        tried(config, "programs", &said, address)
    });
    metrics.into_iter().chain(programs)
}

fn tried(config: &Config, name: &'static str, said: &str, address: SocketAddr) -> Finding {
    let Err(error) = TcpListener::bind(address) else {
        return Finding::ok(name, format!("{said}: free"));
    };
    let is_taken = error.kind() == ErrorKind::AddrInUse;
    if is_taken && matches!(app::claim(config), Err(LockError::Held { .. })) {
        return Finding::ok(name, format!("{said}: in use, and a bot runs"));
    }
    Finding::failed(
        name,
        format!("{said}: {error}"),
        "set it to a free port on an address of this machine, or leave it empty",
    )
}
