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
//! the read windows (64 KiB per channel, 16 MiB together). Messages stay on disk.
//!
//! Invariant: `replay` uses no network and writes nothing but its report; how
//! a block is made is decided in clew-context alone.

mod bot;
mod names;
mod recorded;
mod report;
mod router;
mod timeline;
mod turn;

use std::io::{self, Write};
use std::path::PathBuf;

use crate::archive::{ArchiveError, ReadOptions, Recording, Report};
use clew_context::engine::eligible::Us;
use clew_context::engine::window::WindowLimits;
use clew_context::model::{Limits, Message, MessageId, ReplyTarget, TriggerRules};

pub use recorded::RecordedSource;
pub use report::Summary;
#[cfg(feature = "test-util")]
pub use router::BYTES_PER_OWN_MESSAGE;

pub use timeline::timeline;

use report::Reporter;
use router::Router;
use turn::{ReplayTurns, Warm};

/// The number of messages between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1_000;

/// What to replay, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplaySettings {
    /// Exports and scenarios, which together make one recording.
    pub files: Vec<PathBuf>,
    /// Use the readable rest of damaged files.
    pub lenient: bool,
    /// The bot's id or name; if `None`, the recording tells.
    pub bot: Option<String>,
    /// Which messages are triggers.
    pub triggers: Triggers,
    /// Whether each trigger counts as a mention of the bot.
    pub as_mention: bool,
    /// What the window holds when a trigger comes.
    pub start: Start,
    /// How many triggers to replay at most.
    pub limit: Option<usize>,
    /// The format of the report.
    pub format: Format,
    /// Whether to include the text of each block.
    pub text: bool,
    /// The caps of a block. The deadline is ignored, since reading a disk takes what it takes.
    pub limits: Limits,
    /// The limits of the warm window.
    pub window: WindowLimits,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// What the router takes for a trigger.
    pub rules: TriggerRules,
}

/// Which messages are triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Triggers {
    /// What the router picks: mentions of the bot, replies to it, direct
    /// messages, `AUTO_REPLY_CHANNELS`.
    Mentions,
    /// Every human reply.
    Replies,
    /// Every human message.
    All,
    /// This message.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A few readable lines per trigger, and a summary.
    Text,
    /// One line per trigger.
    Jsonl,
}

/// The progress of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayProgress {
    /// Bytes of the files indexed.
    Reading {
        /// So far.
        done: u64,
        /// In all files.
        total: u64,
    },
    /// Messages replayed.
    Replaying {
        /// So far.
        done: u64,
        /// In the recording.
        total: u64,
    },
}

/// A replay that could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A recording cannot be used.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is nothing to replay.
    #[error(
        "{} {} no message: export the channel again, with the time that you want to replay",
        listed(.files), if .files.len() == 1 { "holds" } else { "hold" }
    )]
    NoMessages {
        /// The recordings.
        files: Vec<PathBuf>,
    },
    /// Nobody in the recording looks like the bot.
    #[error("cannot tell who the bot is: {found}; name it with --bot ID or --bot NAME{candidates}")]
    NoBot {
        /// The reason.
        found: &'static str,
        /// `; accounts: ...`, or empty.
        candidates: String,
    },
    /// `--bot` matches nobody, or several accounts.
    #[error("--bot {wanted}: {found}{candidates}")]
    WrongBot {
        /// What was asked for.
        wanted: String,
        /// What is wrong with it.
        found: &'static str,
        /// `; accounts: ...`, or empty.
        candidates: String,
    },
    /// The message of `--trigger ID` cannot be a trigger.
    #[error("--trigger {id}: {why}")]
    WrongTrigger {
        /// What was asked for.
        id: MessageId,
        /// What is wrong with it.
        why: &'static str,
    },
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
    progress: &dyn Fn(ReplayProgress),
) -> Result<Summary, ReplayError> {
    let recording = open(settings, progress)?;
    if recording.report().messages == 0 {
        let files = settings.files.clone();
        return Err(ReplayError::NoMessages { files });
    }
    let us = bot::choose(&recording, settings)?;
    let mut reporter = Reporter::new(settings, &us);
    let turns = ReplayTurns {
        recording: &recording,
        us: &us,
        settings,
    };
    match (settings.triggers, settings.start) {
        (Triggers::One(id), Start::Cold) => one(turns, id, &mut reporter, out).await?,
        _ => pass(turns, &mut reporter, out, progress).await?,
    }
    let summary = reporter.summary(recording.report());
    if settings.format == Format::Text {
        write!(out, "{summary}").map_err(ReplayError::Output)?;
    }
    out.flush().map_err(ReplayError::Output)?;
    Ok(summary)
}

fn listed(files: &[PathBuf]) -> String {
    let shown: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    shown.join(", ")
}

fn open(
    settings: &ReplaySettings,
    progress: &dyn Fn(ReplayProgress),
) -> Result<Recording, ArchiveError> {
    let reading = |done, total| progress(ReplayProgress::Reading { done, total });
    let options = ReadOptions {
        lenient: settings.lenient,
        progress: Some(&reading),
    };
    Recording::open(&settings.files, options)
}

/// The requested trigger, with the message that it replies to.
fn wanted(turns: &ReplayTurns<'_>, id: MessageId) -> Result<Message, ReplayError> {
    let wrong = |why| ReplayError::WrongTrigger { id, why };
    let channel = turns.recording.channel_of(id);
    let channel = channel.ok_or_else(|| wrong("no such message in the recording"))?;
    let message = turns.recording.message(channel, id)?;
    let mut message = message.ok_or_else(|| wrong("no such message in the recording"))?;
    if turns.recording.hidden(channel) {
        return Err(wrong("the bot cannot see its channel"));
    }
    if turns.us.wrote(&message) {
        return Err(wrong("the bot wrote it itself; name another with --bot"));
    }
    if !message.kind.is_conversation() {
        return Err(wrong(
            "it is a notice of Discord's, not a message of somebody",
        ));
    }
    turns.recording.carry(&mut message)?;
    Ok(message)
}

/// Replays one trigger into an empty window: nothing else has to be read.
async fn one(
    turns: ReplayTurns<'_>,
    id: MessageId,
    reporter: &mut Reporter<'_>,
    out: &mut dyn Write,
) -> Result<(), ReplayError> {
    let message = wanted(&turns, id)?;
    if let Some(cause) = Router::new(&turns).cause(&message) {
        let outcome = turns.cold(message, cause).await?;
        reporter.take(&outcome, out).map_err(ReplayError::Output)?;
    }
    Ok(())
}

/// Replays all messages in order, as the gateway would deliver them.
async fn pass(
    turns: ReplayTurns<'_>,
    reporter: &mut Reporter<'_>,
    out: &mut dyn Write,
    progress: &dyn Fn(ReplayProgress),
) -> Result<(), ReplayError> {
    if let Triggers::One(id) = turns.settings.triggers {
        wanted(&turns, id)?;
    }
    let total = turns.recording.report().messages;
    let mut router = Router::new(&turns);
    let mut warm = Warm::new(turns);
    let mut done = 0;
    for event in timeline(turns.recording) {
        if reporter.is_full() {
            break;
        }
        let event = event?;
        let cause = router.cause(&event.message);
        match (turns.settings.start, cause) {
            (Start::Cold, None) => {}
            (Start::Cold, Some(cause)) => {
                let outcome = turns.cold(event.message, cause).await?;
                reporter.take(&outcome, out).map_err(ReplayError::Output)?;
            }
            (Start::Warm, cause) => {
                let trigger = warm.feed(event)?;
                if let Some(cause) = cause {
                    let outcome = warm.turn(trigger, cause).await?;
                    reporter.take(&outcome, out).map_err(ReplayError::Output)?;
                }
            }
        }
        done += 1;
        if done % PROGRESS_EVERY == 0 {
            progress(ReplayProgress::Replaying { done, total });
        }
    }
    Ok(())
}
