//! Recall: which earlier exchanges of a conversation match a question. Pure.
//!
//! An index holds no text: of each exchange its turn, its time, and hashes of its words.
//! It is made from stored exchanges and can be made again at any time. Exchanges are
//! ranked by BM25 over word stems, rare words counting more; a part of each exchange's
//! score goes to those beside it in the same sitting, since what a question asks for is
//! often said one message after the words it shares with it. Those by people whom the question
//! names count more, and what the best matches are about is looked for too. `docs/recall.md`
//! has the formula and what it reaches.

mod alike;
mod segment;
mod stem;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
const NEXT: f32 = 0.6;
const BEFORE: f32 = 0.2;
const SECOND_NEXT: f32 = 0.15;
const SECOND_BEFORE: f32 = 0.1;
/// How many times an exchange counts whose author the question names.
const NAMED: f32 = 2.0;
/// Pseudo relevance feedback: of so many of the best matches, so many of the rarest words at most
/// are looked for too, and one that all of them have counts this, beside the question's 1.
const FEEDBACK: usize = 3;
const FEEDBACK_WORDS: usize = 8;
const FEEDBACK_WEIGHT: f32 = 0.3;
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
    /// Who asked; empty if nobody is known.
    pub author: &'a str,
    /// Question and answer; of each the first 300 words count.
    pub texts: Vec<&'a str>,
}

/// An exchange that matches.
struct Match<'a> {
    sum: f32,
    /// In order of time.
    place: usize,
    exchange: &'a Exchange,
}

impl Match<'_> {
    /// The best first, of equals the newest.
    fn by_sum(&self, other: &Self) -> Ordering {
        let by_sum = other.sum.total_cmp(&self.sum);
        by_sum.then_with(|| other.place.cmp(&self.place))
    }
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
            // In no month, and too far apart to give each other a part of their scores.
            at: UnixMillis(i64::MIN + place.cast_signed().saturating_mul(2 * SITTING_MS)),
            author: "",
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
        let asked = stem::terms_of(question, QUESTION);
        let mut scores = vec![0.0; self.len()];
        self.add_scores(&mut scores, &self.weighed(&asked, 1.0), LENGTH);
        let sums = Sums::new(self.exchanges().collect(), &asked);
        let mut matches = sums.matches(&scores, LEAST);
        // Changes their order only: what matches is what the question itself finds.
        self.add_scores(&mut scores, &self.feedback(&matches, &asked), LENGTH);
        for one in &mut matches {
            one.sum = sums.of(&scores, one.place);
        }
        matches.sort_by(Match::by_sum);
        let shown = self.exchanges().filter(|one| shown.contains(&one.turn));
        let mut said: BTreeSet<u64> = shown.map(|one| one.words).collect();
        let exchanges = matches.into_iter().map(|one| one.exchange);
        let fresh = exchanges.filter(|one| one.at > since && said.insert(one.words));
        fresh.take(most).map(|one| one.turn).collect()
    }

    /// The places, in order of time, of all that match a question and, a quarter as much, the
    /// words around it; best first. What one scores for each text is a part of what a text with
    /// all its words would; no sum below `least` matches. `length` is how much long ones are
    /// held back.
    pub fn ranked(&self, question: &str, around: &str, length: f32, least: f32) -> Vec<usize> {
        let [asked, around] = [question, around].map(|text| stem::terms_of(text, QUESTION));
        let mut scores = vec![0.0; self.len()];
        self.add_scores(&mut scores, &self.weighed(&asked, 1.0), length);
        self.add_scores(&mut scores, &self.weighed(&around, AROUND), length);
        let sums = Sums::new(self.exchanges().collect(), &asked);
        let matches = sums.matches(&scores, least);
        matches.into_iter().map(|one| one.place).collect()
    }

    /// Terms with their weights: the rarer, the more; `all` of them together.
    fn weighed(&self, terms: &[u32], all: f32) -> Vec<(u32, f32)> {
        let part = all / self.full(terms);
        let weight = |term: &u32| (*term, part * self.rarity(*term));
        terms.iter().map(weight).collect()
    }

    /// How rare terms are together.
    fn full(&self, terms: &[u32]) -> f32 {
        let rarities = terms.iter().map(|term| self.rarity(*term));
        rarities.sum::<f32>().max(f32::MIN_POSITIVE)
    }

    /// The rarest words that the best matches have beside those asked for, with their weights.
    fn feedback(&self, matches: &[Match<'_>], asked: &[u32]) -> Vec<(u32, f32)> {
        let best = &matches[..matches.len().min(FEEDBACK)];
        let all: f32 = best.iter().map(|one| one.sum).sum();
        // Of each term which part of the best have it.
        let mut parts: BTreeMap<u32, f32> = BTreeMap::new();
        for one in best {
            let is_new = |term: &u32| {
                let is_asked = asked.binary_search(term).is_ok();
                !is_asked && *term != one.exchange.author && !stem::is_passed_over(*term)
            };
            for term in self.terms_at(one.place).filter(is_new) {
                *parts.entry(term).or_default() += one.sum / all;
            }
        }
        let full = self.full(asked);
        let weight = |(term, part)| (term, FEEDBACK_WEIGHT * part * self.rarity(term) / full);
        let mut terms: Vec<(u32, f32)> = parts.into_iter().map(weight).collect();
        terms.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        terms.truncate(FEEDBACK_WORDS);
        terms
    }

    /// The terms of the exchange at a place.
    fn terms_at(&self, mut place: usize) -> impl Iterator<Item = u32> {
        let segment = self.segments.iter().find(|segment| {
            let is_here = place < segment.len();
            place -= if is_here { 0 } else { segment.len() };
            is_here
        });
        let terms = segment.map(|segment| segment.terms_of(place));
        terms.into_iter().flatten()
    }

    fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.segments.iter().flat_map(Segment::exchanges)
    }

    /// How much a word weighs for being rare.
    fn rarity(&self, term: u32) -> f32 {
        let with = self.segments.iter().map(|segment| segment.with(term));
        // A word that nobody said counts like one said once.
        let found = float(with.map(<[_]>::len).sum::<usize>().max(1));
        let count = float(self.len());
        let rarity = ((count - found + 0.5) / (found + 0.5)).max(0.0);
        rarity.ln_1p().powf(RARITY)
    }

    /// Adds to the score of each exchange, in order of time, what terms with weights give it.
    fn add_scores(&self, scores: &mut [f32], terms: &[(u32, f32)], held_back: f32) {
        let words: usize = self.segments.iter().map(Segment::words).sum();
        let average = (float(words) / float(self.len())).max(1.0);
        let all: f32 = terms.iter().map(|(_, weight)| weight).sum();
        for (term, weight) in terms {
            // Nearly everything contains it, so it would take long and change little.
            if *weight < NEGLIGIBLE * all {
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
    }
}

/// What exchanges score with their part of what those beside them do.
struct Sums<'a> {
    /// In order of time.
    exchanges: Vec<&'a Exchange>,
    /// Of each whether the question names its author; empty if it names all or nobody.
    named: Vec<bool>,
}

impl<'a> Sums<'a> {
    fn new(exchanges: Vec<&'a Exchange>, asked: &[u32]) -> Self {
        let is_named = |one: &&Exchange| asked.binary_search(&one.author).is_ok();
        let mut named: Vec<bool> = exchanges.iter().map(is_named).collect();
        // Whom all are by tells nothing apart.
        if named.iter().all(|is_named| *is_named == named[0]) {
            named.clear();
        }
        Self { exchanges, named }
    }

    /// Those that score at least this, best first.
    fn matches(&self, scores: &[f32], least: f32) -> Vec<Match<'a>> {
        let matches = self
            .exchanges
            .iter()
            .enumerate()
            .map(|(place, exchange)| Match {
                sum: self.of(scores, place),
                place,
                exchange,
            });
        let mut matches: Vec<Match<'_>> = matches.filter(|one| one.sum >= least).collect();
        matches.sort_by(Match::by_sum);
        matches
    }

    fn of(&self, scores: &[f32], place: usize) -> f32 {
        let from = |at: Option<usize>, part: f32| {
            let score = scores.get(at?).filter(|score| **score > 0.0)?;
            let [to, from] = [place, at?].map(|at| self.exchanges[at].at.0);
            let apart = to.saturating_sub(from).saturating_abs();
            (apart < SITTING_MS).then_some(part * score)
        };
        let parts = [
            from(place.checked_sub(1), NEXT),
            from(place.checked_sub(2), SECOND_NEXT),
            from(place.checked_add(1), BEFORE),
            from(place.checked_add(2), SECOND_BEFORE),
        ];
        let sum = scores[place] + parts.into_iter().flatten().sum::<f32>();
        match self.named.get(place) {
            Some(true) => sum * NAMED,
            _ => sum,
        }
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
