//! Replay: what the bot would have collected for each trigger of a recording.
//!
//! Uses the router, window, collectors and renderer of a turn, with
//! [`archive::Recording`](crate::archive::Recording) instead of Discord. A trigger's turn
//! starts when it is posted: nothing newer exists yet. In a cold start the window
//! holds only the trigger, and every page is a counted fetch; in a warm one it has
//! been fed with all messages before the trigger, in order, from each channel's first.
//!
//! Memory: the recording's index (24 bytes per message, and its distinct authors), 8
//! bytes per message of the bot's, 4 per trigger, the window's limit, one turn, and
//! the read windows (64 KiB per channel, 16 MiB together), and some hundred bytes per
//! answer of the bot if it is told what would be recalled. Messages stay on disk.
//!
//! Invariant: `replay` uses no network and writes nothing but its report; how
//! a block is made is decided in clew-context alone.

mod bot;
mod figures;
mod names;
mod pass;
mod recall;
mod recorded;
mod report;
mod router;
mod sweep;
mod table;
mod timeline;
mod turn;

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow, ensure};
use clap::ValueEnum;

use crate::archive::{ArchiveError, ReadOptions, Recording, Report};
use crate::config::Config;
use clew_context::engine::eligible::Us;
use clew_context::engine::window::WindowLimits;
use clew_context::model::{Limits, Message, MessageId, ReplyTarget, TriggerRules};

#[cfg(feature = "test-util")]
pub use figures::{ByCap, Labelled, Spread};
pub use figures::{Figures, FiguresByScene};
pub use recall::RecallSettings;
pub use recorded::RecordedSource;
pub use report::Summary;
#[cfg(feature = "test-util")]
pub use router::BYTES_PER_OWN_MESSAGE;
pub use sweep::{Labels, Sweep, SweepSettings, sweep};
pub use table::{LABELS_LEGEND, LEGEND, cells, head, heads, row, scene_name, share};
pub use timeline::timeline;

use pass::pass;
use recall::Recalls;
use report::Reporter;
use router::Router;
use turn::{ReplayOutcome, ReplayTurns};

/// What to replay, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySettings {
    pub recorded: RecordedFiles,
    /// Who is asked, and by which messages.
    pub questions: Questions,
    /// What the window holds when a trigger comes.
    pub start: Start,
    /// How many triggers to replay at most.
    pub limit: Option<usize>,
    /// The format of the report.
    pub format: Format,
    /// Whether to include the text of each block.
    pub text: bool,
    /// Whether only the figures are reported, by scene.
    pub summary: bool,
    /// The settings to be tried.
    pub caps: Caps,
    /// To tell what would be recalled as well.
    pub recall: Option<RecallSettings>,
}

/// Exports and scenarios, which together make one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFiles {
    pub files: Vec<PathBuf>,
    /// Use the readable rest of damaged ones.
    pub lenient: bool,
}

/// Who is asked, and by which messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// The bot's id or name; if `None`, the recording tells.
    pub bot: Option<String>,
    pub triggers: Triggers,
    /// Whether each trigger counts as a mention of the bot.
    pub as_mention: bool,
    /// What the router takes for a trigger.
    pub rules: TriggerRules,
}

/// The settings that decide what is collected for a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// The caps of a block. The deadline is ignored, since reading a disk takes what it takes.
    pub limits: Limits,
    pub window: WindowLimits,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
}

impl Caps {
    /// Those of a configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            limits: config.limits,
            window: config.window,
            reply_target: config.reply_target,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triggers {
    /// What the router picks: mentions of the bot, replies to it, direct
    /// messages, `AUTO_REPLY_CHANNELS`.
    Mentions,
    /// Every human reply.
    Replies,
    /// Every human message.
    All,
    One(MessageId),
}

/// What the window holds when a trigger comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Only the trigger, as right after a start of the bot.
    Cold,
    /// What a bot holds that has seen every earlier message.
    Warm,
}

/// The format of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people.
    Text,
    /// JSON Lines, one object per trigger.
    Jsonl,
}

/// What a replay has done so many of, and of how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayStep {
    /// Bytes of the files indexed.
    Reading,
    /// Answers worked out, of all triggers under all settings.
    Trying,
    /// Messages replayed.
    Replaying,
}

/// A replay that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A recording cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The recording, or what is asked of it, cannot be used; says why.
    #[error(transparent)]
    Input(#[from] anyhow::Error),
    /// A thread cannot be started.
    #[error("cannot start a thread to work on")]
    Thread(#[source] io::Error),
    /// The report cannot be written.
    #[error("cannot write the report")]
    Output(#[source] io::Error),
}

/// Replays, blocking on the disk; messages are reported in the order of their ids.
///
/// # Errors
/// Those of the recording, a bot or trigger that is not in it, and those of `out`
/// (including a pipe that nobody reads any more).
pub async fn run(
    settings: &ReplaySettings,
    out: &mut dyn Write,
    progress: &dyn Fn(ReplayStep, u64, u64),
) -> Result<Summary, ReplayError> {
    let recording = settings.recorded.open(progress)?;
    let us = bot::choose(&recording, &settings.questions)?;
    let us = us.ok_or_else(|| bot::unknown(&recording))?;
    let turns = ReplayTurns {
        recording: &recording,
        us: &us,
        caps: &settings.caps,
    };
    let mut router = Router::new(&recording, &us, &settings.questions);
    let mut reporter = Reporter::new(settings);
    let recalls = settings
        .recall
        .map(|recall| RefCell::new(Recalls::new(&recording, &us, recall)));
    let mut take = |outcome: &ReplayOutcome| {
        let recalls = recalls.as_ref().map(RefCell::borrow);
        let recalled = recalls.map(|recalls| recalls.of(&outcome.trigger));
        let recalled = recalled.unwrap_or_default();
        reporter
            .take(outcome, &recalled, out)
            .map_err(ReplayError::Output)?;
        Ok(reporter.is_full())
    };
    match (settings.questions.triggers, settings.start) {
        _ if settings.limit == Some(0) => {}
        (Triggers::One(id), Start::Cold) if recalls.is_none() => {
            let message = wanted(&turns, id)?;
            if let Some(cause) = router.cause(&message) {
                take(&turns.cold(message, cause).await?)?;
            }
        }
        (triggers, start) => {
            if let Triggers::One(id) = triggers {
                wanted(&turns, id)?;
            }
            pass(
                turns,
                start,
                |message| {
                    let cause = router.cause(message);
                    if let Some(recalls) = &recalls {
                        recalls.borrow_mut().see(message)?;
                    }
                    Ok(cause)
                },
                take,
                progress,
            )
            .await?;
        }
    }
    let bot = bot::told(&recording, &us);
    let summary = reporter.finish(bot, recording.report(), out);
    summary.map_err(ReplayError::Output)
}

impl RecordedFiles {
    /// Reads every file once. Blocking.
    ///
    /// # Errors
    /// If a file cannot be used, or none holds a message.
    fn open(&self, progress: &dyn Fn(ReplayStep, u64, u64)) -> Result<Recording, ReplayError> {
        let reading = |done, total| progress(ReplayStep::Reading, done, total);
        let options = ReadOptions {
            lenient: self.lenient,
            progress: Some(&reading),
        };
        let recording = Recording::open(&self.files, options)?;
        if recording.report().messages == 0 {
            let files = self.files.iter().map(|file| file.display().to_string());
            let files = files.collect::<Vec<_>>().join(", ");
            let hold = if self.files.len() == 1 {
                "holds"
            } else {
                "hold"
            };
            return Err(ReplayError::Input(anyhow!(
                "{files} {hold} no message: export the channel again, with the time that you want \
                 to replay"
            )));
        }
        Ok(recording)
    }
}

/// The requested trigger, with the message that it replies to.
fn wanted(turns: &ReplayTurns<'_>, id: MessageId) -> anyhow::Result<Message> {
    let unknown = || format!("--trigger {id}: no such message in the recording");
    let channel = turns.recording.channel_of(id).with_context(unknown)?;
    let message = turns.recording.message(channel, id)?;
    let mut message = message.with_context(unknown)?;
    ensure!(
        !turns.recording.hidden(channel),
        "--trigger {id}: the bot cannot see its channel"
    );
    ensure!(
        !turns.us.wrote(&message),
        "--trigger {id}: the bot wrote it itself; name another with --bot"
    );
    ensure!(
        message.kind.is_conversation(),
        "--trigger {id}: it is a notice of Discord's, not a message of somebody"
    );
    turns.recording.carry(&mut message)?;
    Ok(message)
}
