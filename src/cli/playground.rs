//! `clew playground`: flags, the link and exit codes around [`playground`](crate::playground).

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use clap::Args;
use tracing::level_filters::LevelFilter;

use super::exit::{Ended, FAILED, cannot, failed};
use super::signals::Signals;
use crate::config::{Config, LogFormat};
use crate::playground::{Error, Playground, PlaygroundOptions};
use crate::sandbox;
use crate::telemetry::init_log;

/// Where the page is served
///
/// The caps (`MEM_*`, `THREAD_*`, `LINK_*`, `LONE_*`, `PLACE_*`) and the model (`LLM_*`) that the
/// environment names apply, and nothing else; `.env` is not read. Nothing is kept.
#[derive(Debug, Args)]
pub(super) struct PlaygroundArgs {
    /// The page's port; any free one by default
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// The address to listen on; whoever has the link can do everything here, and open exports
    /// from this machine's disk
    #[arg(long, value_name = "ADDR", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
}

/// Runs the playground until Ctrl+C, or another signal that asks it to stop.
pub(super) async fn run(args: PlaygroundArgs) -> Ended {
    init_log(LevelFilter::WARN, LogFormat::Text);
    let options = PlaygroundOptions {
        settings: Config::demo_of_process(),
        listen: SocketAddr::new(args.listen, args.port),
    };
    let mut signals = Signals::listen().map_err(failed)?;
    let started = Box::pin(Playground::start(options)).await;
    let mut playground = started.map_err(|error| match error {
        Error::Listen { .. } | Error::Sandbox(sandbox::Error::Settings(_)) => cannot(error),
        error => failed(error),
    })?;
    let link = playground.link();
    let elsewhere = if args.listen.is_unspecified() {
        "On other machines, use this one's address instead of the first part of the link.\n"
    } else {
        ""
    };
    let told = writeln!(
        io::stdout(),
        "The playground is at {link}\n{elsewhere}Open this link in a browser. Ctrl+C here stops it; \
         nothing is kept."
    );
    if told.is_err() {
        return Ok(ExitCode::from(FAILED));
    }
    let broken = tokio::select! {
        broken = playground.broken() => Some(broken),
        () = signals.next() => None,
    };
    match broken {
        Some(error) => Err(failed(error)),
        None => playground.stop().await.map_err(failed),
    }?;
    Ok(ExitCode::SUCCESS)
}
