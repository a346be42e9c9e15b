//! The benches: figures of the running bot (`clew run`, a process of its own,
//! against the simulator), then divan's timings of the hot functions.
//!
//! `cargo bench` runs all but `export`, which takes minutes. Words choose:
//! `cargo bench -- latency`, `cargo bench -- export`, `cargo bench -- convert`.
//! CPU time is read from `/proc`, so the figures need Linux.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench prints its figures and fails by panicking"
)]

mod bot;
mod events;
mod export;
mod hot;
mod latency;
mod load;
mod model;
mod process;
mod windowed;

/// Counts what divan's benches allocate.
#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

/// A word, whether it runs without being asked for, and what it runs.
type Figure = (&'static str, bool, fn());

const FIGURES: &[Figure] = &[
    ("latency", true, latency::print),
    ("load", true, load::print),
    ("windowed", true, windowed::print),
    ("export", false, export::print),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let measuring = arguments.iter().any(|word| word == "--bench");
    for (name, by_default, print) in FIGURES {
        let asked = words.iter().any(|word| word.as_str() == *name);
        if measuring && (asked || words.is_empty() && *by_default) {
            print();
        }
    }
    divan::main();
}
