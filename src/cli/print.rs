//! What the program carries for those who install it: completions, the manual page, the
//! example settings and the telemetry's queries.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use super::exit::{Ended, cannot, failed, printed};

/// All settings with their defaults.
const SETTINGS: &str = include_str!("../../.env.example");

/// Queries by their files' names, each for both programs.
macro_rules! queries {
    ($($name:literal),+ $(,)?) => {
        [$(queries!($name ".jq"), queries!($name ".sql")),+]
    };
    ($name:literal $ending:literal) => {
        (concat!($name, $ending), include_str!(concat!("../../telemetry/queries/", $name, $ending)))
    };
}

/// The files of `telemetry/queries`.
const QUERIES: [(&str, &str); 18] = queries![
    "answers",
    "collect_ms",
    "cost",
    "fallbacks",
    "fetches",
    "servers",
    "slowest",
    "truncation",
    "users",
];

/// Which query is printed.
#[derive(Debug, Args)]
pub(super) struct QueriesArgs {
    /// Its name; without one the names are listed
    name: Option<String>,
}

/// Prints the completions of a shell.
pub(super) fn completions(shell: Shell) -> Ended {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "clew", &mut text);
    print(&text)
}

/// Prints the manual page, as `man` reads it.
pub(super) fn man() -> Ended {
    let mut text = Vec::new();
    let rendered = clap_mangen::Man::new(Cli::command()).render(&mut text);
    rendered.map_err(failed)?;
    print(&text)
}

/// Prints the example settings.
pub(super) fn settings() -> Ended {
    print(SETTINGS.as_bytes())
}

/// Prints a query, or their names.
pub(super) fn queries(args: &QueriesArgs) -> Ended {
    let Some(name) = &args.name else {
        let names: Vec<&str> = QUERIES.iter().map(|(name, _)| *name).collect();
        return print(format!("{}\n", names.join("\n")).as_bytes());
    };
    match QUERIES.iter().find(|(known, _)| known == name) {
        Some((_, text)) => print(text.as_bytes()),
        None => Err(cannot(anyhow!(
            "no query `{name}`: `clew queries` lists them"
        ))),
    }
}

fn print(text: &[u8]) -> Ended {
    printed(io::stdout().write_all(text))?;
    Ok(ExitCode::SUCCESS)
}
