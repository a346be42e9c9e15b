//! Who may read time and chance: whatever else does is not the same in two runs of one seeded world
//! (clew-worlds).
//!
//! Allowed everywhere: `tokio::time`, which a paused runtime sets, and hash maps, whose keys a world
//! takes from its seed, as it does all that libraries ask the system for.

use super::{SIMULATOR, Source, WORLDS, all_sources, first_names, none, starts_of};

/// Calls that read the time of day.
const CLOCKS: [&str; 5] = [
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "OffsetDateTime::now",
    "UtcDateTime::now",
];
/// How the bot's sources and those of its libraries come by chance.
const CHANCES: [&str; 9] = [
    "new_v4",
    "now_v7",
    "RandomState",
    "rand",
    "fastrand",
    "getrandom",
    "OsRng",
    "SystemRandom",
    "secure_random",
];
/// Where time that nobody can set may be read, and why.
const TIMED: [(&str, &str); 4] = [
    (
        "crates/clew-store/src/sqlite/session.rs",
        "on a thread of SQLite's, which waits for another program",
    ),
    ("src/demo.rs", "shows how long something took"),
    ("src/doctor/model.rs", "shows how long something took"),
    ("src/replay/turn.rs", "shows how long something took"),
];
/// Where chance may be taken, and what for.
const BY_CHANCE: [(&str, &str); 16] = [
    (
        "crates/clew-mcp/src/connection.rs",
        "when a list is read again",
    ),
    (
        "crates/clew-store/src/files/folder.rs",
        "which lock a file has",
    ),
    (
        "crates/clew-store/src/import.rs",
        "keys of hashes, gone with them",
    ),
    (
        "crates/clew-store/src/outputs/stored.rs",
        "a new file's name",
    ),
    ("crates/clew-store/src/postgres/hold.rs", "a pool's number"),
    (
        "crates/clew-store/src/transcripts/restore.rs",
        "keys of hashes, gone with them",
    ),
    ("src/app/secret.rs", "keys that stay"),
    ("src/app/wiring.rs", "how long a pause is"),
    ("src/memory/facts.rs", "a new fact's id"),
    ("src/memory/snapshots.rs", "a new snapshot's id"),
    ("src/playground/guard.rs", "the page's token"),
    ("src/telemetry/traces.rs", "a trace's id"),
    ("src/telemetry/traces/export.rs", "the process's id"),
    ("src/telemetry/traces/otlp.rs", "a span's id"),
    ("src/runs/approvals.rs", "an id that no old button has"),
    ("src/runs/connections.rs", "a token"),
];

/// Production code; a world's own time and chance are what it replaces those of the bot with, and
/// the simulator's clock is Discord's, which a world sets.
fn sources() -> Vec<Source> {
    let mut sources = all_sources();
    let apart = [SIMULATOR.folder, WORLDS.folder];
    sources.retain(|source| !apart.iter().any(|folder| source.path.starts_with(folder)));
    sources
}

/// Whether a file names `std::time::Instant`, by its path or in a group.
fn names_instant(source: &Source) -> bool {
    let path = "std::time::";
    let mut after = starts_of(&source.code, path).map(|at| &source.code[at + path.len()..]);
    after.any(|rest| {
        first_names(rest)
            .iter()
            .any(|name| name == "Instant" || name.is_empty())
    })
}

fn takes_chance(source: &Source) -> bool {
    let is_taken = |what: &&str| {
        starts_of(&source.code, what).any(|at| {
            let after = source.code[at + what.len()..].chars().next();
            !after.is_some_and(|next| next.is_alphanumeric() || next == '_')
        })
    };
    CHANCES.iter().any(is_taken)
}

/// The files of which something is so are those that are allowed.
#[track_caller]
fn only(is_so: impl Fn(&Source) -> bool, allowed: &[(&str, &str)], remedy: &str) {
    let sources = sources();
    let found: Vec<String> = sources
        .iter()
        .filter(|source| is_so(source))
        .map(|source| source.path.display().to_string())
        .collect();
    let is_allowed = |path: &&String| allowed.iter().any(|(file, _)| file == path);
    let mut problems: Vec<String> = found
        .iter()
        .filter(|path| !is_allowed(path))
        .cloned()
        .collect();
    let unused = allowed
        .iter()
        .filter(|(file, _)| !found.iter().any(|path| path == file));
    problems.extend(unused.map(|(file, reason)| format!("{file} does not any more ({reason})")));
    none(&problems, remedy);
}

#[test]
fn one_place_reads_the_clock() {
    // The simulator's clock is Discord's, which the bot does not share.
    let places: Vec<String> = all_sources()
        .iter()
        .filter(|source| !source.path.starts_with(SIMULATOR.folder))
        .flat_map(|source| {
            let found = CLOCKS.iter().flat_map(|clock| source.find_all(clock));
            found.collect::<Vec<_>>()
        })
        .collect();
    let problems = if places.len() > 1 { places } else { Vec::new() };
    none(
        &problems,
        "time is an argument (`model::Clock`); keep one of",
    );
}

#[test]
fn nobody_else_reads_time_that_cannot_be_set() {
    only(
        names_instant,
        &TIMED,
        "take `tokio::time::Instant`, or say here why not",
    );
}

/// Otherwise tokio begins with a branch by chance that no world sets.
#[test]
fn a_select_that_a_world_runs_is_biased() {
    let run = [
        "src/app",
        "src/turn",
        "src/memory",
        "crates/clew-discord/src",
    ];
    let mut problems = Vec::new();
    for source in sources() {
        let path = &source.path;
        if run.iter().any(|folder| path.starts_with(folder)) {
            let select = "select! {";
            let mut after =
                starts_of(&source.code, select).map(|at| &source.code[at + select.len()..]);
            if after.any(|rest| !rest.trim_start().starts_with("biased;")) {
                problems.push(path.display().to_string());
            }
        }
    }
    none(
        &problems,
        "write `biased;` first, and the branches in their order, in",
    );
}

#[test]
fn nobody_else_takes_chance() {
    only(
        takes_chance,
        &BY_CHANCE,
        "take chance as an argument (`wiring` has a seed), or say here what it is for",
    );
}

#[test]
fn time_and_chance_are_found_in_every_form() {
    for (code, time, chance) in [
        ("use std::time::Instant;", true, false),
        ("use std::time::{Duration, Instant};", true, false),
        ("let began = std::time::Instant::now();", true, false),
        ("use std::time::*;", true, false),
        (
            "use std::time::Duration;\nuse tokio::time::Instant;",
            false,
            false,
        ),
        ("// std::time::Instant, RandomState", false, false),
        ("use std::hash::{BuildHasher, RandomState};", false, true),
        ("let id = Uuid::new_v4();", false, true),
        ("let n = rand::random::<u64>();", false, true),
        ("let operand = random_seed;", false, false),
    ] {
        let source = Source::new("src/a.rs", code);
        let found = (names_instant(&source), takes_chance(&source));
        assert_eq!(found, (time, chance), "{code}");
    }
}
