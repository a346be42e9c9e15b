//! What the program carries for those who install it: completions, the manual page, the
//! example settings and the telemetry's queries.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use super::exit::{CANNOT, FAILED, fail_with};

/// All settings with their defaults.
const SETTINGS: &str = include_str!("../../.env.example");

/// A query by its file's name.
macro_rules! queries {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../telemetry/queries/", $name)))),+]
    };
}

/// The files of `telemetry/queries`.
const QUERIES: [(&str, &str); 18] = queries![
    "answers.jq",
    "answers.sql",
    "collect_ms.jq",
    "collect_ms.sql",
    "cost.jq",
    "cost.sql",
    "fallbacks.jq",
    "fallbacks.sql",
    "fetches.jq",
    "fetches.sql",
    "servers.jq",
    "servers.sql",
    "slowest.jq",
    "slowest.sql",
    "truncation.jq",
    "truncation.sql",
    "users.jq",
    "users.sql",
];

/// Which query is printed.
#[derive(Debug, Args)]
pub(super) struct QueriesArgs {
    /// Its name; without one the names are listed
    name: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("no query `{0}`: `clew queries` lists them")]
struct NoQuery(String);

/// Prints the completions of a shell.
pub(super) fn completions(shell: Shell) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "clew", &mut text);
    print(&text)
}

/// Prints the manual page, as `man` reads it.
pub(super) fn man() -> ExitCode {
    let mut text = Vec::new();
    match clap_mangen::Man::new(Cli::command()).render(&mut text) {
        Ok(()) => print(&text),
        Err(error) => fail_with(FAILED, &error),
    }
}

/// Prints the example settings.
pub(super) fn settings() -> ExitCode {
    print(SETTINGS.as_bytes())
}

/// Prints a query, or their names.
pub(super) fn queries(args: &QueriesArgs) -> ExitCode {
    let Some(name) = &args.name else {
        let names: Vec<&str> = QUERIES.iter().map(|(name, _)| *name).collect();
        return print(format!("{}\n", names.join("\n")).as_bytes());
    };
    match QUERIES.iter().find(|(known, _)| known == name) {
        Some((_, text)) => print(text.as_bytes()),
        None => fail_with(CANNOT, &NoQuery(name.clone())),
    }
}

fn print(text: &[u8]) -> ExitCode {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail_with(FAILED, &error),
        _ => ExitCode::SUCCESS,
    }
}
