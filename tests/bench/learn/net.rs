//! Learns the net that is added to the scores of the likeliest picks: steps after Adam (Kingma
//! and Ba, 2015) on batches of messages, against the softmax over the candidates of each.

#![expect(
    clippy::cast_possible_truncation,
    reason = "sums are wider than the weights that come of them"
)]

use clew_context::engine::conversation::features::{PAIR, PICK};
use clew_context::engine::conversation::weights::{Net, UNITS};

use super::super::quality::each;
use super::{Picked, rounded};

const EPOCHS: usize = 40;
/// Messages of a step, and of a part that one thread sums up.
const BATCH: usize = 512;
const PART: usize = 128;
/// How far the first step goes; the last one goes nowhere.
const RATE: f64 = 4e-3;
/// How much weights shrink.
const DECAY: f32 = 1e-3;
const SEED: u64 = 1;

/// All numbers of a net: for each feature its units, then their bias, then their outputs.
const NUMBERS: usize = PICK * UNITS + 2 * UNITS;
const BIAS: usize = PICK * UNITS;
const OUTPUTS: usize = BIAS + UNITS;

/// The candidates of one message that are likely without the net.
struct Choice {
    /// The score so far, the features, and whether it is right.
    candidates: Vec<(f32, [f32; PICK], bool)>,
}

/// Pseudo-random numbers, the same at every run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From -1 to 1.
    fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    }
}

/// The net, and the mean log likelihood of the right picks by it.
pub(super) fn fit(samples: &[Picked]) -> (Net, f64) {
    let mut choices: Vec<Choice> = each(samples, choice).into_iter().flatten().collect();
    let (mean, spread) = normalise(&mut choices);
    let mut random = Random(SEED);
    let mut net: Vec<f32> = (0..NUMBERS).map(|_| random.number() / 4.0).collect();
    net[BIAS..OUTPUTS].fill(0.0);
    let (mut first, mut second) = (vec![0.0_f32; NUMBERS], vec![0.0_f32; NUMBERS]);
    let steps = EPOCHS * choices.len().div_ceil(BATCH);
    let mut step = 0;
    let mut likelihood = 0.0;
    for _ in 0..EPOCHS {
        for last in (1..choices.len()).rev() {
            let other = random.next() % (last as u64 + 1);
            choices.swap(last, usize::try_from(other).unwrap());
        }
        likelihood = 0.0;
        for batch in choices.chunks(BATCH) {
            let parts: Vec<&[Choice]> = batch.chunks(PART).collect();
            let sums = each(&parts, |part| slope(part, &net));
            step += 1;
            let rate = RATE * (1.0 - f64::from(step) / steps as f64);
            let scale = [0.9_f64, 0.999].map(|kept| (1.0 / (1.0 - kept.powi(step))) as f32);
            for at in 0..NUMBERS {
                let sum: f32 = sums.iter().map(|(slope, _)| slope[at]).sum();
                let slope = sum / batch.len() as f32 + DECAY * net[at];
                first[at] = 0.9 * first[at] + 0.1 * slope;
                second[at] = 0.999 * second[at] + 0.001 * slope * slope;
                net[at] -=
                    rate as f32 * first[at] * scale[0] / ((second[at] * scale[1]).sqrt() + 1e-8);
            }
            likelihood += sums.iter().map(|(_, part)| part).sum::<f64>();
        }
    }
    let learnt = unnormalised(&net, &mean, &spread);
    (learnt, likelihood / choices.len() as f64)
}

/// Nothing where none of the right ones is likely.
fn choice(Picked { sample, right }: &Picked) -> Option<Choice> {
    let mut candidates: Vec<(f32, [f32; PICK], bool)> = Vec::new();
    for (distance, score, pair) in &sample.likely {
        let mut features = [0.0; PICK];
        features[..PAIR].copy_from_slice(pair);
        candidates.push((*score, features, right.contains(distance)));
    }
    let mut features = [0.0; PICK];
    features[PAIR..].copy_from_slice(&sample.begin.1);
    candidates.push((sample.begin.0, features, right.is_empty()));
    let is_any_right = candidates.iter().any(|(.., right)| *right);
    is_any_right.then_some(Choice { candidates })
}

/// Makes the mean of each feature 0 and its spread 1; what they were.
fn normalise(choices: &mut [Choice]) -> ([f32; PICK], [f32; PICK]) {
    let (mut sums, mut squares, mut count) = ([0.0_f64; PICK], [0.0_f64; PICK], 0.0);
    for (_, features, _) in choices.iter().flat_map(|choice| &choice.candidates) {
        for (at, feature) in features.iter().enumerate() {
            sums[at] += f64::from(*feature);
            squares[at] += f64::from(*feature).powi(2);
        }
        count += 1.0;
    }
    let mean = sums.map(|sum| (sum / count) as f32);
    let mut spread = [1.0; PICK];
    for at in 0..PICK {
        let variance = squares[at] / count - f64::from(mean[at]).powi(2);
        spread[at] = variance.max(0.0).sqrt() as f32 + 1e-3;
    }
    let candidates = choices.iter_mut().flat_map(|choice| &mut choice.candidates);
    for (_, features, _) in candidates {
        for at in 0..PICK {
            features[at] = (features[at] - mean[at]) / spread[at];
        }
    }
    (mean, spread)
}

/// The same net for features as they are.
fn unnormalised(net: &[f32], mean: &[f32; PICK], spread: &[f32; PICK]) -> Net {
    let mut bias: [f64; UNITS] = std::array::from_fn(|unit| f64::from(net[BIAS + unit]));
    let mut inputs = [0.0; PICK * UNITS];
    for (at, row) in inputs.chunks_mut(UNITS).enumerate() {
        for (unit, input) in row.iter_mut().enumerate() {
            *input = rounded(f64::from(net[at * UNITS + unit] / spread[at]));
            bias[unit] -= f64::from(*input * mean[at]);
        }
    }
    Net {
        inputs,
        bias: bias.map(rounded),
        outputs: std::array::from_fn(|unit| rounded(f64::from(net[OUTPUTS + unit]))),
    }
}

/// The slope of minus the log likelihood, and the log likelihood.
fn slope(choices: &[Choice], net: &[f32]) -> (Vec<f32>, f64) {
    let mut slope = vec![0.0; NUMBERS];
    let mut likelihood = 0.0;
    for Choice { candidates } in choices {
        let units: Vec<[f32; UNITS]> = candidates
            .iter()
            .map(|(_, features, _)| units(features, net))
            .collect();
        let scores = candidates.iter().zip(&units).map(|((score, ..), units)| {
            let outputs = units.iter().zip(&net[OUTPUTS..]);
            score + outputs.map(|(unit, output)| unit * output).sum::<f32>()
        });
        let scores: Vec<f32> = scores.collect();
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let odds: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
        let all: f32 = odds.iter().sum();
        let right = candidates
            .iter()
            .zip(&odds)
            .filter(|((.., right), _)| *right);
        let right: f32 = right.map(|(_, odds)| odds).sum::<f32>().max(1e-30);
        likelihood += f64::from(right / all).ln();
        for (((_, features, is_right), odds), units) in candidates.iter().zip(&odds).zip(&units) {
            let wanted = if *is_right { odds / right } else { 0.0 };
            let by = odds / all - wanted;
            let mut by_unit = [0.0; UNITS];
            for (unit, value) in units.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                slope[OUTPUTS + unit] += by * value;
                by_unit[unit] = by * net[OUTPUTS + unit];
                slope[BIAS + unit] += by_unit[unit];
            }
            for (feature, row) in features.iter().zip(slope.chunks_exact_mut(UNITS)) {
                for (sum, by) in row.iter_mut().zip(by_unit) {
                    *sum += by * feature;
                }
            }
        }
    }
    (slope, likelihood)
}

/// What the units make of these features, 0 or more.
fn units(features: &[f32; PICK], net: &[f32]) -> [f32; UNITS] {
    let mut units: [f32; UNITS] = std::array::from_fn(|unit| net[BIAS + unit]);
    for (feature, weights) in features.iter().zip(net.chunks_exact(UNITS)) {
        for (unit, weight) in units.iter_mut().zip(weights) {
            *unit += feature * weight;
        }
    }
    units.map(|unit| unit.max(0.0))
}
