//! `clew cluster`: which processes share the store and which of them is the bot, and what an operator asks
//! of them.

use std::io::{self, Write};
use std::time::Duration;

use clap::Subcommand;
use tokio::time::{Instant, sleep};
use tracing::level_filters::LevelFilter;

use super::FormatArg;
use super::exit::{self, Ended, Failure, cannot, failed, printed};
use crate::app;
use crate::config::{Config, LogFormat};
use crate::doctor;
use crate::telemetry::init_log;
use clew_context::engine::sanitise;
use clew_store::{Cluster, ClusterStatus, Node};

/// How often it is looked whether what was asked for is so.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long it may take for another process to be the bot, beside the turns that run.
const HAND_OVER: Duration = Duration::from_secs(30);
/// How long new shards may take, and each one more: they begin five seconds apart.
const RESHARD: Duration = Duration::from_mins(3);
const RESHARD_EACH: Duration = Duration::from_secs(6);

#[derive(Debug, Subcommand)]
pub(super) enum ClusterCommand {
    /// Show the processes that share the store, and which of them is the bot
    Status {
        /// How it is shown
        #[arg(long, value_enum, default_value_t = FormatArg::Text)]
        format: FormatArg,
    },
    /// Have another process be the bot, and this one only if no other can be, until it is started again
    Drain {
        /// The process, as `status` names it; the beginning is enough
        name: String,
    },
    /// Change the number of shards while the bot runs
    Reshard {
        /// How many; 0 for as many as Discord recommends, from the next start on
        #[arg(value_parser = clap::value_parser!(u32).range(..=10_000))]
        shards: u32,
    },
}

/// What `status --format json` prints.
#[derive(serde::Serialize)]
struct WithStarts<'a> {
    #[serde(flatten)]
    status: &'a ClusterStatus,
    /// None if Discord does not tell.
    session_starts_left: Option<u32>,
}

/// Exit codes: 0 one of the processes is the bot, and what was asked for is so; 1 none is, it is not so yet,
/// or the store cannot be asked just now; 2 what a person has to mend.
pub(super) async fn run(command: &ClusterCommand, config: &Config) -> Ended {
    init_log(LevelFilter::ERROR, LogFormat::Text);
    let cluster = app::cluster(config).map_err(of_store)?;
    let status = cluster.status().await.map_err(of_store)?;
    let mut out = io::stdout().lock();
    let is_well = match command {
        ClusterCommand::Status { format } => {
            // What the database tells is shown at once, whether or not Discord answers.
            if matches!(format, FormatArg::Text) {
                printed(show(&mut out, &status))?;
            }
            let session_starts_left = doctor::session_starts_left(config).await;
            printed(match format {
                FormatArg::Json => serde_json::to_string(&WithStarts {
                    status: &status,
                    session_starts_left,
                })
                .map_err(io::Error::from)
                .and_then(|text| writeln!(out, "{text}")),
                FormatArg::Text => {
                    let left = session_starts_left.map(|left| left.to_string());
                    let left = left.as_deref().unwrap_or("unknown, Discord does not tell");
                    writeln!(out, "  session starts left today: {left}")
                }
            })?;
            status.holder.is_some()
        }
        ClusterCommand::Drain { name } => {
            let node = named(&status, name)?;
            let now = drain(&*cluster, node, config.turns.shutdown_timeout).await?;
            printed(show(&mut out, &now))?;
            now.holder.is_some_and(|holder| holder != node.name)
        }
        ClusterCommand::Reshard { .. } if status.epoch == 0 => {
            let text = "no process was ever the bot with this store: start one first (CLUSTER=on)";
            return Err(cannot(anyhow::anyhow!(text)));
        }
        ClusterCommand::Reshard { shards } => {
            cluster.reshard(*shards).await.map_err(of_store)?;
            let now = resharded(&*cluster, *shards).await?;
            printed(show(&mut out, &now))?;
            *shards == 0 || has_shards(&now, *shards)
        }
    };
    Ok(exit::found(is_well))
}

fn of_store(error: clew_store::Error) -> Failure {
    let ended = if error.is_passing() { failed } else { cannot };
    ended(error)
}

/// The process of this name, and another is there to be the bot.
fn named<'a>(status: &'a ClusterStatus, name: &str) -> Result<&'a Node, Failure> {
    let there = || status.nodes.iter().filter(|node| node.is_there());
    let exact = there().find(|node| node.name == name);
    let mut meant = there().filter(|node| node.name.starts_with(name));
    let ((Some(node), ..) | (None, Some(node), None)) = (exact, meant.next(), meant.next()) else {
        let names: Vec<_> = there().map(|node| sanitise::line(&node.name)).collect();
        let names = names.join(", ");
        return Err(cannot(anyhow::anyhow!(
            "which process is {name}? There are: {names}"
        )));
    };
    if !there().any(|other| other.name != node.name && !other.drains) {
        let text =
            "no other process could be the bot: start one first (clew run on another machine)";
        return Err(cannot(anyhow::anyhow!(text)));
    }
    Ok(node)
}

/// Has another process be the bot. Returns who it is, unless that takes too long.
async fn drain(
    cluster: &dyn Cluster,
    node: &Node,
    turns: Duration,
) -> Result<ClusterStatus, Failure> {
    if !cluster.drain(&node.name).await.map_err(of_store)? {
        return Err(failed(anyhow::anyhow!("{} has just ended", node.name)));
    }
    let is_so = |status: &ClusterStatus| {
        let holder = status.holder.as_deref();
        holder.is_some_and(|holder| holder != node.name)
    };
    wait(cluster, turns + HAND_OVER, is_so).await
}

async fn resharded(cluster: &dyn Cluster, shards: u32) -> Result<ClusterStatus, Failure> {
    let patience = RESHARD + RESHARD_EACH * shards;
    let is_so = |status: &ClusterStatus| {
        shards == 0 || status.holder.is_none() || has_shards(status, shards)
    };
    wait(cluster, patience, is_so).await
}

fn has_shards(status: &ClusterStatus, shards: u32) -> bool {
    let is_bot = |node: &&Node| status.holder.as_ref() == Some(&node.name);
    let bot = status.nodes.iter().find(is_bot);
    bot.is_some_and(|bot| (bot.shards, bot.connected) == (shards.cast_signed(), bot.shards))
}

/// Waits until something is so, or for too long.
async fn wait(
    cluster: &dyn Cluster,
    patience: Duration,
    is_so: impl Fn(&ClusterStatus) -> bool,
) -> Result<ClusterStatus, Failure> {
    let until = Instant::now() + patience;
    loop {
        let status = cluster.status().await.map_err(of_store)?;
        if is_so(&status) || Instant::now() >= until {
            return Ok(status);
        }
        sleep(LOOK_EVERY).await;
    }
}

fn show(out: &mut impl Write, status: &ClusterStatus) -> io::Result<()> {
    let epoch = status.epoch;
    match &status.holder {
        Some(holder) => writeln!(out, "the bot is {} (epoch {epoch})", sanitise::line(holder))?,
        None => writeln!(out, "no process is the bot (last epoch {epoch})")?,
    }
    for node in &status.nodes {
        let does = if status.holder.as_ref() == Some(&node.name) {
            format!("is the bot, {} of {} shards", node.connected, node.shards)
        } else {
            "stands by".to_owned()
        };
        let does = does + if node.drains { ", is drained" } else { "" };
        let name = sanitise::line(&node.name);
        let (version, seconds, silent) = (&node.version, node.seconds, node.silent_seconds);
        let version = sanitise::line(version);
        writeln!(
            out,
            "  {name}  {does}  version {version}, for {seconds} s, heard of {silent} s ago"
        )?;
    }
    let wanted = u32::try_from(status.shards).unwrap_or_default();
    if wanted > 0 && !has_shards(status, wanted) {
        writeln!(
            out,
            "  {wanted} shards are wanted: see the bot's log if it stays so"
        )?;
    }
    Ok(())
}
