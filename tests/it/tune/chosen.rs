//! Which settings are suggested, and that they can be used as they are printed.

use clew::config::Config;
use clew::replay::{Caps, share};
use clew::tune::{Reason, Tuned, lines, suggestions, tune};

use super::{config, harbour, settings, tuned};

/// The suggested lines, put into a `.env` file, make the suggested settings.
#[track_caller]
fn check_env(tuned: &Tuned) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".env");
    let env = lines(&suggestions(tuned));
    std::fs::write(&path, &env).unwrap();
    let config = Config::load([], Some(&path)).unwrap();
    assert!(config.warnings().is_empty(), "{env}{:?}", config.warnings());
    let suggested = &tuned.grid.points[tuned.choice.suggested.unwrap()];
    assert_eq!(Caps::of(&config), suggested.caps, "{env}");
    for line in env.lines() {
        assert!(line.chars().count() < 80, "{line}");
    }
}

#[test]
fn the_suggested_lines_are_an_env_file() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    for flags in [
        "",
        "--tokens 600",
        "--sweep MEM_MAX_MSGS=1,5,9,70",
        "--sweep LINK_CONTEXT=3,1;0,0 --sweep MEM_MAX_MSGS=3,70,400",
        "--sweep LONE_CONTEXT=off,recent --sweep MEM_INCLUDE_POINTED_APPS=false,true",
        "--sweep MEM_MAX_AGE_MIN=1,20,0",
    ] {
        let tuned = tuned(&files, flags).unwrap();
        check_env(&tuned);
    }
}

/// In the thread, each message costs as much as another. Up to sixty messages a cap buys what it says; beyond,
/// the questions have no more.
#[test]
fn the_knee_is_where_more_tokens_cease_to_buy_messages() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let flags = "--sweep MEM_MAX_CHARS=1000,3000,9000 --sweep MEM_MAX_MSGS=10,20,100,500";
    let tuned = tuned(&files, flags).unwrap();
    let choice = &tuned.choice;
    let shown: Vec<(u64, u64)> = choice
        .frontier
        .iter()
        .map(|point| &tuned.swept.figures[*point].all)
        .map(|all| (all.tokens.total, all.messages))
        .collect();
    assert!(
        shown.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1),
        "{shown:?}"
    );
    let knee = choice.knee.unwrap();
    assert_eq!(
        (choice.suggested, choice.reason),
        (Some(knee), Reason::Knee)
    );
    assert!(choice.frontier.contains(&knee));
    // No other lies further above the line between the first and the last.
    let [first, .., last] = shown[..] else {
        panic!("{shown:?}")
    };
    let above = |(tokens, messages): (u64, u64)| {
        let part = share(tokens - first.0, last.0 - first.0);
        share(messages - first.1, last.1 - first.1) - part
    };
    let at = choice
        .frontier
        .iter()
        .position(|point| *point == knee)
        .unwrap();
    assert!(above(shown[at]) > 0.0);
    assert!(
        shown
            .iter()
            .all(|one| above(*one) <= above(shown[at]) + 1e-9),
        "{shown:?}"
    );
}

#[test]
fn without_a_knee_what_is_set_now_stays() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    // Files are not part of an export.
    let tuned = tuned(&files, "--sweep MEM_MAX_FILE_BYTES=0,20000,50000").unwrap();
    assert_eq!(
        (tuned.choice.knee, tuned.choice.reason),
        (None, Reason::NoKnee)
    );
    assert_eq!(tuned.choice.suggested, Some(tuned.grid.now));
    let env = lines(&suggestions(&tuned));
    let expected = "# none of 0, 20000, 50000 makes a difference\n# (as it is now)\nMEM_MAX_FILE_BYTES=20000\n";
    assert_eq!(env, expected);
}

/// The age of chains follows that of threads, and so is what is set now.
#[test]
fn what_is_set_now_may_follow_another_setting() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let sweep = settings(&files, "--sweep MEM_CHAIN_MAX_AGE_MIN=10080,60");
    let only_threads = config(&[("MEM_MAX_AGE_MIN", "60")]);
    let tuned = tune(sweep, &only_threads, &|_| ()).unwrap();
    assert_eq!((tuned.grid.now, tuned.grid.points.len()), (1, 2));
    assert_eq!(tuned.grid.axes[0].now, "60");
    assert_eq!(tuned.grid.changes(1), 0);
}

#[test]
fn a_budget_holds_for_nineteen_of_twenty_questions() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let flags = "--sweep MEM_MAX_CHARS=500,1000,2000,4000,8000 --sweep MEM_MAX_MSGS=5,10,20,40,80";
    let all = tuned(&files, flags).unwrap();
    let all: Vec<_> = all
        .swept
        .figures
        .iter()
        .map(|figures| &figures.all)
        .collect();
    for budget in [200, 400, 700, 1_500, 100_000] {
        let tuned = tuned(&files, &format!("{flags} --tokens {budget}")).unwrap();
        assert_eq!(tuned.choice.reason, Reason::WithinBudget, "{budget}");
        let chosen = all[tuned.choice.suggested.unwrap()];
        assert!(chosen.tokens.p95 <= budget, "{budget}");
        let lost =
            |one: &clew::replay::Figures| one.dropped.msgs + one.dropped.chars + one.dropped.age;
        for other in all.iter().filter(|one| one.tokens.p95 <= budget) {
            assert!(other.messages <= chosen.messages, "{budget}");
            let as_many = other.messages == chosen.messages;
            assert!(!as_many || lost(other) >= lost(chosen), "{budget}");
        }
    }
    let tuned = tuned(&files, &format!("{flags} --tokens 20")).unwrap();
    let least = all.iter().map(|one| one.tokens.p95).min().unwrap();
    assert_eq!(tuned.choice.reason, Reason::OverBudget { least });
    assert_eq!(tuned.choice.suggested, None);
    assert!(suggestions(&tuned).is_empty());
}
