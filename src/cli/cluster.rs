//! `clew cluster status`: which processes share the store, and which of them is the bot.

use std::io::{self, Write};

use clap::Subcommand;
use tracing::level_filters::LevelFilter;

use super::FormatArg;
use super::exit::{self, Ended, cannot, failed, printed};
use crate::app;
use crate::config::{Config, LogFormat};
use crate::telemetry::init_log;
use clew_context::engine::sanitise;
use clew_store::ClusterStatus;

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// Show the processes that share the store, and which of them is the bot
    Status {
        /// How it is shown
        #[arg(long, value_enum, default_value_t = FormatArg::Text)]
        format: FormatArg,
    },
}

/// Exit codes: 0 one of the processes is the bot; 1 none is, or the store cannot be asked just now;
/// 2 what a person has to mend.
pub(super) async fn run(command: &ClusterCommand, config: &Config) -> Ended {
    let ClusterCommand::Status { format } = command;
    init_log(LevelFilter::ERROR, LogFormat::Text);
    let status = app::cluster_status(config).await.map_err(|error| {
        let ended = if error.is_passing() { failed } else { cannot };
        ended(error)
    })?;
    let mut out = io::stdout().lock();
    printed(match format {
        FormatArg::Json => serde_json::to_string(&status)
            .map_err(io::Error::from)
            .and_then(|text| writeln!(out, "{text}")),
        FormatArg::Text => show(&mut out, &status),
    })?;
    Ok(exit::found(status.holder.is_some()))
}

fn show(out: &mut impl Write, status: &ClusterStatus) -> io::Result<()> {
    let epoch = status.epoch;
    match &status.holder {
        Some(holder) => writeln!(out, "the bot is {} (epoch {epoch})", sanitise::line(holder))?,
        None => writeln!(out, "no process is the bot (last epoch {epoch})")?,
    }
    for node in &status.nodes {
        let is_holder = status.holder.as_ref() == Some(&node.name);
        let does = if is_holder { "is the bot" } else { "stands by" };
        let name = sanitise::line(&node.name);
        let (version, seconds, silent) = (&node.version, node.seconds, node.silent_seconds);
        let version = sanitise::line(version);
        writeln!(
            out,
            "  {name}  {does}  version {version}, for {seconds} s, heard of {silent} s ago"
        )?;
    }
    Ok(())
}
