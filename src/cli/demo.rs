//! `clew demo`: flags, standard output and exit codes around [`demo`].

use std::io::{self, IsTerminal, LineWriter};
use std::process::ExitCode;

use clap::Args;
use tracing::level_filters::LevelFilter;

use super::exit::{Ended, FAILED, Failure, cannot, failed};
use crate::config::{Config, LogFormat};
use crate::demo::{self, DemoOptions, Error};
use crate::sandbox;
use crate::telemetry::init_log;

/// What is played, and how it is shown
///
/// The caps (`MEM_*`, `THREAD_*`) and the model (`LLM_*`) that the environment names
/// apply, and nothing else; `.env` is not read.
#[derive(Debug, Default, Args)]
pub(super) struct DemoArgs {
    /// Play one scene only
    #[arg(long, value_name = "N")]
    scene: Option<usize>,
    /// Play every scene, and show all that was collected, with the telemetry
    #[arg(long)]
    verbose: bool,
    /// Ask this in the scene, or in the first one
    #[arg(long, value_name = "TEXT")]
    ask: Option<String>,
}

/// Plays the demo.
pub(super) async fn run(args: DemoArgs) -> Ended {
    init_log(LevelFilter::WARN, LogFormat::Text);
    let stdout = io::stdout();
    let options = DemoOptions {
        settings: Config::demo_of_process(),
        scene: args.scene,
        ask: args.ask,
        is_verbose: args.verbose,
        is_styled: stdout.is_terminal() && Config::has_colours(),
        program: Config::program_of_process(),
    };
    let mut out = LineWriter::new(stdout);
    let played = tokio::select! {
        played = demo::run(options, &mut out) => played,
        // The demo's temporary folder is removed with it.
        _ = tokio::signal::ctrl_c() => return Ok(ExitCode::from(FAILED)),
    };
    match played {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Err(Failure::ReaderGone)
        }
        Err(
            error @ (Error::Sandbox(sandbox::Error::Settings(_))
            | Error::NoScene { .. }
            | Error::NoQuestion { .. }),
        ) => Err(cannot(error)),
        Err(error) => Err(failed(error)),
    }
}
