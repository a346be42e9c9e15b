//! What a replay reports: lines per trigger, and figures at the end.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use super::turn::{ReplayOutcome, framed};
use super::{Format, ReplaySettings, Report, Us};
use crate::telemetry::Ms;
use crate::telemetry::event::LinkCounts;
use clew_context::engine::sanitise;
use clew_context::model::{MessageId, OmitReason, Omitted, Scene};

/// The reasons that are caps.
const CAPS: [OmitReason; 3] = [OmitReason::Msgs, OmitReason::Chars, OmitReason::Age];

/// A trigger in JSON Lines, with the keys in this order. Ids are strings.
#[derive(Debug, Serialize)]
pub(super) struct ReportLine<'a> {
    /// The trigger's id.
    pub trigger: MessageId,
    /// What the trigger is.
    pub scene: Scene,
    /// The message that the answer replies to.
    pub target: Option<MessageId>,
    /// The messages of the block, oldest first.
    pub included: Vec<MessageId>,
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

/// The figures of a whole replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The account taken for the bot: name and id.
    pub bot: String,
    /// Triggers replayed.
    pub triggers: usize,
    /// The median length of a block, in Unicode scalars.
    pub chars_p50: u32,
    /// The length that nineteen of twenty blocks do not exceed.
    pub chars_p95: u32,
    /// Triggers whose block lost messages to a cap: `msgs`, `chars`, `age`.
    pub truncated: [usize; 3],
    /// Triggers for which a message was shortened.
    pub shortened: usize,
    /// Triggers for which something could not be fetched.
    pub fallbacks: usize,
    /// REST calls of all triggers.
    pub fetches: usize,
    /// The most REST calls of one trigger.
    pub most_fetches: usize,
    /// What was read.
    pub report: Report,
}

/// Writes the report and collects the figures.
pub(super) struct Reporter<'a> {
    settings: &'a ReplaySettings,
    chars: Vec<u32>,
    summary: Summary,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(settings: &'a ReplaySettings, us: &Us) -> Self {
        Self {
            settings,
            chars: Vec::new(),
            summary: Summary {
                bot: match us.user.get() {
                    0 => "nobody".to_owned(),
                    id => format!("{} ({id})", sanitise::name(&us.name)),
                },
                triggers: 0,
                chars_p50: 0,
                chars_p95: 0,
                truncated: [0; 3],
                shortened: 0,
                fallbacks: 0,
                fetches: 0,
                most_fetches: 0,
                report: Report::default(),
            },
        }
    }

    /// Whether as many triggers were replayed as requested.
    pub(super) fn is_full(&self) -> bool {
        let limit = self.settings.limit;
        limit.is_some_and(|limit| self.summary.triggers >= limit)
    }

    pub(super) fn take(&mut self, outcome: &ReplayOutcome, out: &mut dyn Write) -> io::Result<()> {
        self.count(outcome);
        match self.settings.format {
            Format::Text => self.text(outcome, out),
            Format::Jsonl => self.json(outcome, out),
        }
    }

    pub(super) fn summary(mut self, report: &Report) -> Summary {
        self.chars.sort_unstable();
        self.summary.chars_p50 = percentile(&self.chars, 50);
        self.summary.chars_p95 = percentile(&self.chars, 95);
        self.summary.report = report.clone();
        self.summary
    }

    fn count(&mut self, outcome: &ReplayOutcome) {
        let block = &outcome.block;
        let chars = u32::try_from(block.chars).unwrap_or(u32::MAX);
        self.chars.push(chars);
        let summary = &mut self.summary;
        summary.triggers += 1;
        for (count, cap) in summary.truncated.iter_mut().zip(CAPS) {
            *count += usize::from(block.dropped_for(cap) > 0);
        }
        summary.shortened += usize::from(block.items().any(|item| item.cut));
        summary.fallbacks += usize::from(!outcome.fallbacks.is_empty());
        summary.fetches += outcome.fetches;
        summary.most_fetches = summary.most_fetches.max(outcome.fetches);
    }

    fn json(&self, outcome: &ReplayOutcome, out: &mut dyn Write) -> io::Result<()> {
        let line = ReportLine {
            trigger: outcome.trigger.id,
            scene: outcome.scene,
            target: outcome.target,
            included: included(outcome),
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

    fn text(&self, outcome: &ReplayOutcome, out: &mut dyn Write) -> io::Result<()> {
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
            counted(included.len(), "message"),
            counted(block.chars, "character"),
            counted(outcome.fetches, "fetch"),
            outcome.took.as_secs_f64() * 1_000.0,
            outcome
                .target
                .map_or_else(|| "nothing".to_owned(), |id| id.to_string())
        )?;
        list(out, "included", included.iter().map(MessageId::to_string))?;
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
    let hit = CAPS.into_iter().filter(|cap| block.dropped_for(*cap) > 0);
    hit.filter_map(|cap| cap.setting(outcome.scene != Scene::Thread))
        .collect()
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [msgs, chars, age] = self.truncated;
        let messages = usize::try_from(self.report.messages).unwrap_or(usize::MAX);
        writeln!(
            f,
            "{} among {}, the bot is {}",
            counted(self.triggers, "trigger"),
            counted(messages, "message"),
            self.bot
        )?;
        writeln!(
            f,
            "  characters: p50 {}, p95 {}",
            self.chars_p50, self.chars_p95
        )?;
        writeln!(
            f,
            "  truncated: {msgs} by msgs, {chars} by chars, {age} by age; {} with shortened messages",
            self.shortened
        )?;
        writeln!(
            f,
            "  fetches: {}, at most {} a trigger; {} with something missing",
            self.fetches, self.most_fetches, self.fallbacks
        )
    }
}

fn included(outcome: &ReplayOutcome) -> Vec<MessageId> {
    outcome.block.items().map(|item| item.message.id).collect()
}

/// Writes several items on one line, or nothing if there are none.
fn list(
    out: &mut dyn Write,
    what: &str,
    items: impl ExactSizeIterator<Item = String>,
) -> io::Result<()> {
    if items.len() == 0 {
        return Ok(());
    }
    let items: Vec<String> = items.collect();
    writeln!(out, "  {what}: {}", items.join(" "))
}

fn counted(count: usize, what: &str) -> String {
    let plural = match what {
        _ if count == 1 => "",
        "fetch" => "es",
        _ => "s",
    };
    format!("{count} {what}{plural}")
}

/// The percentile by nearest rank of ascending values; 0 if there are none.
fn percentile(values: &[u32], percent: usize) -> u32 {
    let rank = (values.len() * percent).div_ceil(100);
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let values: Vec<u32> = (1..=20).collect();
        assert_eq!(percentile(&values, 50), 10);
        assert_eq!(percentile(&values, 95), 19);
        assert_eq!(percentile(&[7], 95), 7);
        assert_eq!(percentile(&[], 50), 0);
    }
}
