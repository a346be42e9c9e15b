//! Figures of replayed triggers: of all, and by scene.

use std::array;
use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::turn::{ReplayOutcome, framed};
use crate::llm;
use clew_context::model::{MessageId, OmitReason, Scene};

/// The caps that leave messages out.
pub(super) const CAPS: [OmitReason; 5] = [
    OmitReason::Msgs,
    OmitReason::Chars,
    OmitReason::LoneChars,
    OmitReason::Age,
    OmitReason::ChainAge,
];

/// The figures of all triggers, and of each scene that occurred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FiguresByScene {
    /// Of all triggers.
    pub all: Figures,
    pub scenes: BTreeMap<Scene, Figures>,
}

/// What was shown to a model, what was left out, and what it cost: sums over triggers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Triggers replayed.
    pub triggers: u64,
    /// Messages in blocks.
    pub messages: u64,
    /// The length of blocks, in Unicode scalars.
    pub chars: Spread,
    /// An estimate of the tokens of blocks in their frames.
    pub tokens: Spread,
    /// REST calls.
    pub fetches: u64,
    /// The most REST calls of one trigger.
    pub most_fetches: u64,
    /// At least how many messages each cap left out.
    pub dropped: ByCap,
    /// Triggers whose block lost messages to each cap.
    pub truncated: ByCap,
    /// Triggers whose block lost messages to `MEM_MAX_MSGS`, and nothing to its characters.
    pub msgs_first: u64,
    /// Triggers for which a message was shortened.
    pub shortened: u64,
    /// Triggers for which something could not be fetched.
    pub fallbacks: u64,
    /// What labels say of the messages in blocks; none without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Labelled>,
}

/// A quantity over all triggers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub total: u64,
    /// The median, by nearest rank.
    pub p50: u32,
    /// What nineteen of twenty triggers do not exceed.
    pub p95: u32,
    pub most: u32,
}

/// A count for each cap that leaves messages out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ByCap([u64; CAPS.len()]);

/// How blocks agree with labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Labelled {
    /// Messages that belong to a trigger.
    pub belonging: u64,
    /// How many of them were shown.
    pub found: u64,
}

/// What one trigger adds.
#[derive(Debug)]
pub(super) struct Tally {
    scene: Scene,
    chars: u32,
    tokens: u32,
    /// All but the spreads of those.
    figures: Figures,
}

/// Adds up triggers, in any order: 8 bytes per trigger.
#[derive(Debug, Default)]
pub(super) struct Counter(BTreeMap<Scene, Counted>);

#[derive(Debug, Default)]
struct Counted {
    figures: Figures,
    chars: Vec<u32>,
    tokens: Vec<u32>,
}

impl Tally {
    /// `belonging` are the messages that labels name, ascending, if there are labels.
    pub(super) fn of(outcome: &ReplayOutcome, belonging: Option<&[MessageId]>) -> Self {
        let block = &outcome.block;
        let fetches = outcome.fetches as u64;
        let dropped = CAPS.map(|cap| block.dropped_for(cap) as u64);
        let [msgs, chars, lone_chars, ..] = dropped;
        let full = [OmitReason::Chars, OmitReason::LoneChars];
        let is_cut = |cut: Option<OmitReason>| cut.is_some_and(|cut| full.contains(&cut));
        let is_full = chars + lone_chars > 0 || block.items().any(|item| is_cut(item.cut));
        let labels = belonging.map(|ids| {
            let shown = block.items().map(|item| item.message.id);
            let found = shown.filter(|id| ids.binary_search(id).is_ok());
            Labelled {
                belonging: ids.len() as u64,
                found: found.count() as u64,
            }
        });
        Self {
            scene: outcome.scene,
            chars: number(block.chars),
            tokens: number(llm::estimated(framed(outcome).len())),
            figures: Figures {
                triggers: 1,
                messages: block.items().count() as u64,
                fetches,
                most_fetches: fetches,
                dropped: ByCap(dropped),
                truncated: ByCap(dropped.map(|dropped| u64::from(dropped > 0))),
                msgs_first: u64::from(msgs > 0 && !is_full),
                shortened: u64::from(block.items().any(|item| item.cut.is_some())),
                fallbacks: u64::from(!outcome.fallbacks.is_empty()),
                labels,
                ..Figures::default()
            },
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Counter {
    pub(super) fn add(&mut self, tally: &Tally) {
        self.0.entry(tally.scene).or_default().add(tally);
    }

    pub(super) fn finish(self) -> FiguresByScene {
        let mut all = Counted::default();
        let mut scenes = BTreeMap::new();
        for (scene, counted) in self.0 {
            all.join(&counted);
            scenes.insert(scene, counted.finish());
        }
        FiguresByScene {
            all: all.finish(),
            scenes,
        }
    }
}

impl Counted {
    fn add(&mut self, tally: &Tally) {
        self.chars.push(tally.chars);
        self.tokens.push(tally.tokens);
        self.figures.join(&tally.figures);
    }

    fn join(&mut self, other: &Self) {
        self.figures.join(&other.figures);
        self.chars.extend(&other.chars);
        self.tokens.extend(&other.tokens);
    }

    fn finish(self) -> Figures {
        Figures {
            chars: Spread::of(self.chars),
            tokens: Spread::of(self.tokens),
            ..self.figures
        }
    }
}

impl Figures {
    /// Adds what can be added; spreads cannot.
    fn join(&mut self, other: &Self) {
        self.triggers += other.triggers;
        self.messages += other.messages;
        self.fetches += other.fetches;
        self.most_fetches = self.most_fetches.max(other.most_fetches);
        self.dropped = self.dropped.plus(other.dropped);
        self.truncated = self.truncated.plus(other.truncated);
        self.msgs_first += other.msgs_first;
        self.shortened += other.shortened;
        self.fallbacks += other.fallbacks;
        self.labels = match (self.labels, other.labels) {
            (Some(one), Some(two)) => Some(Labelled {
                belonging: one.belonging + two.belonging,
                found: one.found + two.found,
            }),
            (one, two) => one.or(two),
        };
    }
}

impl ByCap {
    /// Each cap with its count.
    pub fn each(self) -> impl Iterator<Item = (OmitReason, u64)> {
        CAPS.into_iter().zip(self.0)
    }

    /// The counts of these caps together.
    pub fn of(self, caps: &[OmitReason]) -> u64 {
        let each = self.each().filter(|(cap, _)| caps.contains(cap));
        each.map(|(_, count)| count).sum()
    }

    fn plus(self, other: Self) -> Self {
        Self(array::from_fn(|at| self.0[at] + other.0[at]))
    }
}

impl Serialize for ByCap {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.each())
    }
}

impl Spread {
    fn of(mut values: Vec<u32>) -> Self {
        values.sort_unstable();
        Self {
            total: values.iter().copied().map(u64::from).sum(),
            p50: percentile(&values, 50),
            p95: percentile(&values, 95),
            most: values.last().copied().unwrap_or(0),
        }
    }
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
