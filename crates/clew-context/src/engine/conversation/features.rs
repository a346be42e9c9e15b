//! What two messages have to do with each other, as numbers.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::answers::Answers;
use super::overlap::Overlaps;
use super::{Reply, Utterance, names};
use crate::model::Speaker;

/// How many messages before it a message may answer.
pub const REACH: usize = 100;
/// Features of a message and one that it may answer by which the likely ones are found.
pub const GLANCE: usize = 28;
/// Features of a message and a likely one, those at a glance first; `tests/bench/learn/names.rs` names
/// them.
pub const PAIR: usize = 38;
/// Features of a message that may begin something new.
pub const BEGIN: usize = 10;
/// Features of what a message picks: of a pair, then of a beginning; the others are 0.
pub const PICK: usize = PAIR + BEGIN;
/// Features of the newest message and one that may belong to its conversation.
pub const BELONG: usize = 22;

/// The people whom one message can name; naming everybody is naming nobody.
const MOST_NAMES: usize = 8;
/// Of so many of the last messages it is counted how many people speak.
const CLIMATE: usize = 50;
/// Where fewer are known, one in so many of the others is taken for somebody else's: a few
/// messages say little of how many people speak.
const UNKNOWN_SPEAKERS: usize = 8;
/// Whoever posts at least so many messages, nine in ten with a link, is a feed.
const FEED: usize = 5;
/// Rare words above this tie two messages by themselves.
pub(super) const TOPICAL: f32 = 0.5;
/// A longer pause counts as one of this length: the weights were learnt where all have shorter ones.
const LONGEST_PAUSE_MS: i64 = 3 * 60 * 60 * 1_000;
/// Minutes since the author's last message, if none is known.
const LONG_SILENT: usize = 24 * 60;
/// More answers than this say nothing more.
const MOST_ANSWERS: f32 = 3.0;
/// The sum of rare words above which more change nothing.
const MOST_OVERLAP: f32 = 15.0;
/// Below and above this a probability counts as that much.
const SUREST: f32 = 1e-4;

/// Those features of a pair by which one names the other's author, or both name the same person.
pub(super) const NAMING: [usize; 5] = [5, 6, 12, 13, 15];
pub(super) const RARE_WORDS: usize = 3;

/// A number of messages or minutes, exact below 65,536.
pub(super) fn number(count: usize) -> f32 {
    f32::from(u16::try_from(count).unwrap_or(u16::MAX))
}

/// `ln(1 + n)` by `n`: of messages, and of minutes in a day.
static LOGARITHMS: LazyLock<Vec<f32>> =
    LazyLock::new(|| (0..1_500).map(|count| number(count + 1).ln()).collect());

/// The logarithm of one more than the count.
fn ln(count: usize) -> f32 {
    let known = LOGARITHMS.get(count).copied();
    known.unwrap_or_else(|| number(count + 1).ln())
}

/// How rare shared words are, by the sum of theirs: from 0 to 3.
fn rare(overlap: f32) -> f32 {
    overlap.min(MOST_OVERLAP) / 5.0
}

/// 1 or 0.
fn is(condition: bool) -> f32 {
    f32::from(u8::from(condition))
}

/// One message, with people as indexes.
#[derive(Debug)]
struct Said {
    author: usize,
    /// Since the first message.
    minutes: usize,
    /// Whom it names or replies to, the first one first.
    named: Vec<usize>,
    question: bool,
    /// Whether it begins by addressing somebody, perhaps a stranger.
    addresses: bool,
    reply: Reply,
    /// The author's message before it.
    before: Option<usize>,
    /// The latest message before it whose first name is its author.
    to_author: Option<usize>,
    /// The latest message of the person it names first.
    of_named: Option<usize>,
}

/// Messages with what is known of them before pairs are looked at.
pub(super) struct Window {
    said: Vec<Said>,
    overlaps: Overlaps,
    /// How many people write or are named.
    people: usize,
    /// How many people write; their numbers are the lowest.
    authors: usize,
    /// How often one author addressed the other, in either direction, by `one * authors +
    /// other`.
    affinity: Vec<u16>,
    /// Which authors are feeds: nobody talks with them.
    feeds: Vec<bool>,
}

impl Window {
    /// Of messages, oldest first, whose replies count `passed` messages more before them.
    pub(super) fn new(utterances: &[Utterance<'_>], passed: usize) -> Self {
        let mut people = People::default();
        let authors = utterances
            .iter()
            .map(|utterance| people.of(utterance.speaker));
        let authors: Vec<usize> = authors.collect();
        let names = names::named(utterances, &authors, people.0.len(), None);
        let (mut millis, mut latest) = (0, utterances.first().map(|utterance| utterance.at));
        let mut said: Vec<Said> = Vec::with_capacity(utterances.len());
        let mut last: HashMap<usize, usize> = HashMap::new();
        let mut last_to: HashMap<usize, usize> = HashMap::new();
        let writers = people.0.len();
        let mut affinity = vec![0; writers * writers];
        for (index, (utterance, names)) in utterances.iter().zip(names).enumerate() {
            let author = authors[index];
            let reply = match utterance.reply {
                Reply::To(earlier) if (passed..passed + index).contains(&earlier) => {
                    Reply::To(earlier - passed)
                }
                Reply::To(_) => Reply::Elsewhere,
                other => other,
            };
            let replied = match reply {
                Reply::To(earlier) => Some(said[earlier].author),
                Reply::Unknown | Reply::Elsewhere => None,
            };
            let named = people.named(utterance, author, replied, names);
            let pause = latest.map_or(0, |latest| utterance.at.since(latest));
            millis += pause.clamp(0, LONGEST_PAUSE_MS);
            latest = latest.max(Some(utterance.at));
            let addressed = named.first().copied();
            said.push(Said {
                author,
                minutes: usize::try_from(millis / 60_000).unwrap_or(0),
                question: utterance.text.contains(['?', '？', '؟']),
                addresses: names::addresses(utterance.text),
                reply,
                before: last.get(&author).copied(),
                to_author: last_to.get(&author).copied(),
                of_named: addressed.and_then(|named| last.get(&named).copied()),
                named,
            });
            last.insert(author, index);
            if let Some(other) = addressed {
                last_to.insert(other, index);
                if other < writers {
                    affinity[author * writers + other] += 1;
                    affinity[other * writers + author] += 1;
                }
            }
        }
        Self {
            feeds: feeds(utterances, &said, writers),
            said,
            people: people.0.len(),
            overlaps: Overlaps::new(utterances.iter().map(|utterance| utterance.text)),
            authors: writers,
            affinity,
        }
    }

    /// How many messages there are.
    pub(super) fn len(&self) -> usize {
        self.said.len()
    }

    /// What a message itself says about what it answers.
    pub(super) fn reply(&self, message: usize) -> Reply {
        self.said[message].reply
    }

    /// Whether a message is one of a feed, which answers nothing and is not answered.
    pub(super) fn is_feed(&self, message: usize) -> bool {
        self.feeds[self.said[message].author]
    }

    /// How many messages were said in so many minutes before a message.
    pub(super) fn recent(&self, message: usize, minutes: usize) -> usize {
        let since = self.said[message].minutes.saturating_sub(minutes);
        let before = self.said[..message].iter().rev();
        before.take_while(|said| said.minutes >= since).count()
    }

    /// The features of a message with each that it may answer, nearest first, at a glance.
    pub(super) fn pairs(&self, message: usize, answers: &Answers) -> Vec<[f32; GLANCE]> {
        let one = &self.said[message];
        let last_addressed = self.last_addressed(message);
        let none = vec![0.0; message];
        let shares = |with: Option<usize>| with.map_or(&none[..], |with| answers.shares(with));
        // What was said to the author before the author spoke is answered already.
        let to_author = one.to_author.filter(|to| Some(*to) > one.before);
        let [own, to_author, named] = [one.before, to_author, one.of_named].map(shares);
        // How many messages of each author were looked at.
        let mut seen = vec![0; self.authors];
        let mut pause = 0;
        let mut features = Vec::with_capacity(message.min(REACH));
        for distance in 0..message.min(REACH) {
            let earlier = message - 1 - distance;
            let [before, after] = [earlier, earlier + 1].map(|at| self.said[at].minutes);
            pause = pause.max(after.saturating_sub(before));
            let author = self.said[earlier].author;
            let mut pair = self.pair(message, distance, seen[one.author]);
            pair[8] = is(last_addressed[author] == Some(one.author));
            let (own, named) = (own[earlier], named[earlier]);
            pair[17] = own;
            pair[18] = to_author[earlier];
            pair[19] = named;
            pair[20] = own * named;
            pair[21] = if one.named.is_empty() { own } else { 0.0 };
            pair[26] = ln(pause);
            pair[27] = ln(seen[author]);
            seen[author] += 1;
            features.push(pair);
        }
        features
    }

    /// The features that need no answers; `own` of the messages between are the author's.
    fn pair(&self, message: usize, distance: usize, own: usize) -> [f32; GLANCE] {
        let earlier = message - 1 - distance;
        let (one, other) = (&self.said[message], &self.said[earlier]);
        let is_own = other.author == one.author;
        let addressed = other.named.first();
        let names = one.named.contains(&other.author);
        let names_addressed = addressed.is_some_and(|addressed| one.named.contains(addressed));
        let to_author = other.named.contains(&one.author);
        let minutes = one.minutes.saturating_sub(other.minutes);
        let mut pair = [0.0; GLANCE];
        pair[0] = ln(distance.saturating_sub(1));
        pair[1] = ln(minutes);
        pair[2] = ln(own);
        let overlap = self.overlaps.at(message, distance);
        pair[RARE_WORDS] = rare(overlap);
        pair[4] = is(one.before == Some(earlier));
        pair[5] = is(names);
        pair[6] = is(to_author && one.named.is_empty());
        pair[7] = is(!to_author && addressed.is_some());
        pair[9] = is(other.question);
        pair[10] = is(other.question && !one.question);
        pair[11] = is(distance == 0);
        pair[12] = is(names && one.of_named == Some(earlier));
        pair[13] = is(names_addressed && !is_own);
        pair[14] = is(to_author && own == 0);
        pair[15] = is(is_own && names_addressed);
        pair[16] = is(!one.named.is_empty() && !is_own && !names);
        let words = [earlier, message].map(|at| usize::from(self.overlaps.words[at]));
        pair[22] = ln(words[0]);
        if overlap > 0.0 {
            pair[23] = overlap / number(words[0] * words[1]).sqrt();
        }
        pair[24] = ln(self.affinity(one, other));
        pair[25] = is(is_own) * ln(minutes);
        pair
    }

    /// All features of a message with a likely one, by those at a glance.
    pub(super) fn full(
        &self,
        message: usize,
        distance: usize,
        glance: &[f32; GLANCE],
        answers: &Answers,
    ) -> [f32; PAIR] {
        let (nearest, earlier) = (message.saturating_sub(REACH), message - 1 - distance);
        let (one, other) = (&self.said[message], &self.said[earlier]);
        let shares = answers.shares(earlier);
        let (mut by_author, mut own) = (0.0, 0.0_f32);
        let mut before = one.before.filter(|before| *before >= nearest);
        while let Some(at) = before {
            own = own.max(shares[at]);
            by_author += answers.pick(at, earlier);
            before = self.said[at].before.filter(|before| *before >= nearest);
        }
        let by_other = |at: &usize| self.said[*at].author == other.author;
        let latest = (earlier..message).rev().find(by_other);
        let since: f32 = shares[earlier + 1..message].iter().sum();
        let mut pair = [0.0; PAIR];
        pair[..GLANCE].copy_from_slice(glance);
        pair[GLANCE..].copy_from_slice(&[
            ln(usize::from(self.overlaps.words[message])),
            is(one.addresses),
            is(one.question),
            answers.answered(earlier).min(MOST_ANSWERS),
            by_author.min(MOST_ANSWERS),
            answers.begins(earlier),
            shares[message - 1],
            latest.map_or(0.0, |latest| shares[latest]),
            since.ln_1p(),
            own,
        ]);
        pair
    }

    /// How often the authors of two messages addressed each other.
    fn affinity(&self, one: &Said, other: &Said) -> usize {
        usize::from(self.affinity[one.author * self.authors + other.author])
    }

    /// Whether the newest message shares rare words with this one.
    pub(super) fn is_on_topic(&self, message: usize) -> bool {
        rare(self.overlaps.with_newest(message)) > TOPICAL
    }

    /// Whom each person addressed last before this message.
    fn last_addressed(&self, message: usize) -> Vec<Option<usize>> {
        let mut last = vec![None; self.people];
        for said in self.said[..message]
            .iter()
            .filter(|said| !said.named.is_empty())
        {
            last[said.author] = said.named.first().copied();
        }
        last
    }

    /// The features of a message that may begin something new.
    pub(super) fn begin(&self, message: usize) -> [f32; BEGIN] {
        let one = &self.said[message];
        let since = one.before.map_or(200, |before| message - before);
        let minutes = |before: usize| one.minutes.saturating_sub(self.said[before].minutes);
        let overlaps = (0..message.min(REACH)).map(|distance| self.overlaps.at(message, distance));
        [
            1.0,
            number(since.min(200)).ln(),
            is(!one.named.is_empty()),
            is(one.question),
            is(one.before.is_none()),
            ln(usize::from(self.overlaps.words[message])),
            ln(one.before.map_or(LONG_SILENT, minutes)),
            is(one.to_author.is_some() && one.to_author > one.before),
            rare(overlaps.fold(0.0, f32::max)),
            ln(message.checked_sub(1).map_or(0, minutes)),
        ]
    }

    /// The features of the newest message with each before it, oldest first.
    pub(super) fn belong(&self, answers: &Answers) -> Vec<[f32; BELONG]> {
        let Some(newest) = self.said.len().checked_sub(1) else {
            return Vec::new();
        };
        let one = &self.said[newest];
        let shared = |with: usize| -> Vec<f32> {
            let with_each = (0..newest).map(|other| logit(answers.share(with, other)));
            with_each.collect()
        };
        let with = |other: Option<usize>| other.map_or(vec![0.0; newest], shared);
        let (own, named, to_author) = (with(one.before), with(one.of_named), with(one.to_author));
        let direct = shared(newest);
        let mut surest: Vec<f32> = (0..newest)
            .map(|other| answers.share(newest, other))
            .collect();
        surest.sort_unstable_by(|one, other| other.total_cmp(one));
        let top = if surest.len() < 3 {
            logit(0.0)
        } else {
            logit(surest[..3].iter().sum::<f32>() / 3.0)
        };
        let mut best: HashMap<usize, f32> = HashMap::new();
        for (other, logit) in self.said.iter().zip(&direct) {
            let best = best.entry(other.author).or_insert(*logit);
            *best = best.max(*logit);
        }
        let (crowd, naming) = self.climate();
        let features = |index: usize| {
            let other = &self.said[index];
            let is_own = is(other.author == one.author);
            [
                direct[index],
                own[index],
                named[index],
                to_author[index],
                ln(newest - 1 - index),
                is_own,
                is(one.named.contains(&other.author)),
                is(other.named.contains(&one.author)),
                ln(one.minutes.saturating_sub(other.minutes)),
                1.0,
                direct.get(index + 1).copied().unwrap_or(0.0),
                index.checked_sub(1).map_or(0.0, |before| direct[before]),
                top,
                best.get(&other.author).copied().unwrap_or(0.0),
                is(one.named.is_empty()),
                is_own * direct[index],
                ln(self.affinity(one, other)),
                crowd,
                crowd * ln(newest - 1 - index),
                naming,
                naming * ln(newest - 1 - index),
                rare(self.overlaps.with_newest(index)),
            ]
        };
        (0..newest).map(features).collect()
    }
}

impl Window {
    /// How many people speak (as a logarithm), and which share of the messages names
    /// somebody, both of the last [`CLIMATE`] messages: where few speak and nobody is named,
    /// there is one conversation.
    fn climate(&self) -> (f32, f32) {
        let last = &self.said[self.said.len().saturating_sub(CLIMATE)..];
        let speakers: HashSet<usize> = last.iter().map(|said| said.author).collect();
        let naming = last.iter().filter(|said| !said.named.is_empty()).count();
        let unknown = (CLIMATE - last.len()) / UNKNOWN_SPEAKERS;
        (
            ln(speakers.len() + unknown),
            number(naming) / number(last.len().max(1)),
        )
    }
}

/// Which authors post links and little else; not who wrote the newest message.
fn feeds(utterances: &[Utterance<'_>], said: &[Said], authors: usize) -> Vec<bool> {
    let mut counts = vec![(0, 0); authors];
    for (utterance, said) in utterances.iter().zip(said) {
        let (links, all) = &mut counts[said.author];
        *links += usize::from(utterance.text.contains("://"));
        *all += 1;
    }
    if let Some(newest) = said.last() {
        counts[newest.author] = (0, 0);
    }
    let is_feed = |(links, all): (usize, usize)| all >= FEED && links * 10 >= all * 9;
    counts.into_iter().map(is_feed).collect()
}

/// Numbers of people.
#[derive(Default)]
struct People<'a>(HashMap<Speaker<'a>, usize>);

impl<'a> People<'a> {
    fn of(&mut self, speaker: Speaker<'a>) -> usize {
        let next = self.0.len();
        *self.0.entry(speaker).or_insert(next)
    }

    /// Whom a message names: who it replies to, whose `names` its text has, and who is
    /// mentioned; not its author.
    fn named(
        &mut self,
        utterance: &Utterance<'_>,
        author: usize,
        replied: Option<usize>,
        names: Vec<usize>,
    ) -> Vec<usize> {
        let mut named: Vec<usize> = Vec::new();
        let mentions = utterance.mentions.iter().take(MOST_NAMES);
        let mentions: Vec<usize> = mentions
            .map(|mention| self.of(Speaker::User(*mention)))
            .collect();
        for person in replied.into_iter().chain(names).chain(mentions) {
            if person != author && !named.contains(&person) {
                named.push(person);
            }
        }
        named
    }
}

fn logit(probability: f32) -> f32 {
    let probability = probability.clamp(SUREST, 1.0 - SUREST);
    (probability / (1.0 - probability)).ln()
}
