//! The command line: one file per command, each turning flags into a typed
//! value and a result into an exit code.
//!
//! Invariant: only `cli` reads flags, writes to the terminal and chooses exit
//! codes.

mod cluster;
mod demo;
mod doctor;
mod exit;
mod health;
mod init;
mod mcp;
mod playground;
mod print;
mod progress;
pub mod replay;
mod report;
mod run;
mod signals;
mod store;
pub mod tune;

use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use rustix::fs::Mode;
use tokio::runtime::Runtime;
use tracing::level_filters::LevelFilter;

use crate::config::{Config, LogFormat};
use crate::telemetry::init_log;

use exit::{Ended, Failure, cannot};

/// A Discord bot that answers with the right context
///
/// Without a command it runs the demo, or the bot if `DISCORD_TOKEN` is set.
/// Settings are read from environment variables and from `.env` (see
/// `.env.example`).
#[derive(Debug, Parser)]
#[command(name = "clew", version = env!("CLEW_VERSION"))]
struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Connect to Discord and answer until stopped
    Run,
    /// Ask for token, model and store, try them, and write `.env`
    Init(init::InitArgs),
    /// Play conversations on a simulated Discord and show what a model would get
    Demo(demo::DemoArgs),
    /// Open a page with a simulated Discord, to talk to the bot and see what it reads
    Playground(playground::PlaygroundArgs),
    /// Try the settings on Discord, the model, the store and the disk, and say what to mend
    Doctor(doctor::DoctorArgs),
    /// Try the MCP servers whose tools the bot may call, or let a program read through the bot
    #[command(subcommand)]
    Mcp(mcp::McpCommand),
    /// Look at the processes that share a store (`CLUSTER=on`)
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Ask the running bot at `METRICS_ADDR` whether it is alive, and exit with 1 if not
    Health,
    /// Show what the bot would have collected for each trigger in recorded channels
    Replay(Box<replay::ReplayArgs>),
    /// Try caps on recorded channels, and suggest those that suit them
    Tune(Box<tune::TuneArgs>),
    /// Sum up telemetry: turns, times, tokens, cost, limits, with a page of plots
    Report(report::ReportArgs),
    /// Inspect, back up, export, import, erase, migrate, copy or vacuum the store
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Print all settings with their defaults, as a file `.env` takes them
    Settings,
    /// Print a query for the telemetry, for DuckDB or jq
    Queries(print::QueriesArgs),
    /// Print completions for a shell
    Completions { shell: Shell },
    /// Print the manual page
    Man,
}

/// `--format` of what is told at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Text for people.
    Text,
    /// One JSON object.
    Json,
}

/// Parses the arguments and does what they say.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    // What we write is about people: telemetry, exports, copies and state are for our account
    // alone.
    rustix::process::umask(Mode::from_raw_mode(0o077));
    // One thread: a bot computes for 6 microseconds per event and a millisecond
    // per turn, and each further thread would take memory of its own.
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return cannot(error).told(),
    };
    run(cli.command, &runtime).unwrap_or_else(Failure::told)
}

fn run(command: Option<CliCommand>, runtime: &Runtime) -> Ended {
    match command {
        Some(CliCommand::Replay(args)) => runtime.block_on(replay::run(*args)).map_err(cannot),
        Some(CliCommand::Tune(args)) => tune::run(*args),
        Some(CliCommand::Report(args)) => report::run(&args, &configured()?),
        Some(CliCommand::Store(command)) => {
            let config = configured()?;
            init_log(LevelFilter::WARN, LogFormat::Text);
            runtime.block_on(store::run(command, &config))
        }
        Some(CliCommand::Demo(args)) => runtime.block_on(demo::run(args)),
        Some(CliCommand::Playground(args)) => runtime.block_on(playground::run(args)),
        Some(CliCommand::Settings) => print::settings(),
        Some(CliCommand::Queries(args)) => print::queries(&args),
        Some(CliCommand::Completions { shell }) => print::completions(shell),
        Some(CliCommand::Man) => print::man(),
        Some(CliCommand::Init(args)) => runtime.block_on(init::run(args)),
        Some(CliCommand::Doctor(args)) => {
            runtime.block_on(doctor::run(&args, Config::of_process()))
        }
        Some(CliCommand::Mcp(command)) => runtime.block_on(mcp::run(&command, &configured()?)),
        Some(CliCommand::Cluster(command)) => {
            runtime.block_on(cluster::run(&command, &configured()?))
        }
        Some(CliCommand::Health) => health::run(&configured()?),
        Some(CliCommand::Run) => connect(runtime, configured()?),
        None => match configured()? {
            config if is_for_demo(&config) => {
                runtime.block_on(demo::run(demo::DemoArgs::default()))
            }
            config => connect(runtime, config),
        },
    }
}

/// The settings of the process, if they can be used.
fn configured() -> Result<Config, Failure> {
    Config::of_process().map_err(cannot)
}

/// Whether nothing suggests that a bot is wanted.
fn is_for_demo(config: &Config) -> bool {
    config.discord.token.is_none() && config.meant_as_token().is_none()
}

fn connect(runtime: &Runtime, config: Config) -> Ended {
    init_log(config.log.level, config.log.format);
    runtime.block_on(run::run(config))
}
