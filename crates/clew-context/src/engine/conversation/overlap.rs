//! How many rare words two messages share, in any script.

use crate::engine::words::{WordLimits, for_each_word, hash};

use super::features::{REACH, number};

/// What of a message is looked at: a flood of words counts no more than this.
const LIMITS: WordLimits = WordLimits {
    chars: 600,
    words: 60,
};
/// A word that more than this share of the messages contain says nothing.
const COMMON: usize = 4;

/// Of fewer messages than this nothing can be said to be common.
const FEW: usize = 40;

/// For each message and each of the [`REACH`] before it, nearest first: the sum over shared
/// words of the logarithm of how rare the word is.
pub(super) struct Overlaps {
    sums: Vec<[f32; REACH]>,
    /// The same of the newest message with each, oldest first, however far back.
    newest: Vec<f32>,
    /// How many different words each message has.
    pub(super) words: Vec<u16>,
}

impl Overlaps {
    pub(super) fn new<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Self {
        let count = texts.len();
        // Sorted, the places of each word stand together.
        let mut places: Vec<(u64, usize)> = Vec::with_capacity(count * 16);
        for (index, text) in texts.enumerate() {
            for_each_word(text, LIMITS, |word| places.push((hash(word), index)));
        }
        places.sort_unstable();
        places.dedup();
        let mut sums = vec![[0.0; REACH]; count];
        let mut newest = vec![0.0; count];
        let mut words = vec![0; count];
        for word in places.chunk_by(|(one, _), (other, _)| one == other) {
            for (_, index) in word {
                words[*index] += 1;
            }
            let is_common = word.len() * COMMON > count.max(FEW);
            if word.len() < 2 || is_common {
                continue;
            }
            let rare = (number(count + 1) / number(word.len())).ln();
            if word.last().is_some_and(|(_, last)| last + 1 == count) {
                for (_, index) in word {
                    newest[*index] += rare;
                }
            }
            for (at, (_, later)) in word.iter().enumerate() {
                let near = word[..at].iter().rev();
                let near = near.map(|(_, earlier)| later - earlier - 1);
                for distance in near.take_while(|distance| *distance < REACH) {
                    sums[*later][distance] += rare;
                }
            }
        }
        Self {
            sums,
            newest,
            words,
        }
    }

    /// Of the newest message and another.
    pub(super) fn with_newest(&self, message: usize) -> f32 {
        self.newest[message]
    }

    /// Of a message and the one `distance + 1` before it; 0 beyond [`REACH`].
    pub(super) fn at(&self, message: usize, distance: usize) -> f32 {
        self.sums[message].get(distance).copied().unwrap_or(0.0)
    }
}
