//! `clew tune`: that each combination gives what a replay with it gives, what is suggested of them, and how
//! it is told.

mod chosen;
mod equal;
mod labels;
mod told;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;
use clew::cli::tune::TuneArgs;
use clew::config::Config;
use clew::tune::{TuneSettings, Tuned, tune};

use crate::replay::run::{CHANNEL, Place, Row, export, row};

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    args: TuneArgs,
}

fn config(environment: &[(&str, &str)]) -> Config {
    let pairs = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(pairs, None).unwrap()
}

/// The settings that flags lead to, beside the defaults.
fn settings(files: &[PathBuf], flags: &str) -> TuneSettings {
    let mut words: Vec<OsString> = vec!["tune".into()];
    words.extend(flags.split_whitespace().map(Into::into));
    words.extend(files.iter().map(|file| file.clone().into_os_string()));
    Typed::try_parse_from(words)
        .unwrap()
        .args
        .settings(&config(&[]))
}

fn tuned(files: &[PathBuf], flags: &str) -> anyhow::Result<Tuned> {
    tune(settings(files, flags), &config(&[]), &|_, _, _| ())
}

fn fixtures(names: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    names.iter().map(|name| root.join(name)).collect()
}

/// A channel in which Maya asks the bot now and then, with a thread on its first message.
fn harbour(folder: &Path) -> [PathBuf; 2] {
    let thread = Place {
        id: super::replay::at(1).get(),
        kind: "GuildPublicThread",
        parent: 700,
    };
    let said = |place: i64, number: i64| {
        let words = "the pump of the crane ".repeat(1 + usize::try_from(number % 7).unwrap());
        let asks = if number % 12 == 11 { "<@900> " } else { "" };
        let second = 60 * number + place;
        let author = 501 + number.unsigned_abs() % 3;
        Row {
            reply: (place == 1 && number % 4 > 0).then_some(second - 60),
            ..row(second, author, format!("{asks}{words}"))
        }
    };
    let rows = |place: i64, many: i64| -> Vec<Row> {
        (0..many).map(|number| said(place, number)).collect()
    };
    [
        export(folder, CHANNEL, &rows(1, 60)),
        export(folder, thread, &rows(2, 150)),
    ]
}
