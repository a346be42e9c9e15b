//! A question that is asked of an index, and what matches it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

use super::segment::{Exchange, Segment};
use super::{QUESTION, Ranking, SITTING_MS, stem};

/// BM25's k1: how soon repeated words stop counting.
const SATURATION: f32 = 1.2;
/// What the words around a question count, beside the question's 1.
const AROUND: f32 = 0.25;
/// A word with less than this part of the weight of all is passed over.
const NEGLIGIBLE: f32 = 0.02;
/// How many times an exchange counts whose author the question names.
const NAMED: f32 = 2.0;
/// Pseudo relevance feedback, which reorders what matches: of so many of the best, so many of the
/// rarest words at most, and what one that all of them have counts, beside the question's 1.
const FEEDBACK: usize = 3;
const FEEDBACK_WORDS: usize = 8;
const FEEDBACK_WEIGHT: f32 = 0.3;

/// A question, and what each exchange scores.
pub(super) struct Query<'a> {
    segments: &'a VecDeque<Segment>,
    /// In order of time.
    exchanges: Vec<&'a Exchange>,
    ranking: Ranking,
    /// The question's terms, sorted, and how rare they are together.
    asked: Vec<u32>,
    asked_rarity: f32,
    /// Of each exchange what its words score; 1 is a text with all of the question's once.
    scores: Vec<f32>,
    /// Of each whether the question names its author; empty if it names all or nobody.
    named: Vec<bool>,
}

/// An exchange that matches.
pub(super) struct Match<'a> {
    sum: f32,
    /// In order of time.
    pub(super) place: usize,
    pub(super) exchange: &'a Exchange,
}

impl Match<'_> {
    /// The best first, of equals the newest.
    fn by_sum(&self, other: &Self) -> Ordering {
        let by_sum = other.sum.total_cmp(&self.sum);
        by_sum.then_with(|| other.place.cmp(&self.place))
    }
}

impl<'a> Query<'a> {
    pub(super) fn new(segments: &'a VecDeque<Segment>, question: &str, ranking: Ranking) -> Self {
        let exchanges: Vec<&Exchange> = segments.iter().flat_map(Segment::exchanges).collect();
        let asked = stem::terms_of(question, QUESTION);
        let is_named = |one: &&Exchange| asked.binary_search(&one.author).is_ok();
        let mut named: Vec<bool> = exchanges.iter().map(is_named).collect();
        // Whom all are by tells nothing apart.
        if named.iter().all(|is_named| *is_named == named[0]) {
            named.clear();
        }
        let mut query = Self {
            segments,
            scores: vec![0.0; exchanges.len()],
            exchanges,
            ranking,
            asked,
            asked_rarity: 0.0,
            named,
        };
        let (terms, together) = query.weighed(&query.asked, 1.0);
        query.asked_rarity = together;
        query.add(&terms);
        query
    }

    /// The words around the question count too.
    pub(super) fn add_around(&mut self, around: &str) {
        let around = stem::terms_of(around, QUESTION);
        let (terms, _) = self.weighed(&around, AROUND);
        self.add(&terms);
    }

    /// What scores enough, best first.
    pub(super) fn matches(&self) -> Vec<Match<'a>> {
        let exchanges = self.exchanges.iter().enumerate();
        let matches = exchanges.map(|(place, exchange)| Match {
            sum: self.sum(place),
            place,
            exchange,
        });
        let least = self.ranking.least;
        let mut matches: Vec<Match<'_>> = matches.filter(|one| one.sum >= least).collect();
        matches.sort_by(Match::by_sum);
        matches
    }

    /// Changes the order of matches, best first, by what the best of them are about.
    pub(super) fn sort_by_what_is_found(&mut self, matches: &mut [Match<'_>]) {
        self.add(&self.feedback(matches));
        for one in &mut *matches {
            one.sum = self.sum(one.place);
        }
        matches.sort_by(Match::by_sum);
    }

    /// Terms with their weights, the rarer, the more, `all` of them together; and how rare they are
    /// together.
    fn weighed(&self, terms: &[u32], all: f32) -> (Vec<(u32, f32)>, f32) {
        let rarity = |term: &u32| (*term, self.rarity(*term));
        let mut terms: Vec<(u32, f32)> = terms.iter().map(rarity).collect();
        let together = terms.iter().map(|(_, rarity)| rarity).sum::<f32>();
        let together = together.max(f32::MIN_POSITIVE);
        let part = all / together;
        for (_, weight) in &mut terms {
            *weight *= part;
        }
        (terms, together)
    }

    /// How much a word weighs for being rare.
    fn rarity(&self, term: u32) -> f32 {
        let with = self.segments.iter().map(|segment| segment.with(term));
        // A word that nobody said counts like one said once.
        let found = float(with.map(<[_]>::len).sum::<usize>().max(1));
        let count = float(self.exchanges.len());
        let rarity = ((count - found + 0.5) / (found + 0.5)).max(0.0);
        rarity.ln_1p().powf(self.ranking.rarity)
    }

    /// The rarest words that the best matches have beside those asked for, with their weights.
    fn feedback(&self, matches: &[Match<'_>]) -> Vec<(u32, f32)> {
        let best = &matches[..matches.len().min(FEEDBACK)];
        let all: f32 = best.iter().map(|one| one.sum).sum();
        // Of each term which part of the best have it.
        let mut parts: BTreeMap<u32, f32> = BTreeMap::new();
        for one in best {
            let is_new = |term: &u32| {
                let is_asked = self.asked.binary_search(term).is_ok();
                !is_asked && *term != one.exchange.author && !stem::is_passed_over(*term)
            };
            for term in self.terms_at(one.place).filter(is_new) {
                *parts.entry(term).or_default() += one.sum / all;
            }
        }
        let weight = |(term, part)| {
            let rarity = self.rarity(term);
            (term, FEEDBACK_WEIGHT * part * rarity / self.asked_rarity)
        };
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

    /// Adds to the scores what terms with weights give.
    fn add(&mut self, terms: &[(u32, f32)]) {
        let words: usize = self.segments.iter().map(Segment::words).sum();
        let average = (float(words) / float(self.exchanges.len())).max(1.0);
        let all: f32 = terms.iter().map(|(_, weight)| weight).sum();
        let length = self.ranking.length;
        for (term, weight) in terms {
            // Nearly everything contains it, so it would take long and change little.
            if *weight < NEGLIGIBLE * all {
                continue;
            }
            let mut first = 0;
            for segment in self.segments {
                for posting in segment.with(*term) {
                    let place = first + usize::from(posting.exchange);
                    let times = f32::from(posting.times);
                    let longer = f32::from(self.exchanges[place].length) / average;
                    let held_back = SATURATION * (1.0 - length + length * longer);
                    self.scores[place] += weight * times * (SATURATION + 1.0) / (times + held_back);
                }
                first += segment.len();
            }
        }
    }

    /// What an exchange scores with its part of what those beside it do, and as much again if the
    /// question names its author.
    fn sum(&self, place: usize) -> f32 {
        let from = |at: Option<usize>, part: f32| {
            let score = self.scores.get(at?).filter(|score| **score > 0.0)?;
            let [to, from] = [place, at?].map(|at| self.exchanges[at].at.0);
            let apart = to.saturating_sub(from).saturating_abs();
            (apart < SITTING_MS).then_some(part * score)
        };
        let [next, before, second_next, second_before] = self.ranking.beside;
        let parts = [
            from(place.checked_sub(1), next),
            from(place.checked_sub(2), second_next),
            from(place.checked_add(1), before),
            from(place.checked_add(2), second_before),
        ];
        let sum = self.scores[place] + parts.into_iter().flatten().sum::<f32>();
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
