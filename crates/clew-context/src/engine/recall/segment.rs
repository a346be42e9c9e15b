//! Some hundred exchanges in order of time, and which words each contains.

use super::{RecallEntry, TEXT, stem};
use crate::model::{TurnId, UnixMillis};

/// What is known of an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    pub(super) turn: TurnId,
    pub(super) at: UnixMillis,
    /// A hash of its words in their order.
    pub(super) words: u64,
    /// The term of the first word of its author's name, 0 if it has none.
    pub(super) author: u32,
    /// How many words it has.
    pub(super) length: u16,
}

/// An exchange that contains a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Posting {
    /// The hash of the word's stem.
    term: u32,
    /// The exchange's place in the segment.
    pub(super) exchange: u16,
    /// How often it contains the word.
    pub(super) times: u16,
}

#[derive(Debug)]
pub(super) struct Segment {
    exchanges: Vec<Exchange>,
    /// In their order, so that those of a term stand together.
    postings: Vec<Posting>,
    /// Words of all exchanges.
    words: usize,
}

impl Segment {
    /// The most exchanges of a segment.
    pub(super) const MOST: usize = 512;

    /// Of exchanges in order of time, at most [`Self::MOST`].
    pub(super) fn new(entries: &[RecallEntry<'_>]) -> Self {
        let mut segment = Self {
            exchanges: Vec::new(),
            postings: Vec::new(),
            words: 0,
        };
        segment.add(entries);
        segment.exchanges.shrink_to_fit();
        segment.postings.shrink_to_fit();
        segment
    }

    /// Adds exchanges that are newer than the others, oldest first.
    pub(super) fn add(&mut self, entries: &[RecallEntry<'_>]) {
        for entry in entries {
            self.put(entry);
        }
        // Fast where most is sorted already.
        self.postings.sort();
    }

    fn put(&mut self, entry: &RecallEntry<'_>) {
        let Ok(place) = u16::try_from(self.exchanges.len()) else {
            return;
        };
        let mut terms: Vec<u32> = Vec::new();
        for text in entry.texts.iter().chain([&entry.author]) {
            stem::each_term(text, TEXT, |term| terms.push(term));
        }
        let words = terms.iter().fold(0, |hash: u64, term| {
            (hash ^ u64::from(*term)).wrapping_mul(0x0100_0000_01b3)
        });
        terms.extend(stem::month(entry.at));
        let length = u16::try_from(terms.len()).unwrap_or(u16::MAX);
        self.exchanges.push(Exchange {
            turn: entry.turn,
            at: entry.at,
            words,
            author: stem::first_term(entry.author),
            length,
        });
        self.words += usize::from(length);
        terms.sort_unstable();
        let of_term = terms.chunk_by(|one, other| one == other);
        self.postings.extend(of_term.map(|same| Posting {
            term: same[0],
            exchange: place,
            times: u16::try_from(same.len()).unwrap_or(u16::MAX),
        }));
    }

    pub(super) fn remove(&mut self, turn: TurnId) {
        while let Some(at) = self.exchanges.iter().position(|one| one.turn == turn) {
            self.words -= usize::from(self.exchanges.remove(at).length);
            self.postings.retain_mut(|posting| {
                let place = usize::from(posting.exchange);
                posting.exchange -= u16::from(place > at);
                place != at
            });
        }
    }

    /// The exchanges with a term.
    pub(super) fn with(&self, term: u32) -> &[Posting] {
        let first = self.postings.partition_point(|one| one.term < term);
        let of_term = &self.postings[first..];
        // Most terms have one or two.
        let is_same = |one: &&Posting| one.term == term;
        &of_term[..of_term.iter().take_while(is_same).count()]
    }

    /// The terms of an exchange.
    pub(super) fn terms_of(&self, place: usize) -> impl Iterator<Item = u32> {
        let postings = self.postings.iter();
        let of_exchange = postings.filter(move |one| usize::from(one.exchange) == place);
        of_exchange.map(|one| one.term)
    }

    pub(super) fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    pub(super) const fn words(&self) -> usize {
        self.words
    }

    pub(super) const fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// How many more exchanges it has room for.
    pub(super) const fn room(&self) -> usize {
        Self::MOST.saturating_sub(self.exchanges.len())
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.exchanges.capacity() * size_of::<Exchange>()
            + self.postings.capacity() * size_of::<Posting>()
    }
}
