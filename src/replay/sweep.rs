//! The same triggers under many settings, on all cores.
//!
//! In a cold start each trigger's messages are read once for all settings
//! ([`RecordedSource`]). In a warm one the window depends on the settings, so each
//! of them has a pass over the recording of its own.
//!
//! Memory, beside that of a replay: 16 bytes per answer worked out, of which there
//! are at most [`MOST_ANSWERS`], 40 per trigger found, and per core the pages of one
//! trigger or one window.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{anyhow, bail};
use tokio::runtime::{Builder, Runtime};

use super::figures::{Counter, FiguresByScene, Tally};
use super::pass::{PROGRESS_EVERY, pass};
use super::recorded::RecordedSource;
use super::router::Router;
use super::turn::{ReplayOutcome, ReplayTurns};
use super::{
    Caps, Questions, RecordedFiles, ReplayError, ReplayStep, Report, Start, Triggers, Us, bot,
    timeline,
};
use crate::archive::Recording;
use clew_context::model::{Cause, ChannelId, Message, MessageId, TriggerRules};

/// The most answers (triggers times settings) of one sweep. At 10,000 a second and core
/// this many take a quarter of an hour of CPU, and 160 MB.
pub(super) const MOST_ANSWERS: usize = 10_000_000;
/// What counts as a question if nobody says: the first of these that finds any.
const TRIED: [Triggers; 3] = [Triggers::Mentions, Triggers::Replies, Triggers::All];

/// What belongs to which trigger, by ascending ids.
pub type Labels = BTreeMap<MessageId, Vec<MessageId>>;

/// Which triggers to replay, and how.
#[derive(Debug, Clone)]
pub struct SweepSettings {
    pub recorded: RecordedFiles,
    /// The bot's id or name; if `None`, the recording tells.
    pub bot: Option<String>,
    /// Which messages are triggers: other than those for the bot they count as
    /// mentions of it. If `None`, those for the bot, or else replies, or else all.
    pub triggers: Option<Triggers>,
    /// What the router takes for a trigger.
    pub rules: TriggerRules,
    /// What the window holds when a trigger comes.
    pub start: Start,
    /// How many triggers to replay, evenly spread over those found; `None` for all.
    pub sample: Option<usize>,
    /// What belongs to which trigger; then these are the triggers.
    pub labels: Option<Labels>,
    /// How many threads work.
    pub threads: NonZeroUsize,
}

/// What a sweep found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The account taken for the bot: name and id; none if it is nobody in particular.
    pub bot: Option<String>,
    /// Which messages were triggers; `None` if labels named them.
    pub triggers: Option<Triggers>,
    /// How many triggers there are.
    pub found: usize,
    /// How many of them were replayed.
    pub replayed: usize,
    /// How many messages that labels name are not in the recording.
    pub unknown_labels: usize,
    /// What was collected under each of the settings, in their order.
    pub figures: Vec<FiguresByScene>,
    pub report: Report,
}

/// A trigger to replay.
struct Chosen {
    id: MessageId,
    channel: ChannelId,
    cause: Cause,
}

/// The results of some answers, each with the number of its settings.
type Tallies = Vec<(usize, Tally)>;

/// Replays the triggers under each of the settings, blocking on the disk.
///
/// # Errors
/// Those of the recording; [`ReplayError::Input`] for a bot or trigger that is not in it, or too
/// many answers.
pub fn sweep(
    settings: &SweepSettings,
    caps: &[Caps],
    progress: &dyn Fn(ReplayStep, u64, u64),
) -> Result<Sweep, ReplayError> {
    let recording = settings.recorded.open(progress)?;
    let (us, triggers, mut chosen) = questions(&recording, settings, progress)?;
    if let Some(labels) = &settings.labels {
        chosen = labelled(chosen, labels)?;
    }
    let found = chosen.len();
    let chosen = sampled(chosen, settings.sample);
    let (asked, settings_tried) = (chosen.len(), caps.len());
    let answers = asked.saturating_mul(settings_tried);
    if answers > MOST_ANSWERS {
        return Err(ReplayError::Input(anyhow!(
            "{asked} questions under {settings_tried} settings are {answers} answers to work out, \
             and {MOST_ANSWERS} is the most: sweep fewer values, or take fewer questions with --sample"
        )));
    }
    let work = Work {
        recording: &recording,
        us: &us,
        chosen: &chosen,
        caps,
        labels: settings.labels.as_ref(),
        next: AtomicUsize::new(0),
    };
    let counters = match settings.start {
        Start::Cold => work.on_threads(settings.threads, Work::cold, progress)?,
        Start::Warm => work.on_threads(settings.threads, Work::warm, progress)?,
    };
    let unknown = settings.labels.as_ref();
    Ok(Sweep {
        bot: bot::told(&recording, &us),
        triggers: settings.labels.is_none().then_some(triggers),
        found,
        replayed: chosen.len(),
        unknown_labels: unknown.map_or(0, |labels| not_recorded(&recording, labels)),
        figures: counters.into_iter().map(Counter::finish).collect(),
        report: recording.report().clone(),
    })
}

/// The triggers, in the order of their ids.
fn questions(
    recording: &Recording,
    settings: &SweepSettings,
    progress: &dyn Fn(ReplayStep, u64, u64),
) -> Result<(Us, Triggers, Vec<Chosen>), ReplayError> {
    let tried = match (&settings.labels, settings.triggers) {
        (Some(_), _) => vec![Triggers::All],
        (None, Some(triggers)) => vec![triggers],
        (None, None) => TRIED.to_vec(),
    };
    let mut nobody = no_questions(None);
    for triggers in tried {
        let questions = Questions {
            bot: settings.bot.clone(),
            triggers,
            as_mention: triggers != Triggers::Mentions,
            rules: settings.rules.clone(),
        };
        let Some(us) = bot::choose(recording, &questions)? else {
            nobody = bot::unknown(recording);
            continue;
        };
        let chosen = asked(recording, &us, &questions, progress)?;
        if !chosen.is_empty() {
            return Ok((us, triggers, chosen));
        }
        nobody = no_questions(bot::told(recording, &us));
    }
    Err(ReplayError::Input(nobody))
}

/// No message is a trigger, whoever was taken for the bot.
fn no_questions(bot: Option<String>) -> anyhow::Error {
    let bot = bot.unwrap_or_else(|| "a bot".to_owned());
    anyhow!(
        "no message in the recording is a question to {bot}: name another bot with --bot, or take \
         messages of people for questions with --trigger replies or --trigger all"
    )
}

fn asked(
    recording: &Recording,
    us: &Us,
    questions: &Questions,
    progress: &dyn Fn(ReplayStep, u64, u64),
) -> Result<Vec<Chosen>, ReplayError> {
    let mut router = Router::new(recording, us, questions);
    let mut chosen = Vec::new();
    let total = recording.report().messages;
    for (done, event) in (1_u64..).zip(timeline(recording)) {
        let message = event?.message;
        chosen.extend(router.cause(&message).map(|cause| Chosen {
            id: message.id,
            channel: message.channel,
            cause,
        }));
        if done % PROGRESS_EVERY == 0 {
            progress(ReplayStep::Replaying, done, total);
        }
    }
    Ok(chosen)
}

/// The triggers that labels name.
fn labelled(mut chosen: Vec<Chosen>, labels: &Labels) -> anyhow::Result<Vec<Chosen>> {
    chosen.retain(|one| labels.contains_key(&one.id));
    let is_chosen = |id: &MessageId| chosen.binary_search_by_key(id, |one| one.id).is_ok();
    match labels.keys().find(|id| !is_chosen(id)) {
        Some(id) => bail!(
            "the labels name {id}, which is no message of a person in the recording: add the export \
             that holds it, or take the label out"
        ),
        None => Ok(chosen),
    }
}

/// So many of them, at equal distances.
fn sampled(chosen: Vec<Chosen>, sample: Option<usize>) -> Vec<Chosen> {
    let found = chosen.len();
    let Some(sample) = sample.filter(|sample| *sample < found) else {
        return chosen;
    };
    let is_next = |at: usize| at * sample / found != (at + 1) * sample / found;
    let chosen = chosen.into_iter().enumerate();
    chosen
        .filter(|(at, _)| is_next(*at))
        .map(|(_, one)| one)
        .collect()
}

fn not_recorded(recording: &Recording, labels: &Labels) -> usize {
    let named = labels.values().flatten();
    named
        .filter(|id| recording.channel_of(**id).is_none())
        .count()
}

/// What the threads share.
struct Work<'a> {
    recording: &'a Recording,
    us: &'a Us,
    chosen: &'a [Chosen],
    caps: &'a [Caps],
    labels: Option<&'a Labels>,
    /// The next trigger or settings that nobody has taken yet.
    next: AtomicUsize,
}

impl Work<'_> {
    /// One counter for each of the settings. What is added up does not depend on the
    /// order in which threads finish. A worker goes on until nothing is left, or nobody
    /// receives what it sends.
    fn on_threads(
        &self,
        threads: NonZeroUsize,
        worker: fn(&Self, &Runtime, &SyncSender<Tallies>) -> Result<(), ReplayError>,
        progress: &dyn Fn(ReplayStep, u64, u64),
    ) -> Result<Vec<Counter>, ReplayError> {
        let (sender, receiver) = sync_channel(threads.get());
        thread::scope(|scope| {
            let work = |sender: SyncSender<Tallies>| {
                move || {
                    let runtime = Builder::new_current_thread().enable_time().build();
                    let runtime = runtime.map_err(ReplayError::Thread);
                    let done = runtime.and_then(|runtime| worker(self, &runtime, &sender));
                    // After an error nobody goes on.
                    done.inspect_err(|_| self.next.store(usize::MAX / 2, Ordering::Relaxed))
                }
            };
            let started: Result<Vec<_>, _> = (0..threads.get())
                .map(|_| thread::Builder::new().spawn_scoped(scope, work(sender.clone())))
                .collect();
            drop(sender);
            let started = started.map_err(ReplayError::Thread)?;
            let counters = self.count(receiver, progress);
            for one in started {
                one.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            Ok(counters)
        })
    }

    fn count(
        &self,
        receiver: Receiver<Tallies>,
        progress: &dyn Fn(ReplayStep, u64, u64),
    ) -> Vec<Counter> {
        let mut counters: Vec<Counter> = self.caps.iter().map(|_| Counter::default()).collect();
        let total = (self.chosen.len() * self.caps.len()) as u64;
        let mut done = 0;
        for tallies in receiver {
            done += tallies.len() as u64;
            for (settings, tally) in tallies {
                if let Some(counter) = counters.get_mut(settings) {
                    counter.add(&tally);
                }
            }
            progress(ReplayStep::Trying, done, total);
        }
        counters
    }

    fn turns<'a>(&'a self, caps: &'a Caps) -> ReplayTurns<'a> {
        ReplayTurns {
            recording: self.recording,
            us: self.us,
            caps,
        }
    }

    fn belonging(&self, trigger: MessageId) -> Option<&[MessageId]> {
        let labels = self.labels?;
        Some(labels.get(&trigger).map_or(&[], Vec::as_slice))
    }

    /// Takes trigger after trigger, each under all settings.
    fn cold(&self, runtime: &Runtime, sender: &SyncSender<Tallies>) -> Result<(), ReplayError> {
        while let Some(chosen) = self.chosen.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let tallies = runtime.block_on(self.under_all(chosen))?;
            if sender.send(tallies).is_err() {
                break;
            }
        }
        Ok(())
    }

    async fn under_all(&self, chosen: &Chosen) -> Result<Tallies, ReplayError> {
        let trigger = self.recording.message(chosen.channel, chosen.id)?;
        let Some(mut trigger) = trigger else {
            return Ok(Vec::new());
        };
        self.recording.carry(&mut trigger)?;
        let trigger = Arc::new(trigger);
        let source = RecordedSource::new(self.recording, chosen.id);
        let belonging = self.belonging(chosen.id);
        let mut tallies = Vec::with_capacity(self.caps.len());
        for (settings, caps) in self.caps.iter().enumerate() {
            let turns = self.turns(caps);
            let outcome = turns.cold_from(&source, &trigger, chosen.cause.clone());
            tallies.push((settings, Tally::of(&outcome.await, belonging)));
        }
        source.finish()?;
        Ok(tallies)
    }

    /// Takes settings after settings, each with all triggers.
    fn warm(&self, runtime: &Runtime, sender: &SyncSender<Tallies>) -> Result<(), ReplayError> {
        loop {
            let settings = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(caps) = self.caps.get(settings) else {
                return Ok(());
            };
            let mut left = self.chosen.iter().peekable();
            let cause = |message: &Message| {
                let chosen = left.next_if(|chosen| chosen.id == message.id);
                Ok(chosen.map(|chosen| chosen.cause.clone()))
            };
            let take = |outcome: &ReplayOutcome| {
                let tally = Tally::of(outcome, self.belonging(outcome.trigger.id));
                Ok(sender.send(vec![(settings, tally)]).is_err())
            };
            runtime.block_on(pass(
                self.turns(caps),
                Start::Warm,
                cause,
                take,
                &|_, _, _| (),
            ))?;
        }
    }
}
