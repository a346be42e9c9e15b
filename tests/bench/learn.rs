//! Learns the weights of `engine/conversation` from annotated chats and writes them:
//! `CLEW_CHATS=folder cargo bench -- learn`.

mod names;
mod net;

use std::fs;

use clew_context::engine::conversation::features::{BEGIN, BELONG, GLANCE, PICK, REACH};
use clew_context::engine::conversation::weights::{Net, UNITS, Weights};
use clew_context::engine::conversation::{Sample, sample};

use self::names::{BELONG_NAMES, PAIR_NAMES};
use super::chats::{self, Chat, WINDOW};
use super::quality::each;

/// Features at a glance, and of a beginning.
const FIRST: usize = GLANCE + BEGIN;
/// Features that hold what weights learnt before say; the first round has none.
const SHARED: std::ops::RangeInclusive<usize> = 17..=21;
/// Rounds after the first.
const ROUNDS: usize = 1;
/// Rounds of the net, each with what the picks before it say.
const NET_ROUNDS: usize = 3;
/// Of the annotated messages, every so manieth is learnt from: for the picks...
const PICK_STEP: usize = 4;
/// ...for the last round of the net, which is what counts...
const LAST_STEP: usize = 1;
/// ...and for what belongs.
const MEMBER_STEP: usize = 4;
/// Newton's steps at most.
const MOST_STEPS: usize = 10;
/// Less likely candidates do not bend the likelihood.
const LEAST: f64 = 1e-4;
/// Where the weights are written, from the workspace's root.
const FILE: &str = "crates/clew-context/src/engine/conversation/weights.rs";
/// The line of the file above its numbers.
const NUMBERS: &str = "pub const LEARNT: Weights = Weights {\n";

/// A query, and which of its candidates are right.
struct Picked {
    sample: Sample,
    /// The distances of the right ones; nothing for a beginning.
    right: Vec<usize>,
}

/// Learns and writes.
pub(crate) fn print() {
    println!("learn: the weights by which messages belong together");
    let Some(chats) = chats::load() else {
        return;
    };
    let texts: Vec<Chat> = chats.iter().map(Chat::without_mentions).collect();
    let texts: Vec<&Chat> = texts.iter().collect();
    let mut weights = Weights {
        pair: [0.0; GLANCE],
        begin: [0.0; BEGIN],
        net: Net {
            inputs: [0.0; PICK * UNITS],
            bias: [0.0; UNITS],
            outputs: [0.0; UNITS],
        },
        belong: [0.0; BELONG],
    };
    // At first the nearest ones are likely.
    weights.pair[0] = -2.0;
    for round in 0..=ROUNDS {
        let trim = if round == 0 { for_first } else { for_weights };
        let samples = all_picks(&texts, &weights, PICK_STEP, trim);
        let (learnt, likelihood) = fit_picks(&samples, &weights);
        weights = learnt;
        println!(
            "  round {round}: {} messages, log likelihood {likelihood:.4}",
            samples.len()
        );
    }
    let (alone, unlike) = (alone(&chats), unlike(&chats));
    let alone: Vec<&Chat> = alone.iter().collect();
    let unlike: Vec<&Chat> = unlike.iter().chain(alone.iter().copied()).collect();
    for round in 0..NET_ROUNDS {
        let (step, unlike_step) = if round + 1 == NET_ROUNDS {
            (LAST_STEP, PICK_STEP)
        } else {
            (PICK_STEP, 2 * PICK_STEP)
        };
        let mut samples = all_picks(&texts, &weights, step, for_net);
        samples.extend(all_picks(&unlike, &weights, unlike_step, for_net));
        let (learnt, likelihood) = net::fit(&samples);
        weights.net = learnt;
        println!(
            "  net {round}: {} messages, log likelihood {likelihood:.4}",
            samples.len()
        );
    }
    let samples = each(&texts, |chat| members(chat, &weights, MEMBER_STEP));
    let more = each(&alone, |chat| members(chat, &weights, 2 * MEMBER_STEP));
    let samples: Vec<Member> = samples.into_iter().chain(more).flatten().collect();
    let belong = fit_members(&samples);
    for (weight, learnt) in weights.belong.iter_mut().zip(belong) {
        *weight = rounded(learnt);
    }
    println!(
        "  {} pairs of messages that belong together or not",
        samples.len()
    );
    for (name, weight) in PAIR_NAMES.iter().zip(weights.pair) {
        println!("  {weight:+7.3}  {name}");
    }
    println!("  {:?}", weights.begin);
    for (name, weight) in BELONG_NAMES.iter().zip(weights.belong) {
        println!("  {weight:+7.3}  {name}");
    }
    let before = fs::read_to_string(FILE).unwrap();
    fs::write(FILE, file(&before, &weights)).unwrap();
    println!("  written to {FILE}, which `cargo fmt` lays out");
}

/// Channels unlike these: where nobody talks across others, at several paces.
fn alone(chats: &[Chat]) -> Vec<Chat> {
    let mut alone = Vec::new();
    for (number, chat) in chats.iter().enumerate() {
        let chat = chat.one_at_a_time();
        alone.push(chat.naming(20).without_mentions());
        alone.push(if number % 2 == 0 {
            chat.naming(40).slower(4).without_mentions()
        } else {
            chat.naming(60).without_mentions()
        });
    }
    alone
}

/// Channels where few are named, where people are slow or few, and where names are mentions.
fn unlike(chats: &[Chat]) -> Vec<Chat> {
    let mut unlike = Vec::new();
    for (number, chat) in chats.iter().enumerate() {
        unlike.push(if number % 2 == 0 {
            chat.naming(40).slower(6).without_mentions()
        } else {
            chat.naming(10).without_mentions()
        });
        match number % 3 {
            0 => unlike.push(chat.naming(100)),
            1 => unlike.push(chat.naming(60).of_fewer_people().without_mentions()),
            _ => {}
        }
    }
    unlike
}

/// What the first round learns from: nothing that follows from weights.
fn for_first(sample: &mut Sample) {
    let glances = sample.glances.iter_mut();
    glances.for_each(|glance| glance[SHARED].fill(0.0));
    for_weights(sample);
}

fn for_weights(sample: &mut Sample) {
    (sample.likely, sample.belong) = (Vec::new(), Vec::new());
}

fn for_net(sample: &mut Sample) {
    (sample.glances, sample.belong) = (Vec::new(), Vec::new());
}

fn all_picks(
    chats: &[&Chat],
    weights: &Weights,
    step: usize,
    trim: fn(&mut Sample),
) -> Vec<Picked> {
    let picks = each(chats, |chat| picks(chat, weights, step, trim));
    picks.into_iter().flatten().collect()
}

fn picks(chat: &Chat, weights: &Weights, step: usize, trim: fn(&mut Sample)) -> Vec<Picked> {
    let mut picks = Vec::new();
    for (index, message) in chat.messages.iter().enumerate().step_by(step) {
        let Some(answers) = &message.answers else {
            continue;
        };
        let near = answers.iter().map(|answered| index - 1 - answered);
        let right: Vec<usize> = near.filter(|distance| *distance < REACH).collect();
        if right.is_empty() && !message.begins {
            continue;
        }
        let Some(mut sample) = sample(&chat.window(index, WINDOW), weights) else {
            continue;
        };
        trim(&mut sample);
        picks.push(Picked { sample, right });
    }
    picks
}

/// Newton's method on the softmax over candidates; the sum of the right ones counts.
fn fit_picks(samples: &[Picked], start: &Weights) -> (Weights, f64) {
    const PENALTY: f64 = 1.0;
    const CHUNK: usize = 512;
    let mut weights: Vec<f64> = start
        .pair
        .iter()
        .chain(&start.begin)
        .map(|weight| f64::from(*weight))
        .collect();
    let chunks: Vec<&[Picked]> = samples.chunks(CHUNK).collect();
    let mut likelihood = 0.0;
    for _ in 0..MOST_STEPS {
        let parts = each(&chunks, |chunk| pick_sums(chunk, &weights));
        let mut gradient: Vec<f64> = weights.iter().map(|weight| -PENALTY * weight).collect();
        let mut hessian = diagonal(FIRST, PENALTY);
        likelihood = 0.0;
        for (part, slope, curve) in parts {
            likelihood += part;
            gradient
                .iter_mut()
                .zip(slope)
                .for_each(|(sum, part)| *sum += part);
            hessian
                .iter_mut()
                .zip(curve)
                .for_each(|(sum, part)| *sum += part);
        }
        let step = solve(hessian, gradient);
        let longest = step.iter().fold(0.0_f64, |most, part| most.max(part.abs()));
        let scale = (5.0 / longest).min(1.0);
        weights
            .iter_mut()
            .zip(&step)
            .for_each(|(weight, part)| *weight += scale * part);
        if longest < 1e-3 {
            break;
        }
    }
    let mut learnt = start.clone();
    let all = learnt.pair.iter_mut().chain(&mut learnt.begin);
    all.zip(&weights)
        .for_each(|(weight, value)| *weight = rounded(*value));
    (learnt, likelihood / samples.len() as f64)
}

/// Log likelihood, gradient and negated Hessian of some samples.
fn pick_sums(samples: &[Picked], weights: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
    let (mut likelihood, mut gradient, mut hessian) =
        (0.0, vec![0.0; FIRST], vec![0.0; FIRST * FIRST]);
    for sample in samples {
        let Picked { sample, right } = sample;
        let wide = |features: &[f32], from: usize| {
            let mut row = [0.0; FIRST];
            let wide = row[from..].iter_mut().zip(features);
            wide.for_each(|(wide, value)| *wide = f64::from(*value));
            row
        };
        let glances = sample.glances.iter().map(|glance| wide(glance, 0));
        let begin = wide(&sample.begin.1, GLANCE);
        let rows: Vec<[f64; FIRST]> = glances.chain([begin]).collect();
        let right = if right.is_empty() {
            &[rows.len() - 1]
        } else {
            &right[..]
        };
        let scores: Vec<f64> = rows.iter().map(|row| product(row, weights)).collect();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let odds: Vec<f64> = scores.iter().map(|score| (score - most).exp()).collect();
        let sum: f64 = odds.iter().sum();
        let of_right = right.iter().map(|index| odds[*index]).sum::<f64>();
        let of_right = of_right.max(1e-300);
        likelihood += (of_right / sum).ln();
        let mut mean = [0.0; FIRST];
        for (index, (row, odds)) in rows.iter().zip(&odds).enumerate() {
            let probability = odds / sum;
            let wanted = if right.contains(&index) {
                odds / of_right
            } else {
                0.0
            };
            for (at, value) in row.iter().enumerate() {
                gradient[at] += (wanted - probability) * value;
                mean[at] += probability * value;
            }
            if probability > LEAST {
                outer(&mut hessian, row, probability);
            }
        }
        outer(&mut hessian, &mean, -1.0);
    }
    (likelihood, gradient, hessian)
}

/// The features of two messages, and whether they belong together.
type Member = ([f32; BELONG], bool);

fn members(chat: &Chat, weights: &Weights, step: usize) -> Vec<Member> {
    let mut members = Vec::new();
    for query in chat
        .queries()
        .iter()
        .step_by(step)
        .filter(|query| !query.conversation.is_empty())
    {
        let Some(sample) = sample(&chat.window(query.message, WINDOW), weights) else {
            continue;
        };
        let first = query.message - sample.belong.len();
        for (index, features) in sample.belong.iter().enumerate() {
            let right = query.conversation.contains(&(first + index));
            members.push((*features, right));
        }
    }
    members
}

/// Newton's method on the logistic function.
fn fit_members(samples: &[Member]) -> Vec<f64> {
    const CHUNK: usize = 1 << 16;
    let chunks: Vec<_> = samples.chunks(CHUNK).collect();
    let mut weights = vec![0.0; BELONG];
    for _ in 0..MOST_STEPS {
        let parts = each(&chunks, |chunk| {
            let (mut gradient, mut hessian) = (vec![0.0; BELONG], vec![0.0; BELONG * BELONG]);
            for (features, right) in *chunk {
                let row = &features.map(f64::from);
                let probability = 1.0 / (1.0 + (-product(row, &weights)).exp());
                let wanted = if *right { 1.0 } else { 0.0 };
                let slope = wanted - probability;
                gradient
                    .iter_mut()
                    .zip(row)
                    .for_each(|(sum, value)| *sum += slope * value);
                outer(&mut hessian, row, probability * (1.0 - probability));
            }
            (gradient, hessian)
        });
        let mut gradient: Vec<f64> = weights.iter().map(|weight: &f64| -weight).collect();
        let mut hessian = diagonal(BELONG, 1.0);
        for (slope, curve) in parts {
            gradient
                .iter_mut()
                .zip(slope)
                .for_each(|(sum, part)| *sum += part);
            hessian
                .iter_mut()
                .zip(curve)
                .for_each(|(sum, part)| *sum += part);
        }
        let step = solve(hessian, gradient);
        weights
            .iter_mut()
            .zip(step)
            .for_each(|(weight, part)| *weight += part);
    }
    weights
}

fn product(row: &[f64], weights: &[f64]) -> f64 {
    row.iter()
        .zip(weights)
        .map(|(value, weight)| value * weight)
        .sum()
}

fn diagonal(size: usize, value: f64) -> Vec<f64> {
    let mut matrix = vec![0.0; size * size];
    (0..size).for_each(|at| matrix[at * size + at] = value);
    matrix
}

/// Adds `scale` times the row's products with itself.
fn outer(matrix: &mut [f64], row: &[f64], scale: f64) {
    for (one, line) in row.iter().zip(matrix.chunks_mut(row.len())) {
        if *one != 0.0 {
            let by = scale * one;
            line.iter_mut()
                .zip(row)
                .for_each(|(sum, other)| *sum += by * other);
        }
    }
}

/// Solves `matrix * x = right` by Gauss' elimination with pivots.
fn solve(mut matrix: Vec<f64>, mut right: Vec<f64>) -> Vec<f64> {
    let size = right.len();
    for column in 0..size {
        let pivot = (column..size)
            .max_by(|one, other| {
                let at = |row: usize| matrix[row * size + column].abs();
                at(*one).total_cmp(&at(*other))
            })
            .unwrap();
        for at in 0..size {
            matrix.swap(column * size + at, pivot * size + at);
        }
        right.swap(column, pivot);
        for row in column + 1..size {
            let factor = matrix[row * size + column] / matrix[column * size + column];
            for at in column..size {
                matrix[row * size + at] -= factor * matrix[column * size + at];
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size)
            .map(|at| matrix[row * size + at] * right[at])
            .sum();
        right[row] = (right[row] - known) / matrix[row * size + row];
    }
    right
}

/// Three digits, as they are written.
fn rounded(value: f64) -> f32 {
    format!("{value:.3}").parse().unwrap()
}

/// The file as it was up to its numbers, and these.
fn file(before: &str, weights: &Weights) -> String {
    let (head, _) = before.split_once(NUMBERS).unwrap();
    let list = |values: &[f32]| {
        let lines = values.iter().map(|value| format!("        {value:?},\n"));
        lines.collect::<String>()
    };
    let net = &weights.net;
    format!(
        "{head}{NUMBERS}pair: [{}],\nbegin: [{}],\nnet: Net {{ inputs: [{}],\nbias: [{}],\noutputs: [{}] }},\nbelong: [{}] }};\n",
        list(&weights.pair),
        list(&weights.begin),
        list(&net.inputs),
        list(&net.bias),
        list(&net.outputs),
        list(&weights.belong)
    )
}
