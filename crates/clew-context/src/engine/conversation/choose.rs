//! Chooses of judged messages those that are shown, within a number of characters.

use std::collections::HashMap;

use super::Verdict;
use super::features::number;
use crate::model::Speaker;

/// A longer message is taken a little later than a shorter one that belongs as surely.
const COST_POWER: f32 = 0.4;
/// How much it counts that what is taken belongs, against that all that belongs is taken.
const PRECISION: f32 = 0.62;
/// What belongs less surely is not taken.
const LEAST: f32 = 0.05;
/// Where nothing belongs more surely, nothing is taken: the newest begins something new.
const FLOOR: f32 = 0.45;
/// Of so many of the last messages it is asked how surely all talk together. The surer, the less
/// precision counts and the more how near a message is: there judging tells little apart.
const LAST: usize = 5;
/// Of the characters, those of one person other than the asker, or of all other names in one
/// app: a flood does not push out everybody else.
const ONE_SPEAKER: f32 = 0.5;

/// One message that may be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate<'a> {
    /// How surely it belongs.
    pub verdict: Verdict,
    /// Unicode scalars that it takes.
    pub chars: usize,
    /// Who wrote it.
    pub speaker: Speaker<'a>,
}

/// How choosing weighs up: [`Rule::default`], or [`Rule::quiet`] where little is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// How much it counts that what is taken belongs, unless all talk together; 0 fills the room.
    pub precision: f32,
    /// What belongs less surely is not taken.
    pub least: f32,
    /// If the surest belongs less surely, nothing is taken.
    pub floor: f32,
    /// Which part of the characters one person other than the asker, or all other names in
    /// one app, may take with more than one message.
    pub one_speaker: f32,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            precision: PRECISION,
            least: LEAST,
            floor: FLOOR,
            one_speaker: ONE_SPEAKER,
        }
    }
}

impl Rule {
    /// Where little is said there is room for what belongs less surely.
    pub fn quiet() -> Self {
        Self {
            precision: 0.0,
            least: 0.01,
            floor: 0.15,
            ..Self::default()
        }
    }
}

/// The indexes of all, the surest first, of equals the newest.
pub fn ranked(verdicts: &[Verdict]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..verdicts.len()).rev().collect();
    order.sort_by(|one, other| verdicts[*other].belongs.total_cmp(&verdicts[*one].belongs));
    order
}

/// The indexes of those that would be chosen if there was room for all.
pub fn wanted(candidates: &[Candidate<'_>], asker: Speaker<'_>, rule: Rule) -> Vec<usize> {
    let rule = Rule {
        one_speaker: 1.0,
        ..rule
    };
    choose(candidates, asker, usize::MAX, rule)
}

/// Of candidates, oldest first, the indexes of those chosen, the surest first, in at most `room`
/// scalars.
pub fn choose(
    candidates: &[Candidate<'_>],
    asker: Speaker<'_>,
    room: usize,
    rule: Rule,
) -> Vec<usize> {
    let together = together(candidates);
    let worth = |index: &usize| {
        let candidate = &candidates[*index];
        let distance = number(candidates.len() - index).powf(together);
        candidate.verdict.belongs / (number(candidate.chars.max(1)).powf(COST_POWER) * distance)
    };
    let surest = candidates.iter().map(|one| one.verdict.belongs);
    if surest.fold(0.0, f32::max) < rule.floor {
        return Vec::new();
    }
    let mut order: Vec<(f32, usize)> = (0..candidates.len())
        .filter(|index| candidates[*index].verdict.belongs >= rule.least)
        .map(|index| (worth(&index), index))
        .collect();
    // Of equals the newest comes first.
    order.sort_by(|(one, at), (other, to)| other.total_cmp(one).then(to.cmp(at)));
    let most_of_one = number(room) * rule.one_speaker;
    let mut taken_by: HashMap<Speaker<'_>, usize> = HashMap::new();
    let (mut taken, mut left) = (Vec::new(), room);
    // What belongs, but for what one person may not take: a flood is not missed.
    let mut all = 0.0;
    for (_, index) in order {
        let candidate = &candidates[index];
        let theirs = if candidate.speaker == asker {
            &mut 0
        } else {
            let speaker = candidate.speaker.under_any_name();
            taken_by.entry(speaker).or_default()
        };
        if *theirs > 0 && number(*theirs + candidate.chars) > most_of_one {
            continue;
        }
        all += candidate.verdict.belongs;
        if candidate.chars > left {
            continue;
        }
        *theirs += candidate.chars;
        left -= candidate.chars;
        taken.push(index);
    }
    if rule.precision > 0.0 {
        let precision = rule.precision * (1.0 - together.powi(2));
        let (mut sum, mut best) = (0.0, (0.0, 0));
        for (count, index) in (1..).zip(&taken) {
            sum += candidates[*index].verdict.belongs;
            let value = sum / all + precision * sum / number(count);
            if value > best.0 {
                best = (value, count);
            }
        }
        taken.truncate(best.1);
    }
    taken
}

/// How surely the last messages belong together with what is asked, from 0 to 1.
fn together(candidates: &[Candidate<'_>]) -> f32 {
    let last = &candidates[candidates.len().saturating_sub(LAST)..];
    let sum: f32 = last.iter().map(|one| one.verdict.belongs).sum();
    (sum / number(last.len().max(1))).powi(2)
}
