//! Each combination gives what a replay with the same settings gives, on however many threads.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clew::config::Variable;
use clew::tune::{json, text, tune};

use super::{config, fixtures, harbour, settings, tuned};
use crate::replay::run::replay_with;

/// Tunes, and replays with the settings of every combination.
#[track_caller]
fn check(files: &[PathBuf], sweeps: &[&str], flags: &str, replay_flags: &str) {
    let given: Vec<String> = sweeps
        .iter()
        .map(|sweep| format!("--sweep {sweep}"))
        .collect();
    let tuned = tuned(files, &format!("{flags} {} --sample 0", given.join(" "))).unwrap();
    assert!(tuned.swept.replayed > 0, "{files:?} {flags}");
    for (number, point) in tuned.grid.points.iter().enumerate() {
        let names = tuned.grid.axes.iter().map(|axis| axis.variable.name);
        let values: Vec<(&str, &str)> = names.zip(tuned.grid.values(number)).collect();
        // What is set now is what no variable says.
        let environment = if point.values.is_some() {
            &values[..]
        } else {
            &[]
        };
        let (_, summary) = replay_with(files, replay_flags, environment).unwrap();
        assert_eq!(
            tuned.swept.figures[number], summary.figures,
            "{files:?} {flags} {values:?}"
        );
    }
}

const FIXTURES: [&[&str]; 5] = [
    &["replay/chain.json"],
    &["archive/general.json", "archive/thread.json"],
    &["archive/forum_post.json"],
    &["archive/direct.json"],
    &["archive/scenario.json"],
];

#[test]
fn every_combination_gives_what_its_replay_gives() {
    let sweeps = [
        "MEM_MAX_MSGS=1,3",
        "MEM_MAX_CHARS=150,900",
        "LONE_CONTEXT=off,recent,conversation",
    ];
    for names in FIXTURES {
        let files = fixtures(names);
        check(
            &files,
            &sweeps,
            "--trigger all",
            "--trigger all --as-mention",
        );
        check(
            &files,
            &sweeps,
            "--trigger all --warm",
            "--trigger all --as-mention --warm",
        );
    }
}

#[test]
fn so_does_every_setting_of_the_context() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    for sweeps in [
        &["MEM_MAX_MSGS=5,40,120", "MEM_MAX_FETCHES=0,1,8"][..],
        &[
            "THREAD_CONTEXT_TAIL_COUNT=0,9",
            "MEM_MAX_AGE_MIN=3,45,0",
            "MEM_CHAIN_MAX_AGE_MIN=2,0",
        ],
        &["MEM_MAX_AGE_MIN=1,2", "MEM_MAX_MSG_CHARS=20,60"],
        &[
            "WINDOW_PER_CHANNEL=0,20",
            "LONE_MAX_CHARS=100,4000",
            "LONE_CONTEXT=recent,conversation",
            "THREAD_SELECT=newest,conversation",
        ],
    ] {
        check(&files, sweeps, "", "");
        check(&files, sweeps, "--warm", "--warm");
    }
}

/// A setting that is added to the table can be swept.
#[test]
fn every_cap_can_be_swept() {
    let files = fixtures(&["replay/chain.json"]);
    let mut swept = 0;
    for variable in Variable::caps() {
        let flags = format!("--sweep {}={};", variable.name, variable.default);
        let tuned = tuned(&files, &flags).unwrap();
        assert_eq!(tuned.grid.axes[0].values, [variable.default], "{flags}");
        // This one set by hand counts for reply chains, too.
        let is_now = variable.name != "MEM_MAX_AGE_MIN";
        assert_eq!(tuned.grid.now == 0, is_now, "{flags}");
        swept += 1;
    }
    assert!(swept >= 15, "{swept}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let sweeps = "--sweep MEM_MAX_MSGS=5,40 --sweep MEM_MAX_CHARS=900,8000";
    for flags in ["--trigger all", "--warm"] {
        let flags = format!("{flags} {sweeps}");
        let told = [1, 2, 7].map(|threads| {
            let mut settings = settings(&files, &flags);
            settings.sweep.threads = NonZeroUsize::new(threads).unwrap();
            let tuned = tune(settings, &config(&[]), &|_, _, _| ()).unwrap();
            (text(&tuned), json(&tuned).unwrap())
        });
        assert_eq!(told[0], told[1], "{flags}");
        assert_eq!(told[0], told[2], "{flags}");
    }
}
