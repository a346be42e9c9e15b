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
    /// What is read.
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
    /// The files.
    pub files: Vec<PathBuf>,
    /// Use the readable rest of damaged ones.
    pub lenient: bool,
}

/// Who is asked, and by which messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Questions {
    /// The bot's id or name; if `None`, the recording tells.
    pub bot: Option<String>,
    /// Which messages are triggers.
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
    /// The limits of the window.
    pub window: WindowLimits,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
}

impl Caps {
    /// Those of a configuration.
    pub fn of(config: &Config) -> Self {
        Self {
            limits: config.limits,
            window: WindowLimits {
                per_channel: config.window.per_channel,
                max_bytes: config.window.max_bytes,
            },
            reply_target: config.reply_target,
        }
    }
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
    /// Answers worked out, of a sweep.
    Trying {
        /// So far.
        done: u64,
        /// Of all triggers under all settings.
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
    /// No message is a trigger.
    #[error(
        "no message in the recording is a question to {}: name another bot with --bot, or take messages of people for questions with --trigger replies or --trigger all",
        .bot.as_deref().unwrap_or("a bot")
    )]
    NoQuestions {
        /// The account taken for the bot, if there is one.
        bot: Option<String>,
    },
    /// Labels name a trigger that is none.
    #[error(
        "the labels name {id}, which is no message of a person in the recording: add the export that holds it, or take the label out"
    )]
    WrongLabel {
        /// What they name.
        id: MessageId,
    },
    /// A sweep that would take too much time and memory.
    #[error(
        "{triggers} questions under {settings} settings are {} answers to work out, and {} is the most: sweep fewer values, or take fewer questions with --sample",
        triggers * settings, sweep::MOST_ANSWERS
    )]
    TooManyAnswers {
        /// How many triggers.
        triggers: usize,
        /// How many settings.
        settings: usize,
    },
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
    progress: &dyn Fn(ReplayProgress),
) -> Result<Summary, ReplayError> {
    let recording = settings.recorded.open(progress)?;
    let us = bot::choose(&recording, &settings.questions)?;
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

fn listed(files: &[PathBuf]) -> String {
    let shown: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    shown.join(", ")
}

impl RecordedFiles {
    /// Reads every file once. Blocking.
    ///
    /// # Errors
    /// If a file cannot be used, or none holds a message.
    fn open(&self, progress: &dyn Fn(ReplayProgress)) -> Result<Recording, ReplayError> {
        let reading = |done, total| progress(ReplayProgress::Reading { done, total });
        let options = ReadOptions {
            lenient: self.lenient,
            progress: Some(&reading),
        };
        let recording = Recording::open(&self.files, options)?;
        if recording.report().messages == 0 {
            let files = self.files.clone();
            return Err(ReplayError::NoMessages { files });
        }
        Ok(recording)
    }
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
