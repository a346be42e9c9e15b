//! Which of a channel's last messages belong to the conversation that its newest one is in. Pure.
//!
//! Every message picks one earlier message that it answers, or begins something new: reply
//! references are certain, the rest is judged by who names whom, who speaks after whom, and
//! rare words that both contain ([`features`]). From the picks follows how surely two messages
//! share a conversation (`answers`), and from that what is chosen ([`choose`]).
//! `docs/conversation.md` explains the method; [`weights`] are learnt by `cargo bench -- learn`.

mod answers;
pub mod choose;
pub mod features;
pub mod group;
mod names;
mod overlap;
pub mod weights;

#[cfg(test)]
mod tests;

use crate::model::{Speaker, Tie, UnixMillis, UserId};

pub use names::naming;

use answers::Answers;
use features::{BEGIN, BELONG, GLANCE, PAIR, Window};
use weights::Weights;

/// The most messages that are looked at, the newest one included: CPU is bounded by it.
pub const MOST_MESSAGES: usize = 201;

/// What was said longer ago than this belongs by a reply, a name or rare words alone: the chats
/// that the weights were learnt from know no such pauses.
const LONG_AGO_MS: i64 = 12 * 60 * 60 * 1_000;

/// A message, as far as its conversation is judged by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance<'a> {
    /// Who wrote it.
    pub speaker: Speaker<'a>,
    /// The name that people see, by which others may address the speaker: `ann: hello`.
    pub name: &'a str,
    /// When it was posted.
    pub at: UnixMillis,
    /// What it says, as typed.
    pub text: &'a str,
    /// Whom it mentions.
    pub mentions: Vec<UserId>,
    /// What it replies to.
    pub reply: Reply,
}

/// What a message says itself about what it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Unknown,
    /// It replies to the message with this index.
    To(usize),
    /// It replies to a message that is not among those given.
    Elsewhere,
}

/// How surely one message belongs to the newest one's conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// From 0 to 1.
    pub belongs: f32,
    /// Why it would belong.
    pub tie: Tie,
}

/// Judges all messages but the last by whether they belong to the conversation of the last.
/// Oldest first, as they are given; of more than [`MOST_MESSAGES`] the oldest belong to nothing.
/// The same messages give the same verdicts.
pub fn judge(utterances: &[Utterance<'_>]) -> Vec<Verdict> {
    let weights = &weights::LEARNT;
    let passed = utterances.len().saturating_sub(MOST_MESSAGES);
    let window = Window::new(&utterances[passed..], passed);
    let answers = Answers::new(&window, weights);
    let unseen = Verdict {
        belongs: 0.0,
        tie: Tie::Answers,
    };
    let mut verdicts = vec![unseen; passed];
    let now = utterances.last().map_or(UnixMillis(0), |newest| newest.at);
    let judged = window.belong(&answers).into_iter().enumerate();
    verdicts.extend(judged.map(|(index, features)| {
        let tie = match answers.tie(index) {
            Some(tie @ (Tie::Reply | Tie::Named)) => tie,
            _ if window.is_on_topic(index) => Tie::SameTopic,
            tie => tie.unwrap_or(Tie::Answers),
        };
        let belongs = if is_too_long_ago(tie, utterances[passed + index].at, now) {
            0.0
        } else {
            belongs(&features, weights)
        };
        Verdict { belongs, tie }
    }));
    verdicts
}

/// Whether what was said then is older than may belong to a question asked now for no better reason.
pub fn is_too_long_ago(tie: Tie, then: UnixMillis, now: UnixMillis) -> bool {
    tie == Tie::Answers && now.since(then) > LONG_AGO_MS
}

/// What weights are learnt from: the features of the newest message.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// With each of the up to [`REACH`](features::REACH) messages before it, nearest first.
    pub glances: Vec<[f32; GLANCE]>,
    /// With those of them that are likely without the net: distance, score and features.
    pub likely: Vec<(usize, f32, [f32; PAIR])>,
    /// Score and features of the message as one that begins something new.
    pub begin: (f32, [f32; BEGIN]),
    /// The indexes of the messages that it may answer, with how probably it does.
    pub picks: Vec<(usize, f32)>,
    /// With each message before it, oldest first.
    pub belong: Vec<[f32; BELONG]>,
}

/// The features of the newest of at most [`MOST_MESSAGES`] messages, by the weights so far;
/// `None` if there are more or none.
pub fn sample(utterances: &[Utterance<'_>], weights: &Weights) -> Option<Sample> {
    let newest = utterances.len().checked_sub(1)?;
    if utterances.len() > MOST_MESSAGES {
        return None;
    }
    let window = Window::new(utterances, 0);
    let answers = Answers::new(&window, weights);
    let likely = answers.likely(&window, newest, weights);
    Some(Sample {
        glances: window.pairs(newest, &answers),
        likely: likely.pairs,
        begin: likely.begin,
        picks: answers.picks(newest).collect(),
        belong: window.belong(&answers),
    })
}

/// The probability that these features stand for.
fn belongs(features: &[f32; BELONG], weights: &Weights) -> f32 {
    let sum: f32 = dot(features, &weights.belong);
    1.0 / (1.0 + (-sum).exp())
}

/// The sum of the products, in four sums that do not wait for each other.
fn dot<const N: usize>(left: &[f32; N], right: &[f32; N]) -> f32 {
    let mut sums = [0.0; 4];
    let (left, left_over) = left.as_chunks::<4>();
    let (right, right_over) = right.as_chunks::<4>();
    for (left, right) in left.iter().zip(right) {
        for (sum, (left, right)) in sums.iter_mut().zip(left.iter().zip(right)) {
            *sum += left * right;
        }
    }
    let rest = left_over.iter().zip(right_over);
    let rest: f32 = rest.map(|(left, right)| left * right).sum();
    sums.iter().sum::<f32>() + rest
}
