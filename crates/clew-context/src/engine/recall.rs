//! Recall: which earlier exchanges of a conversation match a question. Pure.
//!
//! An index holds no text: of each exchange its turn, its time, and hashes of its words.
//! It is made from stored exchanges and can be made again at any time. Exchanges are
//! ranked by BM25 over word stems, rare words counting more; a part of each exchange's
//! score goes to those beside it in the same sitting, since what a question asks for is
//! often said one message after the words it shares with it. `docs/recall.md` has the
//! formula and what it reaches.

mod segment;
mod stem;

use std::collections::{BTreeSet, VecDeque};

use crate::model::{TurnId, UnixMillis};

use self::segment::{Exchange, Segment};
use super::words::WordLimits;

/// How much of a question is looked at.
const QUESTION: WordLimits = WordLimits {
    chars: 2_000,
    words: 120,
};
/// How much of each text of an exchange is looked at.
const TEXT: WordLimits = WordLimits {
    chars: 4_000,
    words: 300,
};
/// BM25: how soon repeated words stop counting, and how much long texts are held back.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.4;
/// How much more rare words count than in BM25: the power of their weight.
const RARITY: f32 = 1.5;
/// The part of an exchange's score that goes to the next one, the one before it, and
/// those beyond, in this order.
const NEXT: f32 = 0.4;
const BEFORE: f32 = 0.2;
const SECOND_NEXT: f32 = 0.15;
const SECOND_BEFORE: f32 = 0.1;
/// What the words around a question count, beside the question's 1.
const AROUND: f32 = 0.25;
/// Exchanges further apart than this are not beside each other: an hour.
const SITTING_MS: i64 = 3_600_000;
/// A word with less than this part of the weight of all is passed over.
const NEGLIGIBLE: f32 = 0.02;
/// What scores less than this part of what a text with each of the question's words once
/// would score does not match.
const LEAST: f32 = 0.15;

/// An exchange to be indexed.
#[derive(Debug, Clone)]
pub struct RecallEntry<'a> {
    /// Its turn.
    pub turn: TurnId,
    /// When the question was asked.
    pub at: UnixMillis,
    /// Question and answer, and the asker's name; of each the first 300 words count.
    pub texts: Vec<&'a str>,
}

/// The exchanges of one conversation, by their words.
#[derive(Debug, Default)]
pub struct RecallIndex {
    /// In order of time.
    segments: VecDeque<Segment>,
}

impl RecallIndex {
    /// Of texts that have nothing to do with each other; none gives another a part of its score.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = Vec<&'a str>>) -> Self {
        let entries = (0..).zip(texts).map(|(place, texts)| RecallEntry {
            turn: TurnId(place),
            // Too far apart to give each other a part of their scores.
            at: UnixMillis(place.cast_signed().saturating_mul(2 * SITTING_MS)),
            texts,
        });
        let mut index = Self::default();
        index.add_newer(&entries.collect::<Vec<_>>());
        index
    }

    /// Adds exchanges that are older than all others, oldest first.
    pub fn add_older(&mut self, entries: &[RecallEntry<'_>]) {
        for entries in entries.rchunks(Segment::MOST) {
            self.segments.push_front(Segment::new(entries));
        }
    }

    /// Adds exchanges that are newer than all others, oldest first.
    pub fn add_newer(&mut self, entries: &[RecallEntry<'_>]) {
        let room = self.segments.back().map_or(0, Segment::room);
        let (first, rest) = entries.split_at(room.min(entries.len()));
        if let Some(newest) = self.segments.back_mut() {
            newest.add(first);
        }
        let segments = rest.chunks(Segment::MOST).map(Segment::new);
        self.segments.extend(segments);
    }

    /// Takes an exchange out.
    pub fn remove(&mut self, turn: TurnId) {
        for segment in &mut self.segments {
            segment.remove(turn);
        }
        self.segments.retain(|segment| segment.len() > 0);
    }

    /// Whether this exchange is in the index.
    pub fn contains(&self, turn: TurnId) -> bool {
        let mut segments = self.segments.iter().rev();
        segments.any(|segment| segment.exchanges().iter().any(|one| one.turn == turn))
    }

    /// How many exchanges there are.
    pub fn len(&self) -> usize {
        self.segments.iter().map(Segment::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// What the index takes in memory, in bytes, roughly.
    pub fn bytes(&self) -> usize {
        self.segments.iter().map(Segment::bytes).sum()
    }

    /// Drops the oldest exchanges, some hundreds at a time, until the others take no
    /// more than this, in bytes; the newest stay. Returns whether any were dropped.
    pub fn shrink_to(&mut self, bytes: usize) -> bool {
        let mut dropped = false;
        while self.segments.len() > 1 && self.bytes() > bytes {
            self.segments.pop_front();
            dropped = true;
        }
        dropped
    }

    /// At most `most` exchanges later than `since` that match a question, best first; the
    /// newer of two that match alike. Those of `shown` turns are passed over, as are
    /// those that say word for word what another one does.
    pub fn best(
        &self,
        question: &str,
        since: UnixMillis,
        shown: &BTreeSet<TurnId>,
        most: usize,
    ) -> Vec<TurnId> {
        if most == 0 {
            return Vec::new();
        }
        let matches = self.matches(&[(question, 1.0)], LENGTH, LEAST);
        let exchanges = self.segments.iter().flat_map(Segment::exchanges);
        let shown = exchanges.filter(|one| shown.contains(&one.turn));
        let mut said: BTreeSet<u64> = shown.map(|one| one.words).collect();
        let fresh = matches
            .into_iter()
            .map(|(_, one)| one)
            .filter(|one| one.at > since && said.insert(one.words));
        fresh.take(most).map(|one| one.turn).collect()
    }

    /// The places, in order of time, of all that match a question and, a quarter as much, the
    /// words around it; best first. What one scores for each text is a part of what a text with
    /// all its words would; no sum below `least` matches. `length` is how much long ones are
    /// held back.
    pub fn ranked(&self, question: &str, around: &str, length: f32, least: f32) -> Vec<usize> {
        let matches = self.matches(&[(question, 1.0), (around, AROUND)], length, least);
        matches.into_iter().map(|(place, _)| place).collect()
    }

    fn matches(&self, texts: &[(&str, f32)], length: f32, least: f32) -> Vec<(usize, &Exchange)> {
        let mut sums = vec![0.0; self.len()];
        for (text, weight) in texts {
            let (scores, full) = self.scores(&stem::terms_of(text, QUESTION), length);
            for (sum, score) in sums.iter_mut().zip(scores) {
                *sum += weight * score / full.max(f32::MIN_POSITIVE);
            }
        }
        let exchanges = self.segments.iter().flat_map(Segment::exchanges);
        let matches = sums.into_iter().zip(exchanges).enumerate();
        let matches = matches.map(|(at, (score, one))| (score, at, one));
        let matches = matches.filter(|(score, ..)| *score >= least);
        let mut matches: Vec<(f32, usize, &Exchange)> = matches.collect();
        matches.sort_unstable_by(|(one, at, _), (other, of, _)| {
            other.total_cmp(one).then_with(|| of.cmp(at))
        });
        let matches = matches.into_iter();
        matches.map(|(_, at, one)| (at, one)).collect()
    }

    /// The score of each exchange in order of time, and that of a text of average length
    /// with each of the question's words once.
    fn scores(&self, terms: &[u32], held_back: f32) -> (Vec<f32>, f32) {
        let count = self.len();
        let words: usize = self.segments.iter().map(Segment::words).sum();
        let average = (float(words) / float(count)).max(1.0);
        let weight = |term: &u32| {
            let with = self.segments.iter().map(|segment| segment.with(*term));
            // A word that nobody said counts like one said once.
            let found = float(with.map(<[_]>::len).sum::<usize>().max(1));
            let rarity = ((float(count) - found + 0.5) / (found + 0.5)).max(0.0);
            rarity.ln_1p().powf(RARITY)
        };
        let weights: Vec<f32> = terms.iter().map(weight).collect();
        let full: f32 = weights.iter().sum();
        let mut scores = vec![0.0; count];
        for (term, weight) in terms.iter().zip(weights) {
            // Nearly everything contains it, so it would take long and change little.
            if weight < NEGLIGIBLE * full {
                continue;
            }
            let mut first = 0;
            for segment in &self.segments {
                for posting in segment.with(*term) {
                    let at = usize::from(posting.exchange);
                    let length = f32::from(segment.exchanges()[at].length) / average;
                    let times = f32::from(posting.times);
                    let held_back = SATURATION * (1.0 - held_back + held_back * length);
                    scores[first + at] += weight * times * (SATURATION + 1.0) / (times + held_back);
                }
                first += segment.len();
            }
        }
        (self.spread(&scores), full)
    }

    /// Gives the exchanges beside each one their part of its score.
    fn spread(&self, scores: &[f32]) -> Vec<f32> {
        let exchanges = self.segments.iter().flat_map(Segment::exchanges);
        let times: Vec<i64> = exchanges.map(|one| one.at.0).collect();
        let from = |to: usize, at: Option<usize>, part: f32| {
            let at = at.filter(|at| *at < scores.len())?;
            let apart = times[to].saturating_sub(times[at]).saturating_abs();
            (apart < SITTING_MS).then_some(part * scores[at])
        };
        let spread = |at: usize| {
            let parts = [
                from(at, at.checked_sub(1), NEXT),
                from(at, at.checked_sub(2), SECOND_NEXT),
                from(at, at.checked_add(1), BEFORE),
                from(at, at.checked_add(2), SECOND_BEFORE),
            ];
            scores[at] + parts.into_iter().flatten().sum::<f32>()
        };
        (0..scores.len()).map(spread).collect()
    }
}

/// A count as a number, exact below 16 million.
#[expect(
    clippy::cast_precision_loss,
    reason = "counts of words and exchanges stay below, or need no exactness"
)]
const fn float(count: usize) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests;
