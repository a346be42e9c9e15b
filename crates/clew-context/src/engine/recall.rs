//! Recall: which earlier exchanges of a conversation match a question. Pure.
//!
//! An index holds no text: of each exchange its turn, its time, and hashes of its words.
//! It is made from stored exchanges and can be made again at any time. Exchanges are
//! ranked by BM25 over word stems, rare words counting more; a part of each exchange's
//! score goes to those beside it in the same sitting, since what a question asks for is
//! often said one message after the words it shares with it. Those by people whom the question
//! names count more, and of what matches what is about the same as the best comes first.
//! `docs/recall.md` has the formula and what it reaches.

mod alike;
mod query;
mod segment;
mod stem;

use std::collections::{BTreeSet, VecDeque};

use crate::model::{TurnId, UnixMillis};

use self::query::Query;
use self::segment::Segment;
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
/// Exchanges further apart than this are not beside each other: an hour.
const SITTING_MS: i64 = 3_600_000;

/// How texts are weighed that match a question.
#[derive(Debug, Clone, Copy)]
pub struct Ranking {
    /// How much long ones are held back: BM25's b.
    pub length: f32,
    /// The power of a word's rarity; 1 in BM25.
    pub rarity: f32,
    /// The part of a text's score that goes to the next one, the one before it, and those beyond, in
    /// this order.
    pub beside: [f32; 4],
    /// What scores less than this part of what a text with each of the question's words once would
    /// score does not match.
    pub least: f32,
}

/// Of exchanges.
const RECALL: Ranking = Ranking {
    length: 0.4,
    rarity: 1.5,
    beside: [0.6, 0.2, 0.15, 0.1],
    least: 0.15,
};

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

/// The exchanges of one conversation, by their words.
#[derive(Debug, Default)]
pub struct RecallIndex {
    /// In order of time.
    segments: VecDeque<Segment>,
}

impl RecallIndex {
    /// Of texts that were said at no time, for rankings without parts for those beside.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = Vec<&'a str>>) -> Self {
        let entries = (0..).zip(texts).map(|(place, texts)| RecallEntry {
            turn: TurnId(place),
            // In no month.
            at: UnixMillis(i64::MIN),
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
        let mut query = Query::new(&self.segments, question, RECALL);
        let mut matches = query.matches();
        query.sort_by_what_is_found(&mut matches);
        let exchanges = self.segments.iter().flat_map(Segment::exchanges);
        let shown = exchanges.filter(|one| shown.contains(&one.turn));
        let mut said: BTreeSet<u64> = shown.map(|one| one.words).collect();
        let exchanges = matches.into_iter().map(|one| one.exchange);
        let fresh = exchanges.filter(|one| one.at > since && said.insert(one.words));
        fresh.take(most).map(|one| one.turn).collect()
    }

    /// The places, in order of time, of all that match a question and, a quarter as much, the
    /// words around it; best first.
    pub fn ranked(&self, question: &str, around: &str, ranking: Ranking) -> Vec<usize> {
        let mut query = Query::new(&self.segments, question, ranking);
        query.add_around(around);
        query.matches().into_iter().map(|one| one.place).collect()
    }
}

#[cfg(test)]
mod tests;
