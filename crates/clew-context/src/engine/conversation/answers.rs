//! Which earlier message each message answers, and how surely two messages share a
//! conversation.

use super::features::{BEGIN, NAMING, PAIR, RARE_WORDS, TOPICAL, Window, number};
use super::weights::{UNLIKELY, Weights};
use super::{Reply, dot};
use crate::model::Tie;

/// The odds are raised to this power: the picks are surer than the learnt probabilities say,
/// which found more in chats that were kept aside.
const SHARPNESS: f32 = 1.5;
/// No beginning is that sure: so much of its chance, divided by how many messages were said in the
/// [`RECENT_MINUTES`] before it, goes to the last of them.
const DOUBT: f32 = 0.02;
/// After a longer silence, a beginning is as sure as the learnt probabilities say.
const RECENT_MINUTES: usize = 10;
/// A less likely pick is left out.
const LEAST: f32 = 1e-3;

/// The picks of all messages, and the conversations that follow from them.
pub(super) struct Answers {
    count: usize,
    /// How surely two messages share a conversation, by `one * count + other`.
    shares: Vec<f32>,
    /// What each message answers.
    picks: Vec<Vec<Pick>>,
    /// How many answer each message.
    answered: Vec<f32>,
}

/// One message that another may answer.
struct Pick {
    earlier: usize,
    probability: f32,
    tie: Tie,
}

/// What a message likely answers: distance, score before the net and features.
pub(super) struct Likely {
    pub(super) pairs: Vec<(usize, f32, [f32; PAIR])>,
    /// That it begins something new: score and features.
    pub(super) begin: (f32, [f32; BEGIN]),
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
            answered: vec![0.0; count],
        };
        for message in 0..count {
            let picks = answers.picked(window, message, weights);
            answers.join(message, &picks);
            for pick in &picks {
                answers.answered[pick.earlier] += pick.probability;
            }
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

    /// How many answer a message.
    pub(super) fn answered(&self, message: usize) -> f32 {
        self.answered[message]
    }

    /// How probably one message answers the other.
    pub(super) fn pick(&self, one: usize, other: usize) -> f32 {
        let mut picks = self.picks(one);
        picks
            .find(|(earlier, _)| *earlier == other)
            .map_or(0.0, |(_, share)| share)
    }

    /// What a message may answer, with how probably it does.
    pub(super) fn picks(&self, message: usize) -> impl Iterator<Item = (usize, f32)> {
        let picks = self.picks[message].iter();
        picks.map(|pick| (pick.earlier, pick.probability))
    }

    fn picked(&self, window: &Window, message: usize, weights: &Weights) -> Vec<Pick> {
        match window.reply(message) {
            Reply::To(earlier) => vec![Pick {
                earlier,
                probability: 1.0,
                tie: Tie::Reply,
            }],
            Reply::Elsewhere => Vec::new(),
            Reply::Unknown if window.is_feed(message) => Vec::new(),
            Reply::Unknown => self.judged(window, message, weights),
        }
    }

    /// What is likely before the net, which adds to the scores.
    pub(super) fn likely(&self, window: &Window, message: usize, weights: &Weights) -> Likely {
        let features = window.begin(message);
        let begin = (dot(&features, &weights.begin), features);
        let glances = window.pairs(message, self);
        let score = |(distance, glance)| {
            if window.is_feed(message - 1 - distance) {
                f32::NEG_INFINITY
            } else {
                dot(glance, &weights.pair)
            }
        };
        let scores: Vec<f32> = glances.iter().enumerate().map(score).collect();
        let least = scores.iter().copied().fold(begin.0, f32::max) - UNLIKELY;
        let likely = scores.into_iter().enumerate();
        let likely = likely.filter(|(_, score)| *score >= least);
        let full = |(distance, score)| {
            let pair = window.full(message, distance, &glances[distance], self);
            (distance, score, pair)
        };
        Likely {
            pairs: likely.map(full).collect(),
            begin,
        }
    }

    /// What a message that does not say so itself may answer.
    fn judged(&self, window: &Window, message: usize, weights: &Weights) -> Vec<Pick> {
        let Likely { pairs, begin } = self.likely(window, message, weights);
        let begin = begin.0 + weights.net.score(PAIR, &begin.1);
        let net = |(_, score, pair): &(usize, f32, [f32; PAIR])| score + weights.net.score(0, pair);
        let scores: Vec<f32> = pairs.iter().map(net).collect();
        let most = scores.iter().copied().fold(begin, f32::max);
        let odds = |score: f32| (SHARPNESS * (score - most)).exp();
        let of_pairs: Vec<f32> = scores.into_iter().map(odds).collect();
        let sum = odds(begin) + of_pairs.iter().sum::<f32>();
        let picks = pairs
            .iter()
            .zip(of_pairs)
            .map(|((distance, _, pair), odds)| Pick {
                earlier: message - 1 - distance,
                probability: odds / sum,
                tie: tie(pair),
            });
        let mut picks = picks.filter(|pick| pick.probability >= LEAST).collect();
        doubt(window, message, &mut picks);
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

/// Moves a little of the chance that a message begins something new to the one before it, the
/// less the more was said lately: else one wrong beginning hides all before it from all after it.
fn doubt(window: &Window, message: usize, picks: &mut Vec<Pick>) {
    let recent = window.recent(message, RECENT_MINUTES);
    let Some(earlier) = (message - recent..message)
        .rev()
        .find(|earlier| !window.is_feed(*earlier))
    else {
        return;
    };
    let begins = 1.0 - picks.iter().map(|pick| pick.probability).sum::<f32>();
    let probability = begins * DOUBT / number(recent);
    if let Some(pick) = picks.iter_mut().find(|pick| pick.earlier == earlier) {
        pick.probability += probability;
    } else if probability >= LEAST {
        picks.push(Pick {
            earlier,
            probability,
            tie: Tie::Answers,
        });
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
