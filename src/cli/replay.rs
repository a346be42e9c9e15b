//! `clew replay`: flags, a progress bar and exit codes around [`replay`].

use std::io::{self, IsTerminal, LineWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;

use super::progress::{self, bar};
use crate::archive::Report;
use crate::config::Config;
use crate::replay::{
    self, Caps, Format, Questions, RecallSettings, RecordedFiles, ReplayError, ReplaySettings,
    ReplayStep, Start, Summary, Triggers,
};
use clew_context::engine::sanitise;

/// The exit code for a recording, flag or setting that cannot be used.
const BAD_INPUT: u8 = 2;
/// How many bytes are buffered for output that nobody watches line by line.
const OUTPUT_BUFFER: usize = 64 * 1024;

/// Show what the bot would have collected for each trigger in recorded channels
///
/// Reads channels exported by DiscordChatExporter as JSON (`--format Json`), and
/// scenario files. Several files are read as one server. Flags override the caps
/// from the environment and `.env`, which override the defaults.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that is there or not"
)]
pub struct ReplayArgs {
    /// Exported channels and threads, and scenario files
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Which messages are triggers: those that the bot answers, every reply or
    /// every message by a person, or a single message
    #[arg(long, value_name = "mentions|replies|all|ID", default_value = "mentions", value_parser = triggers)]
    pub trigger: Triggers,
    /// The bot [default: as recorded, else the most mentioned bot account]
    #[arg(long, value_name = "ID|NAME")]
    pub bot: Option<String>,
    /// Treat each trigger as a mention of the bot (in threads this adds history)
    #[arg(long)]
    pub as_mention: bool,
    /// Start each trigger with an empty window (default)
    #[arg(long, conflicts_with = "warm")]
    pub cold: bool,
    /// Fill the window with the messages before each trigger
    #[arg(long)]
    pub warm: bool,
    /// Output format: text, or one JSON object per trigger
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
    /// Also say which earlier exchanges with the bot would be recalled
    /// (`RECALL_MESSAGES`): its answers in the recording, by what they reply to
    #[arg(long)]
    pub recall: bool,
    /// Include the text of each context block
    #[arg(long)]
    pub text: bool,
    /// Print only the figures, by scene
    #[arg(long, conflicts_with = "text")]
    pub summary: bool,
    /// Skip the damaged parts of files instead of failing
    #[arg(long)]
    pub lenient: bool,
    /// Stop after N triggers
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    #[command(flatten, next_help_heading = "Caps")]
    pub caps: CapArgs,
}

/// The table of flags, each with the variable that it overrides and what it takes.
macro_rules! caps {
    ($($flag:ident $variable:literal $takes:literal;)+) => {
        /// Settings that can be given as flags; each is checked like the variable that it
        /// overrides.
        #[derive(Debug, Clone, Default, Args)]
        pub struct CapArgs {$(
            #[arg(long, value_name = $takes, help = concat!("Overrides `", $variable, "`"))]
            $flag: Option<String>,
        )+}

        impl CapArgs {
            /// The given flags, as the variables that they stand for.
            pub fn pairs(&self) -> Vec<(String, String)> {
                let flags = [$(($variable, &self.$flag)),+].into_iter();
                let given = flags.filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
                given.collect()
            }
        }
    };
}

caps! {
    tail "THREAD_CONTEXT_TAIL_COUNT" "MESSAGES";
    max_msgs "MEM_MAX_MSGS" "MESSAGES";
    max_chars "MEM_MAX_CHARS" "CHARACTERS";
    max_msg_chars "MEM_MAX_MSG_CHARS" "CHARACTERS";
    max_age_min "MEM_MAX_AGE_MIN" "MINUTES";
    chain_max_age_min "MEM_CHAIN_MAX_AGE_MIN" "MINUTES";
    max_fetches "MEM_MAX_FETCHES" "CALLS";
    max_file_bytes "MEM_MAX_FILE_BYTES" "BYTES";
    include_pointed_apps "MEM_INCLUDE_POINTED_APPS" "true|false";
    reply_target "THREAD_REPLY_TARGET" "newest|trigger";
    lone "LONE_CONTEXT" "off|recent|conversation";
    thread_select "THREAD_SELECT" "newest|conversation";
    window_per_channel "WINDOW_PER_CHANNEL" "MESSAGES";
    window_max_mb "WINDOW_MAX_MB" "MIB";
}

/// Runs the command on the process's environment, standard output and error.
///
/// # Errors
/// If the report or a message cannot be written; a reader that went away is not an
/// error.
pub async fn run(args: ReplayArgs) -> anyhow::Result<ExitCode> {
    let config = match Config::of_process_with(args.caps.pairs()) {
        Ok(config) => config,
        Err(errors) => return bad_input(&errors),
    };
    let settings = args.settings(&config);
    let bar = bar();
    let stdout = io::stdout();
    let watched = stdout.is_terminal();
    let beside = BesideBar {
        bar: &bar,
        inner: stdout.lock(),
    };
    let mut out: Box<dyn Write> = if watched {
        Box::new(LineWriter::new(beside))
    } else {
        Box::new(io::BufWriter::with_capacity(OUTPUT_BUFFER, beside))
    };
    let progress = |step, done, total| show(&bar, step, done, total);
    let done = replay::run(&settings, &mut out, &progress).await;
    bar.finish_and_clear();
    finish(done)
}

/// What the end of a replay means for the shell.
fn finish(done: Result<Summary, ReplayError>) -> anyhow::Result<ExitCode> {
    match done {
        Ok(summary) => {
            tell_left_out(&summary.report)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(ReplayError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Err(error @ ReplayError::Output(_)) => Err(error.into()),
        Err(error) => bad_input(&anyhow::Error::from(error)),
    }
}

/// Writes the error and its causes on one line.
fn bad_input(error: &dyn std::fmt::Display) -> anyhow::Result<ExitCode> {
    writeln!(io::stderr(), "error: {error:#}")?;
    Ok(ExitCode::from(BAD_INPUT))
}

/// Says on standard error what of the files was left out.
pub(super) fn tell_left_out(report: &Report) -> io::Result<()> {
    let mut err = io::stderr();
    for (place, problem) in &report.places {
        let line = sanitise::line(&format!("left out: {place}: {problem}"));
        writeln!(err, "{line}")?;
    }
    let told = report.places.len() as u64;
    let more = (report.skipped + report.cut_off).saturating_sub(told);
    if more > 0 {
        writeln!(err, "left out: {more} more")?;
    }
    Ok(())
}

impl ReplayArgs {
    /// The settings from the flags, with the caps of `config`, which was made with
    /// [`CapArgs::pairs`].
    pub fn settings(self, config: &Config) -> ReplaySettings {
        ReplaySettings {
            recorded: RecordedFiles {
                files: self.files,
                lenient: self.lenient,
            },
            questions: Questions {
                bot: self.bot,
                triggers: self.trigger,
                as_mention: self.as_mention,
                rules: config.triggers.clone(),
            },
            start: if self.warm { Start::Warm } else { Start::Cold },
            limit: self.limit,
            format: self.format,
            text: self.text,
            summary: self.summary,
            caps: Caps::of(config),
            recall: self.recall.then_some(RecallSettings {
                most: config.memory.recall,
                max_messages: config.memory.max_context_messages,
                rolling_window: config.memory.rolling_window,
            }),
        }
    }
}

fn triggers(text: &str) -> Result<Triggers, String> {
    match text {
        "mentions" => Ok(Triggers::Mentions),
        "replies" => Ok(Triggers::Replies),
        "all" => Ok(Triggers::All),
        id => match id.parse() {
            Ok(id) => Ok(Triggers::One(id)),
            Err(_) => Err("accepted: mentions, replies, all, or a message's id".to_owned()),
        },
    }
}

/// Moves a bar.
pub(super) fn show(bar: &ProgressBar, step: ReplayStep, done: u64, total: u64) {
    let template = match step {
        ReplayStep::Reading => "reading   {bar:30} {bytes}/{total_bytes} {eta}",
        ReplayStep::Replaying => "replaying {bar:30} {pos}/{len} messages {eta}",
        ReplayStep::Trying => "trying    {bar:30} {pos}/{len} answers {eta}",
    };
    progress::show(bar, template, done, total);
}

/// Writes between two draws of the bar, so that they do not mix.
struct BesideBar<'a, W> {
    bar: &'a ProgressBar,
    inner: W,
}

impl<W: Write> Write for BesideBar<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { bar, inner } = self;
        bar.suspend(|| inner.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Self { bar, inner } = self;
        bar.suspend(|| inner.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        let ended = |kind: io::ErrorKind| finish(Err(ReplayError::Output(kind.into())));
        let code = ended(io::ErrorKind::BrokenPipe).unwrap();
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::SUCCESS));
        assert!(ended(io::ErrorKind::StorageFull).is_err());
    }
}
