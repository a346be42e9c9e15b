//! `clew report`: flags, files and exit codes around [`report`].

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::FormatArg;
use super::exit::{Ended, Failure, cannot, failed, found, unprinted};
use crate::app::system_clock;
use crate::config::Config;
use crate::report::{self, End, Guild, Options, Report};

/// The most names that `--top` accepts.
const MOST_ROWS: u64 = 1_000;

/// Sum up telemetry: turns, times, fallbacks, caps, tokens, cost, limits, slow turns
///
/// Reads files as they are or compressed by gzip; of a folder its *.jsonl and *.jsonl.gz, oldest
/// first. Times are in UTC. Costs need `LLM_PRICES`.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// Files and folders of telemetry [default: the folder of `TELEMETRY_DIR`]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only events from then on: 2026-01-02, 2026-01-02T03:04:05Z, or 12h, 7d, 2w back
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only events before then, in the same forms; of a date all events
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only events of this server, or of direct messages
    #[arg(long, value_name = "ID|direct", value_parser = guild)]
    guild: Option<Guild>,
    /// The most rows of a list
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=MOST_ROWS))]
    top: u64,
    /// Output format: text of 80 columns, or one JSON object
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: FormatArg,
    /// Also write a page with plots to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Reads the telemetry and prints the report.
pub(super) fn run(args: &ReportArgs, config: &Config) -> Ended {
    let options = options(args, config)?;
    let of_settings = [config.telemetry.dir.clone()];
    let paths = if args.paths.is_empty() {
        &of_settings[..]
    } else {
        &args.paths
    };
    let report = report::read(paths, &options).map_err(cannot)?;
    print(args, &report)?;
    Ok(found(report.is_complete()))
}

fn options(args: &ReportArgs, config: &Config) -> Result<Options, Failure> {
    let now = system_clock()();
    let time = |flag, text: &Option<String>, end| {
        let parse = |text: &String| {
            report::parse_time(text, now, end).ok_or_else(|| {
                cannot(anyhow!(
                    "`{flag} {text}` is no time: name a date (2026-01-02), a time \
                     (2026-01-02T03:04:05Z), or how long ago (12h, 7d)"
                ))
            })
        };
        text.as_ref().map(parse).transpose()
    };
    Ok(Options {
        since: time("--since", &args.since, End::First)?,
        until: time("--until", &args.until, End::Last)?,
        guild: args.guild,
        prices: config.prices.clone(),
        rows: usize::try_from(args.top).unwrap_or(usize::MAX),
    })
}

fn print(args: &ReportArgs, report: &Report) -> Result<(), Failure> {
    if let Some(path) = &args.html {
        fs::write(path, report::page(report).html()).map_err(|error| {
            failed(error).context(format!("cannot write the page to `{}`", path.display()))
        })?;
    }
    let text = match args.format {
        FormatArg::Text => Ok(report::text(report)),
        FormatArg::Json => serde_json::to_string_pretty(report).map(|json| json + "\n"),
    };
    let printed = text
        .map_err(io::Error::from)
        .and_then(|text| io::stdout().write_all(text.as_bytes()));
    printed.map_err(|error| unprinted(error).context("cannot write the report"))
}

fn guild(text: &str) -> Result<Guild, String> {
    if text == "direct" {
        return Ok(Guild::DirectMessages);
    }
    let id = text.parse().map_err(|_| "a server's id, or `direct`")?;
    Ok(Guild::Server(id))
}
