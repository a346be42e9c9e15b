//! Which settings are suggested, and that they can be used as they are printed.

use clew::config::Config;
use clew::replay::{Caps, share};
use clew::tune::{Reason, Tuned, lines, suggestions, text, tune};

use super::{CHANNEL, Place, Row, config, export, harbour, row, settings, tuned};

const THREAD: Place = Place {
    kind: "GuildPublicThread",
    ..CHANNEL
};

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
        "--sweep MEM_MAX_CHARS=2000,8000 --sweep MEM_MAX_MSGS=10,40",
        "--tokens 600 --sweep MEM_MAX_CHARS=1000,8000 --sweep THREAD_SELECT=newest,conversation",
        "--sweep MEM_MAX_MSGS=1,5,9,70",
        "--sweep LINK_CONTEXT=3,1;0,0 --sweep MEM_MAX_MSGS=3,70,400",
        "--sweep LONE_CONTEXT=off,recent --sweep MEM_INCLUDE_POINTED_APPS=false,true",
        "--sweep MEM_MAX_AGE_MIN=1,20,0",
    ] {
        let tuned = tuned(&files, flags).unwrap();
        check_env(&tuned);
    }
}

/// The newest messages of the thread are short; those before are long, and dear.
#[test]
fn the_knee_is_where_more_tokens_cease_to_buy_messages() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Row> = (0..130)
        .map(|number| {
            let words = "the pump of the crane ".repeat(if number < 60 { 30 } else { 1 });
            let asks = if number >= 120 { "<@900> " } else { "" };
            row(60 * number, 501, format!("{asks}{words}"))
        })
        .collect();
    let file = export(folder.path(), THREAD, &rows);
    let flags = "--sweep MEM_MAX_CHARS=1000,3000,100000 --sweep MEM_MAX_MSGS=10,20,40,60,80,100 --sweep MEM_MAX_AGE_MIN=0";
    let tuned = tuned(&[file], flags).unwrap();
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
    assert_eq!(env, "MEM_MAX_FILE_BYTES=20000\n");
    let told = text(&tuned);
    let why = "  MEM_MAX_FILE_BYTES 20000\n    none of 0, 20000, 50000 makes a difference\n    (as it is now)\n";
    assert!(told.contains(why), "{told}");
    assert!(!told.contains("now -> suggested"), "{told}");
}

/// On a straight line any point would do: each message costs as much as the one before.
#[test]
fn a_straight_line_has_no_knee() {
    let folder = tempfile::tempdir().unwrap();
    let words = "the pump of the crane ".repeat(3);
    let rows: Vec<Row> = (0..240)
        .map(|number| {
            let asks = if number >= 200 { "<@900> " } else { "" };
            row(60 * number, 501, format!("{asks}{words}"))
        })
        .collect();
    let file = export(folder.path(), THREAD, &rows);
    let flags = "--sweep MEM_MAX_CHARS=100000 --sweep MEM_MAX_AGE_MIN=0 --sweep MEM_MAX_MSGS=10,20,30,40,50,60";
    let tuned = tuned(&[file], flags).unwrap();
    let steps: Vec<u64> = tuned
        .choice
        .frontier
        .iter()
        .map(|point| tuned.swept.figures[*point].all.messages)
        .collect();
    assert_eq!(steps, [400, 800, 1_200, 1_600, 2_000, 2_400]);
    assert_eq!(tuned.choice.knee, None);
    // What shows as much as now, which is 40.
    assert_eq!(tuned.choice.reason, Reason::NoKnee);
    let suggested = tuned.grid.values(tuned.choice.suggested.unwrap());
    assert_eq!(suggested[2], "40");
}

/// Ordinary channels, in which people mention the bot in passing, are no dead end.
#[test]
fn plain_mentions_are_tuned_by_what_a_lone_mention_gets() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Row> = (0..120)
        .map(|number| {
            let asks = if number % 12 == 11 { "<@900> " } else { "" };
            row(
                60 * number,
                501 + number.unsigned_abs() % 3,
                format!("{asks}the pump of the crane"),
            )
        })
        .collect();
    let file = export(folder.path(), CHANNEL, &rows);
    let prices = config(&[("LLM_PRICES", "2/8")]);
    let tuned = tune(
        settings(std::slice::from_ref(&file), ""),
        &prices,
        &|_, _, _| (),
    )
    .unwrap();
    let names: Vec<&str> = tuned
        .grid
        .axes
        .iter()
        .map(|axis| axis.variable.name)
        .collect();
    assert!(
        names.contains(&"LONE_CONTEXT") && names.contains(&"THREAD_SELECT"),
        "{names:?}"
    );
    let now = &tuned.swept.figures[tuned.grid.now].all;
    assert_eq!(now.messages, 0);
    let told = text(&tuned);
    assert!(told.contains("\nLONE_CONTEXT\n"), "{told}");
    let most = tuned.swept.figures.iter().map(|one| one.all.messages).max();
    assert!(most > Some(50), "{told}");
    check_env(&tuned);
    // With a budget it is suggested, and what that changes is told.
    let flags = "--tokens 100000 --sweep LONE_CONTEXT=off,recent --sweep MEM_MAX_MSGS=10,40";
    let tuned = tune(settings(&[file], flags), &prices, &|_, _, _| ()).unwrap();
    let suggested = tuned.choice.suggested.unwrap();
    let all = &tuned.swept.figures[suggested].all;
    let told = text(&tuned);
    let at = told.find("now -> suggested").expect("compared");
    let compared = &told[at..];
    assert!(compared.contains("messages"), "{told}");
    let tokens = clew::report::grouped(all.tokens.total);
    assert!(compared.contains(&tokens), "{tokens}: {told}");
    let cost = format!("{:.4}", share(all.tokens.total * 2, 1_000_000));
    assert!(compared.contains(&cost), "{cost}: {told}");
    let (_, block) = told.split_once("\nFor .env:\n\n").unwrap();
    assert_eq!(block, lines(&suggestions(&tuned)));
    assert!(
        block
            .lines()
            .all(|line| line.contains('=') && !line.starts_with('#')),
        "{block}"
    );
    let json: serde_json::Value = serde_json::from_str(&clew::tune::json(&tuned).unwrap()).unwrap();
    assert_eq!(json["totals"]["now"]["messages"], 0);
    assert_eq!(json["totals"]["suggested"]["tokens"], all.tokens.total);
}

/// The age of chains follows that of threads, and so is what is set now.
#[test]
fn what_is_set_now_may_follow_another_setting() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let sweep = settings(&files, "--sweep MEM_CHAIN_MAX_AGE_MIN=10080,60");
    let only_threads = config(&[("MEM_MAX_AGE_MIN", "60")]);
    let tuned = tune(sweep, &only_threads, &|_, _, _| ()).unwrap();
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
            |one: &clew::replay::Figures| one.dropped.each().map(|(_, count)| count).sum::<u64>();
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
