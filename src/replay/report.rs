//! What a replay reports: lines per trigger, and figures at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::{fmt, iter};

use serde::Serialize;

use super::figures::{self, Counter, Figures, FiguresByScene, Spread, Tally};
use super::turn::{ReplayOutcome, framed};
use super::{Format, ReplaySettings, Report, table};
use crate::model::count;
use crate::telemetry::Ms;
use crate::telemetry::event::LinkCounts;
use clew_context::engine::sanitise;
use clew_context::model::{BlockPlace, MessageId, OmitReason, Omitted, Scene, Tie};

/// A trigger in JSON Lines, with the keys in this order. Ids are strings.
#[derive(Debug, Serialize)]
pub(super) struct ReportLine<'a> {
    pub trigger: MessageId,
    /// What the trigger is.
    pub scene: Scene,
    /// The message that the answer replies to.
    pub target: Option<MessageId>,
    /// The messages of the block, oldest first.
    pub included: Vec<MessageId>,
    /// The questions of earlier exchanges that would be recalled, best first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub recalled: &'a [MessageId],
    /// Why those belong to the asker's conversation that were chosen by that.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ties: BTreeMap<MessageId, Tie>,
    /// What was seen but left out, oldest first.
    pub omitted: &'a [Omitted],
    /// The settings that left something out.
    pub caps: Vec<&'static str>,
    /// The length of the block in Unicode scalars.
    pub chars: usize,
    /// How many REST calls it would have taken.
    pub fetches: usize,
    /// What the collector of links did, if the question had any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkCounts>,
    /// How long collecting and rendering took here.
    pub ms: Ms,
    /// The block inside its frame, if requested; empty if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
}

/// The result of a whole replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The account taken for the bot: name and id.
    pub bot: String,
    /// What was collected, by scene.
    pub figures: FiguresByScene,
    pub report: Report,
}

/// Writes the report and collects the figures.
pub(super) struct Reporter<'a> {
    settings: &'a ReplaySettings,
    triggers: usize,
    counter: Counter,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(settings: &'a ReplaySettings) -> Self {
        Self {
            settings,
            triggers: 0,
            counter: Counter::default(),
        }
    }

    /// Whether as many triggers were replayed as requested.
    pub(super) fn is_full(&self) -> bool {
        let limit = self.settings.limit;
        limit.is_some_and(|limit| self.triggers >= limit)
    }

    /// `recalled`: the questions of earlier exchanges that would be recalled.
    pub(super) fn take(
        &mut self,
        outcome: &ReplayOutcome,
        recalled: &[MessageId],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.triggers += 1;
        self.counter.add(&Tally::of(outcome, None));
        match (self.settings.summary, self.settings.format) {
            (true, _) => Ok(()),
            (false, Format::Text) => self.text(outcome, recalled, out),
            (false, Format::Jsonl) => self.json(outcome, recalled, out),
        }
    }

    /// Ends the report with the figures: after text always, else if only they are wanted.
    pub(super) fn finish(
        self,
        bot: Option<String>,
        report: &Report,
        out: &mut dyn Write,
    ) -> io::Result<Summary> {
        let summary = Summary {
            bot: bot.unwrap_or_else(|| "nobody".to_owned()),
            figures: self.counter.finish(),
            report: report.clone(),
        };
        match (self.settings.format, self.settings.summary) {
            (Format::Text, by_scene) => {
                write!(out, "{summary}")?;
                if by_scene {
                    write!(out, "\n{}", table::by_scene(&summary.figures))?;
                }
            }
            (Format::Jsonl, true) => summary.lines(out)?,
            (Format::Jsonl, false) => {}
        }
        out.flush()?;
        Ok(summary)
    }

    fn json(
        &self,
        outcome: &ReplayOutcome,
        recalled: &[MessageId],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let line = ReportLine {
            trigger: outcome.trigger.id,
            scene: outcome.scene,
            target: outcome.target,
            included: included(outcome),
            recalled,
            ties: ties(outcome).collect(),
            omitted: &outcome.block.omitted,
            caps: caps(outcome),
            chars: outcome.block.chars,
            fetches: outcome.fetches,
            links: outcome.links,
            ms: Ms(outcome.took),
            block: self.settings.text.then(|| framed(outcome)),
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    }

    fn text(
        &self,
        outcome: &ReplayOutcome,
        recalled: &[MessageId],
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let block = &outcome.block;
        let place = match outcome.channel.as_str() {
            "" => String::new(),
            name => format!(" in #{}", sanitise::name(name)),
        };
        writeln!(
            out,
            "{} {}{place} by {} at {} UTC",
            outcome.trigger.id,
            outcome.scene.as_str(),
            outcome.asker,
            outcome.trigger.timestamp.minute()
        )?;
        let included = included(outcome);
        writeln!(
            out,
            "  {}, {}, {} in {:.1} ms, answers {}",
            count(included.len(), "message"),
            count(block.chars, "character"),
            count(outcome.fetches, "fetch"),
            outcome.took.as_secs_f64() * 1_000.0,
            outcome
                .target
                .map_or_else(|| "nothing".to_owned(), |id| id.to_string())
        )?;
        let included = included.iter().map(MessageId::to_string);
        list(out, "included", included)?;
        let ties = ties(outcome).map(|(id, tie)| format!("{id} ({})", tie.as_str()));
        list(out, "conversation", ties)?;
        list(out, "recalled", recalled.iter().map(MessageId::to_string))?;
        let reasons = block
            .omitted
            .iter()
            .map(|one| format!("{} ({})", one.id, one.reason.as_str()));
        list(out, "left out", reasons)?;
        list(out, "over", caps(outcome).into_iter().map(str::to_owned))?;
        let links = outcome.links.map(|links| links.to_string());
        list(out, "links", links.into_iter())?;
        let missing = outcome
            .fallbacks
            .iter()
            .map(|(stage, reason)| format!("{} ({reason})", stage.as_str()));
        list(out, "not to be had", missing)?;
        if self.settings.text {
            for line in framed(outcome).lines() {
                writeln!(out, "  | {line}")?;
            }
        }
        writeln!(out)
    }
}

fn caps(outcome: &ReplayOutcome) -> Vec<&'static str> {
    let block = &outcome.block;
    let hit = figures::CAPS
        .into_iter()
        .filter(|cap| block.dropped_for(*cap) > 0);
    hit.filter_map(OmitReason::setting).collect()
}

/// The figures of a scene in JSON Lines.
#[derive(Serialize)]
struct SceneLine<'a> {
    /// None for all triggers together.
    scene: Option<Scene>,
    #[serde(flatten)]
    figures: &'a Figures,
}

impl Summary {
    /// One line for all triggers, and one per scene.
    fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        let all = SceneLine {
            scene: None,
            figures: &self.figures.all,
        };
        let scenes = self.figures.scenes.iter();
        let scenes = scenes.map(|(scene, figures)| SceneLine {
            scene: Some(*scene),
            figures,
        });
        for line in iter::once(all).chain(scenes) {
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.figures.all;
        let triggers = count(all.triggers, "trigger");
        let messages = count(self.report.messages, "message");
        writeln!(f, "{triggers} among {messages}, the bot is {}", self.bot)?;
        let Spread { p50, p95, .. } = all.chars;
        writeln!(f, "  characters: p50 {p50}, p95 {p95}")?;
        let by = |(cap, count)| format!("{count} by {cap}");
        let truncated = all.truncated.each().map(by).collect::<Vec<_>>().join(", ");
        let (shortened, fallbacks) = (all.shortened, all.fallbacks);
        let (fetches, most_fetches) = (all.fetches, all.most_fetches);
        writeln!(
            f,
            "  truncated: {truncated}; {shortened} with shortened messages",
        )?;
        writeln!(
            f,
            "  fetches: {fetches}, at most {most_fetches} a trigger; {fallbacks} with something missing",
        )
    }
}

/// Why those messages are shown that are part of the asker's conversation.
fn ties(outcome: &ReplayOutcome) -> impl Iterator<Item = (MessageId, Tie)> {
    outcome.block.items().filter_map(|item| match item.place {
        BlockPlace::Conversation(tie) => Some((item.message.id, tie)),
        _ => None,
    })
}

fn included(outcome: &ReplayOutcome) -> Vec<MessageId> {
    outcome.block.items().map(|item| item.message.id).collect()
}

/// Writes several items on one line, or nothing if there are none.
fn list(out: &mut dyn Write, what: &str, items: impl Iterator<Item = String>) -> io::Result<()> {
    let items: Vec<String> = items.collect();
    if items.is_empty() {
        return Ok(());
    }
    writeln!(out, "  {what}: {}", items.join(" "))
}
