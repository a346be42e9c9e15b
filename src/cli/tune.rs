//! `clew tune`: flags, a progress bar and exit codes around [`tune`].

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::FormatArg;
use super::exit::{Ended, cannot, failed, found, printed};
use super::progress::bar;
use super::replay::{show, tell_left_out};
use crate::config::Config;
use crate::replay::{RecordedFiles, Start, SweepSettings, Triggers};
use crate::tune::{self, Reason, TuneSettings, Tuned};

/// Try caps on recorded channels, and suggest those that suit them
///
/// Replays the same questions under every combination of the values to be tried, and
/// tells what each setting shows, leaves out and costs. Reads channels exported by
/// DiscordChatExporter as JSON (`--format Json`), and scenario files; nothing is
/// written but the report. What is not varied is as the environment and `.env` say.
#[derive(Debug, Clone, Args)]
pub struct TuneArgs {
    /// Exported channels and threads, and scenario files
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// A setting of the context and the values to try, such as
    /// `MEM_MAX_MSGS=10,20,40`; can be given several times [default: the main caps]
    #[arg(long, value_name = "NAME=VALUES")]
    pub sweep: Vec<String>,
    /// Takes `LONE_CONTEXT` to be set to this now
    #[arg(long, value_name = "off|recent|conversation")]
    pub lone: Option<String>,
    /// Suggest what shows most while nineteen of twenty questions keep within so many
    /// tokens of context
    #[arg(long, value_name = "N")]
    pub tokens: Option<u32>,
    /// JSON or JSON Lines that say which messages belong to a question, such as
    /// `{"trigger":"123","belongs":["121","122"]}`
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Which messages are questions: those that the bot answers, every reply or every
    /// message by a person [default: the first of these that finds any]
    #[arg(long, value_name = "WHICH", conflicts_with = "labels")]
    pub trigger: Option<TriggerArg>,
    /// The bot, by its id also one that is to come [default: as recorded, else the most
    /// mentioned bot account]
    #[arg(long, value_name = "ID|NAME")]
    pub bot: Option<String>,
    /// Take so many questions, evenly spread; 0 for all
    #[arg(long, value_name = "N", default_value = "1000")]
    pub sample: usize,
    /// Fill the window with the messages before each question; takes a pass over the
    /// files for each combination
    #[arg(long)]
    pub warm: bool,
    /// Skip the damaged parts of files instead of failing
    #[arg(long)]
    pub lenient: bool,
    /// Write a page with plots, too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Output format: text, or one JSON object with every combination
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: FormatArg,
}

/// `--trigger`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TriggerArg {
    /// What the bot answers.
    Mentions,
    /// Every reply by a person.
    Replies,
    /// Every message by a person.
    All,
}

/// Runs the command on the process's environment, standard output and error.
pub(super) fn run(args: TuneArgs) -> Ended {
    let config = Config::of_process_with(args.pairs()).map_err(cannot)?;
    let (format, html) = (args.format, args.html.clone());
    let bar = bar();
    let tuned = tune::tune(args.settings(&config), &config, &|step, done, total| {
        show(&bar, step, done, total);
    });
    bar.finish_and_clear();
    let tuned = tuned.map_err(cannot)?;
    if let Some(path) = html {
        let written = std::fs::write(&path, tune::page(&tuned).html());
        let what = || format!("cannot write {}", path.display());
        written.map_err(|error| failed(error).context(what()))?;
    }
    printed(write(&tuned, format))?;
    let is_over = matches!(tuned.choice.reason, Reason::OverBudget { .. });
    Ok(found(!is_over))
}

fn write(tuned: &Tuned, format: FormatArg) -> io::Result<()> {
    tell_left_out(&tuned.swept.report)?;
    let mut out = io::stdout().lock();
    match format {
        FormatArg::Text => out.write_all(tune::text(tuned).as_bytes())?,
        FormatArg::Json => writeln!(out, "{}", tune::json(tuned)?)?,
    }
    out.flush()
}

impl TuneArgs {
    /// The given flags that stand for variables.
    pub fn pairs(&self) -> Vec<(String, String)> {
        let lone = self.lone.clone();
        let lone = lone.map(|lone| ("LONE_CONTEXT".to_owned(), lone));
        lone.into_iter().collect()
    }

    /// The settings from the flags.
    pub fn settings(self, config: &Config) -> TuneSettings {
        let sweep = SweepSettings {
            recorded: RecordedFiles {
                files: self.files,
                lenient: self.lenient,
            },
            bot: self.bot,
            triggers: self.trigger.map(|trigger| match trigger {
                TriggerArg::Mentions => Triggers::Mentions,
                TriggerArg::Replies => Triggers::Replies,
                TriggerArg::All => Triggers::All,
            }),
            rules: config.triggers.clone(),
            start: if self.warm { Start::Warm } else { Start::Cold },
            sample: (self.sample > 0).then_some(self.sample),
            labels: None,
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        TuneSettings {
            sweep,
            sweeps: self.sweep,
            labels: self.labels,
            budget: self.tokens,
        }
    }
}
