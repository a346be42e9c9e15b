//! The most CPU time that others can make a part cost. Every part is run with each hostile text alone, then
//! with random mixtures (seeded), as large as Discord allows; the worst case is printed, in CPU time of this
//! thread.

mod messages;
mod parts;
mod texts;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::process::milliseconds;
use texts::{FILLERS, Writer};

/// Random mixtures, run after every filler alone.
const MIXTURES: usize = 20;
/// A call is repeated until the calls took this long in all.
const ENOUGH: Duration = Duration::from_millis(20);
/// A call that takes longer is not repeated.
const LONG: Duration = Duration::from_millis(500);

/// Prints the worst case of each part, or of those whose names contain one of the words after "worst":
/// `cargo bench -- worst split`.
pub(crate) fn print() {
    println!("worst: the most CPU that others can make a part cost");
    let words: Vec<String> = std::env::args()
        .skip_while(|word| word != "worst")
        .skip(1)
        .collect();
    let is_chosen =
        |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    for part in parts::ALL.iter().filter(|part| is_chosen(part.name)) {
        let mut worst = (Duration::ZERO, String::new());
        let cases = if part.texts {
            FILLERS.len() + MIXTURES
        } else {
            1
        };
        for case in 0..cases {
            let mut writer = Writer::numbered(case);
            let mut work = (part.prepare)(&mut writer);
            let took = cpu_of(&mut work);
            if took >= worst.0 {
                worst = (took, writer.name);
            }
        }
        let (took, of) = worst;
        let (took, most) = (milliseconds(took), part.most_ms);
        let mark = if took > most { "  OVER" } else { "" };
        println!("  {:<52} {took:>9.3} ms of {most} ({of}){mark}", part.name);
    }
}

fn cpu_of(work: &mut dyn FnMut()) -> Duration {
    // The first call also cleans up after its preparation.
    work();
    let (began, before) = (Instant::now(), cpu());
    let mut calls = 0;
    loop {
        work();
        calls += 1;
        let took = cpu().saturating_sub(before);
        if took >= ENOUGH || began.elapsed() >= LONG {
            return took / calls;
        }
    }
}

/// CPU time of this thread so far. The kernel updates it at its ticks and when the thread stops running,
/// hence the sleep.
fn cpu() -> Duration {
    thread::sleep(Duration::from_micros(1));
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = text.split_whitespace().next().unwrap();
    Duration::from_nanos(nanoseconds.parse().unwrap())
}
