//! Which earlier message each message answers, and how surely two messages share a
//! conversation.

use super::features::{NAMING, PAIR, RARE_WORDS, TOPICAL, Window};
use super::weights::{UNLIKELY, Weights};
use super::{Reply, dot};
use crate::model::Tie;

/// The odds are raised to this power: the picks are surer than the learnt probabilities say,
/// which found more in chats that were kept aside.
const SHARPNESS: f32 = 1.5;
/// A less likely pick is left out.
const LEAST: f32 = 1e-3;
/// The logarithm of odds, against the likeliest, that count for nothing: of a hundred together
/// less than [`LEAST`].
const NOTHING: f32 = -12.0;

/// The picks of all messages, and the conversations that follow from them.
pub(super) struct Answers {
    count: usize,
    /// How surely two messages share a conversation, by `one * count + other`.
    shares: Vec<f32>,
    /// What each message answers.
    picks: Vec<Vec<Pick>>,
}

/// One message that another may answer.
struct Pick {
    earlier: usize,
    probability: f32,
    tie: Tie,
}

impl Answers {
    /// Each message picks independently of the others, in the order of time: the chance that
    /// two share a conversation is that of the earlier ones that the later one may answer.
    pub(super) fn new(window: &Window, weights: &Weights) -> Self {
        let count = window.len();
        let mut answers = Self {
            count,
            shares: vec![0.0; count * count],
            picks: Vec::with_capacity(count),
        };
        for message in 0..count {
            let picks = answers.answered(window, message, weights);
            answers.join(message, &picks);
            answers.picks.push(picks);
        }
        answers
    }

    /// How surely two messages share a conversation, from 0 to 1.
    pub(super) fn share(&self, one: usize, other: usize) -> f32 {
        self.shares[one * self.count + other]
    }

    /// How surely a message shares a conversation with each, oldest first.
    pub(super) fn shares(&self, one: usize) -> &[f32] {
        &self.shares[one * self.count..][..self.count]
    }

    /// How probably a message begins something new.
    pub(super) fn begins(&self, message: usize) -> f32 {
        1.0 - self.picks(message).map(|(_, share)| share).sum::<f32>()
    }

    /// What a message may answer, with how probably it does.
    pub(super) fn picks(&self, message: usize) -> impl Iterator<Item = (usize, f32)> {
        let picks = self.picks[message].iter();
        picks.map(|pick| (pick.earlier, pick.probability))
    }

    fn answered(&self, window: &Window, message: usize, weights: &Weights) -> Vec<Pick> {
        match window.reply(message) {
            Reply::To(earlier) => vec![Pick {
                earlier,
                probability: 1.0,
                tie: Tie::Reply,
            }],
            Reply::Elsewhere => Vec::new(),
            Reply::Unknown if window.is_feed(message) => Vec::new(),
            Reply::Unknown => self.likely(window, message, weights),
        }
    }

    fn likely(&self, window: &Window, message: usize, weights: &Weights) -> Vec<Pick> {
        let pairs = window.pairs(message, self);
        let begins = window.begin(message);
        let mut begin = dot(&begins, &weights.begin);
        let score = |(distance, pair)| {
            if window.is_feed(message - 1 - distance) {
                f32::NEG_INFINITY
            } else {
                dot(pair, &weights.pair)
            }
        };
        let mut scores: Vec<f32> = pairs.iter().enumerate().map(score).collect();
        let likely = scores.iter().copied().fold(begin, f32::max) - UNLIKELY;
        begin += weights.net.score(PAIR, &begins);
        for (score, pair) in scores.iter_mut().zip(&pairs) {
            *score = if *score < likely {
                f32::NEG_INFINITY
            } else {
                *score + weights.net.score(0, pair)
            };
        }
        let most = scores.iter().copied().fold(begin, f32::max);
        let odds = |score: f32| match SHARPNESS * (score - most) {
            exponent if exponent < NOTHING => 0.0,
            exponent => exponent.exp(),
        };
        let of_pairs: Vec<f32> = scores.into_iter().map(odds).collect();
        let sum = odds(begin) + of_pairs.iter().sum::<f32>();
        let mut picks = Vec::new();
        for (distance, (pair, odds)) in pairs.iter().zip(of_pairs).enumerate() {
            let probability = odds / sum;
            if probability >= LEAST {
                picks.push(Pick {
                    earlier: message - 1 - distance,
                    probability,
                    tie: tie(pair),
                });
            }
        }
        picks
    }

    fn join(&mut self, message: usize, picks: &[Pick]) {
        let (known, row) = self.shares.split_at_mut(message * self.count);
        let row = &mut row[..message];
        for pick in picks {
            let theirs = &known[pick.earlier * self.count..][..message];
            for (share, theirs) in row.iter_mut().zip(theirs) {
                *share += pick.probability * theirs;
            }
        }
        for earlier in 0..message {
            self.shares[earlier * self.count + message] =
                self.shares[message * self.count + earlier];
        }
        self.shares[message * self.count + message] = 1.0;
    }

    /// How the message hangs together with the next one on the surest way from the newest
    /// message to it; `None` if there is no way.
    pub(super) fn tie(&self, message: usize) -> Option<Tie> {
        let mut from = self.count - 1;
        // Each step goes from the later of both to what it answers, until the message is one end.
        while from != message {
            let (later, earlier) = (from.max(message), from.min(message));
            let sure = |pick: &Pick| pick.probability * self.share(pick.earlier, earlier);
            let surest = |one: &&Pick, other: &&Pick| sure(one).total_cmp(&sure(other));
            let pick = self.picks[later].iter().max_by(surest)?;
            if sure(pick) <= 0.0 {
                return None;
            }
            if later == message || pick.earlier == message {
                return Some(pick.tie);
            }
            from = pick.earlier;
        }
        None
    }
}

/// What these two have to do with each other, by their features.
fn tie(pair: &[f32; PAIR]) -> Tie {
    let named = NAMING.iter().any(|feature| pair[*feature] > 0.0);
    let topical = pair[RARE_WORDS] > TOPICAL;
    match (named, topical) {
        (true, _) => Tie::Named,
        (false, true) => Tie::SameTopic,
        (false, false) => Tie::Answers,
    }
}
