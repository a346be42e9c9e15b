//! The benches: figures of the running bot (`clew run`, a process of its own,
//! against the simulator), then divan's timings of the hot functions.
//!
//! `cargo bench` runs all of them, in some minutes. Words choose: `cargo bench -- latency`,
//! `cargo bench -- export`, `cargo bench -- convert`; `cargo bench -- worst` prints the most CPU
//! that others can make a part cost. `quality` and `learn` need annotated chats
//! (`docs/conversation.md`), `recall` conversations with questions (`docs/recall.md`). CPU time is read from `/proc`, so the figures need Linux.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a bench prints its figures and fails by panicking"
)]

mod bot;
mod by_hand;
mod chats;
mod docs;
mod events;
mod export;
mod hot;
mod kill;
mod killed;
mod latency;
mod learn;
mod links;
mod load;
mod machines;
mod missed;
mod model;
mod playground;
#[expect(dead_code, reason = "the store's own tests use all of it")]
#[path = "../../crates/clew-store/tests/it/support/postgres.rs"]
mod postgres;
mod process;
mod quality;
mod recall;
mod report;
mod shards;
mod soak;
#[path = "../it/support/statements.rs"]
mod statements;
mod store;
mod turn;
mod windowed;
mod worst;

/// Counts what divan's benches allocate.
#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

/// The figures, by the word that chooses each. `windowed` comes first: it measures the growth of this
/// process, which must not have freed memory to reuse.
const FIGURES: [(&str, fn()); 12] = [
    ("windowed", windowed::print),
    ("latency", latency::print),
    ("load", load::print),
    ("turn", turn::print),
    ("export", export::print),
    ("quality", quality::print),
    ("recall", recall::print),
    ("docs", docs::print),
    ("report", report::print),
    ("playground", playground::print),
    ("store", store::print),
    ("worst", worst::print),
];

/// What is run only if it is named: `learn` writes a source file, `soak` takes an hour, `kill` and `missed`
/// a quarter of one, `machines`, `by-hand` and `shards` minutes.
const NAMED: [(&str, fn()); 7] = [
    ("learn", learn::print),
    ("soak", soak::print),
    ("kill", kill::print),
    ("missed", missed::print),
    ("machines", machines::print),
    ("by-hand", by_hand::print),
    ("shards", shards::print),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let measuring = arguments.iter().any(|word| word == "--bench");
    let is_named = |name: &str| words.iter().any(|word| word.as_str() == name);
    for (name, print) in FIGURES {
        if measuring && (words.is_empty() || is_named(name)) {
            print();
        }
    }
    for (name, print) in NAMED {
        if measuring && is_named(name) {
            print();
        }
    }
    divan::main();
}
