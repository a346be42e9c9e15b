//! `clew mcp check`: what each server of `MCP_CONFIG` gives, and who may use it.

use std::io::{self, Write};

use anyhow::anyhow;
use clap::Subcommand;
use tracing::level_filters::LevelFilter;

use super::doctor::line;
use super::exit::{self, Ended, cannot, printed};
use crate::config::{Config, LogFormat};
use crate::doctor::{self, Outcome};
use crate::telemetry::init_log;
use clew_context::engine::sanitise;

#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// Connect to each server of `MCP_CONFIG`; list its tools and on whose consent they run
    Check,
}

/// Exit codes: 0 all servers give tools; 1 one does not, or the output cannot be written.
pub(super) async fn run(command: &McpCommand, config: &Config) -> Ended {
    let McpCommand::Check = command;
    init_log(LevelFilter::ERROR, LogFormat::Text);
    if config.mcp.is_none() {
        return Err(cannot(anyhow!(
            "MCP_CONFIG is not set: write a file of servers (docs/mcp.md)"
        )));
    }
    let servers = doctor::servers(config).await;
    let mut out = io::stdout().lock();
    let written = servers.iter().try_for_each(|server| {
        line(&mut out, &server.finding)?;
        let mut tools = server.tools.iter();
        tools.try_for_each(|tool| writeln!(out, "      {}", sanitise::line(tool)))
    });
    printed(written)?;
    let mut servers = servers.iter();
    Ok(exit::found(
        servers.all(|one| one.finding.outcome != Outcome::Failed),
    ))
}
