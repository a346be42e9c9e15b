//! What is said: the tables, the JSON, and the errors.

use std::path::{Path, PathBuf};
use std::process::Command;

use clew::tune::text;
use serde_json::Value;

use super::{fixtures, harbour, tuned};

/// The program itself, in a folder without settings.
fn program(folder: &Path, flags: &str, files: &[PathBuf]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
    command
        .arg("tune")
        .args(flags.split_whitespace())
        .args(files);
    let output = command.env_clear().current_dir(folder).output().unwrap();
    let read = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        read(output.stdout),
        read(output.stderr),
    )
}

#[test]
fn the_text_fits_a_terminal_and_says_what_its_columns_mean() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let (code, told, errors) = program(folder.path(), "--tokens 600", &files);
    assert_eq!((code, errors.as_str()), (0, ""));
    for line in told.lines() {
        assert!(line.chars().count() < 80, "{line}");
    }
    for part in [
        "17 questions to Clew (900); 720 settings tried on each.\n",
        "\nThreads ",
        "\nReply chains ",
        "\nMEM_MAX_MSGS\n",
        "\nmsgs, chars, tokens: ",
        "\nSuggested: ",
        "\nnow -> suggested",
        "\nFor costs set LLM_PRICES",
        "\nFor .env:\n\nMEM_MAX_MSGS=",
        "\nMEM_MAX_CHARS=",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn the_json_holds_every_combination() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let flags = "--format json --sweep MEM_MAX_MSGS=5,40 --sweep MEM_MAX_CHARS=900,8000";
    let (code, told, errors) = program(folder.path(), flags, &files);
    assert_eq!((code, errors.as_str()), (0, ""));
    let told: Value = serde_json::from_str(&told).unwrap();
    let points = told["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    assert_eq!(
        points[1]["settings"],
        serde_json::json!({"MEM_MAX_MSGS": "5", "MEM_MAX_CHARS": "8000"})
    );
    assert_eq!(told["now"], 3);
    for point in points {
        let scenes = point["scenes"].as_object().unwrap();
        let of = |key: &str| {
            scenes
                .values()
                .map(|scene| scene[key].as_u64().unwrap())
                .sum::<u64>()
        };
        assert_eq!(of("messages"), point["all"]["messages"].as_u64().unwrap());
        assert_eq!(of("triggers"), 17);
    }
    assert!(
        told["env"].as_str().unwrap().contains("MEM_MAX_MSGS="),
        "{told}"
    );
}

/// In the thread 40 short messages leave the characters room.
#[test]
fn a_count_that_is_full_before_the_characters_is_told_with_what_more_shows_and_costs() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let flags = "--sweep MEM_MAX_MSGS=10,40,200 --sweep MEM_MAX_CHARS=1000,20000";
    let check = |environment: &[(&str, &str)], flags: &str| {
        let settings = super::settings(&files, flags);
        let now = super::config(environment);
        let tuned = clew::tune::tune(settings, &now, &|_, _, _| ()).unwrap();
        let told = text(&tuned).replace('\n', " ");
        let (_, told) = told.split_once("As set now, ")?;
        Some(told.split(". ").next().unwrap().to_owned())
    };
    let roomy = ("MEM_MAX_CHARS", "20000");
    let bound = "in 9 of 17 blocks MEM_MAX_MSGS left out messages while the characters had room";
    let more = "; 200 would show 29.6 more messages a question, for 1128 more tokens";
    assert_eq!(check(&[roomy], flags), Some(format!("{bound}{more}")));
    let narrow = ("MEM_MAX_CHARS", "1000");
    assert_eq!(check(&[narrow], flags), None);
    // What no value beside was tried for is not compared.
    let other = "--sweep MEM_MAX_CHARS=1000,20000";
    assert_eq!(check(&[roomy], other).as_deref(), Some(bound));
    assert_eq!(check(&[roomy, ("MEM_MAX_MSGS", "200")], flags), None);
}

/// Names are text on the page, not markup.
#[test]
fn the_page_has_a_plot_for_each_scene_and_the_lines_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    for file in &files {
        let export = std::fs::read_to_string(file).unwrap();
        std::fs::write(file, export.replace("\"Clew\"", "\"<b>Clew\"")).unwrap();
    }
    let path = folder.path().join("tune.html");
    let flags = format!("--sweep MEM_MAX_MSGS=1,5,40 --html {}", path.display());
    let (code, told, errors) = program(folder.path(), &flags, &files);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(told.contains("(b)Clew (900)"), "{told}");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>"), "{page}");
    assert!(page.contains("(b)Clew (900)"), "{page}");
    assert!(!page.contains("<b>") && !page.contains("<script"), "{page}");
    // What more tokens buy, and what changes in threads and in reply chains.
    assert_eq!(page.matches("<svg").count(), 3, "{page}");
    let (_, line) = told.rsplit_once("\nMEM_MAX_MSGS=").unwrap();
    assert!(
        page.contains(&format!("MEM_MAX_MSGS={}", line.trim())),
        "{page}"
    );
    let (code, _, errors) = program(
        folder.path(),
        "--html no/where.html --sweep MEM_MAX_MSGS=5",
        &files,
    );
    assert_eq!(code, 1);
    let expected =
        "clew: cannot write no/where.html\n  because: No such file or directory (os error 2)\n";
    assert_eq!(errors, expected);
}

/// Nobody asks a bot here: a bot to come would be asked by replies.
#[test]
fn without_a_bot_replies_stand_for_questions() {
    let files = fixtures(&["archive/forum_post.json"]);
    let told = |files: &[PathBuf], flags| text(&tuned(files, flags).unwrap()).replace('\n', " ");
    let expected = "2 messages by people, each taken for a question to a bot to come; 720 settings";
    let found = told(&files, "");
    assert!(found.starts_with(expected), "{found}");
    let chain = fixtures(&["replay/chain.json"]);
    let expected =
        "5 replies by people, each taken for a question to Clew (77, not in the recording yet); ";
    let found = told(&chain, "--bot 77");
    assert!(found.starts_with(expected), "{found}");
    let found = told(&chain, "--trigger all --bot 77");
    assert!(found.starts_with("10 messages by people"), "{found}");
}

#[test]
fn a_sample_is_spread_over_all_questions() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let tuned = tuned(&files, "--trigger all --sample 20 --sweep MEM_MAX_MSGS=5").unwrap();
    assert_eq!((tuned.swept.found, tuned.swept.replayed), (210, 20));
    let told = text(&tuned);
    assert!(told.starts_with("20 of 210 messages by people"), "{told}");
    // The channel ends after an hour, the thread after two and a half.
    let scenes = &tuned.swept.figures[0].scenes;
    let counts: Vec<u64> = scenes.values().map(|figures| figures.triggers).collect();
    assert_eq!(counts.iter().sum::<u64>(), 20);
    assert!(counts[0] > 10, "{counts:?}");
}

#[track_caller]
fn check_refused(files: &[PathBuf], flags: &str, code: i32, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (found, told, errors) = program(folder.path(), flags, files);
    assert_eq!((found, told.as_str()), (code, ""), "{errors}");
    assert_eq!(errors, expected);
}

#[test]
fn what_cannot_be_tuned_is_refused_with_the_remedy() {
    let chain = fixtures(&["replay/chain.json"]);
    let check = |flags: &str, expected: &str| check_refused(&chain, flags, 2, expected);
    let sweep = "accepted: NAME=VALUE,VALUE, such as MEM_MAX_MSGS=10,20,40\n";
    check(
        "--sweep MEM_MAX_MSGS",
        &format!("clew: --sweep MEM_MAX_MSGS: {sweep}"),
    );
    check(
        "--sweep MEM_MAX_MSGS=,",
        &format!("clew: --sweep MEM_MAX_MSGS=,: {sweep}"),
    );
    check(
        "--sweep MEM_MAX_MSGS=5 --sweep MEM_MAX_MSGS=6",
        "clew: --sweep MEM_MAX_MSGS is there twice: name all of its values in one\n",
    );
    check(
        "--sweep MEM_MAX_MSGS=5,0",
        "clew: a value of --sweep is not accepted (where values have commas in them, part them by semicolons)\n  \
         because: the settings cannot be used:\n  MEM_MAX_MSGS is \"0\"; accepted: a number from 1 to 1000 (messages)\n",
    );
    let numbers: Vec<String> = (1..=101).map(|number| number.to_string()).collect();
    let numbers = numbers.join(",");
    check(
        &format!("--sweep MEM_MAX_MSGS={numbers} --sweep WINDOW_PER_CHANNEL={numbers}"),
        "clew: the values make 10201 combinations, and 10000 is the most: sweep fewer at once\n",
    );
    check(
        "--bot 77 --trigger mentions",
        "clew: no message in the recording is a question to Clew (77, not in the recording yet): name another bot \
         with --bot, or take messages of people for questions with --trigger replies or --trigger all\n",
    );
    let (code, told, errors) = program(Path::new("/"), "--sweep DISCORD_TOKEN=abc", &chain);
    assert_eq!((code, told.as_str()), (2, ""));
    assert!(
        errors.starts_with(
            "clew: --sweep DISCORD_TOKEN: it is no cap; those are THREAD_CONTEXT_TAIL_COUNT, "
        ),
        "{errors}"
    );
    assert!(!errors.contains("abc"), "{errors}");
}

#[test]
fn a_budget_that_nothing_keeps_is_told_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let files = harbour(folder.path());
    let (code, told, errors) = program(
        folder.path(),
        "--tokens 5 --sweep MEM_MAX_MSGS=5,40",
        &files,
    );
    assert_eq!((code, errors.as_str()), (1, ""));
    assert!(
        told.contains("Nothing that was tried keeps within 5 tokens"),
        "{told}"
    );
    assert!(!told.contains(".env"), "{told}");
}

/// Ten million answers are the most, whatever they are made of.
#[test]
fn more_answers_than_can_be_kept_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<_> = (0..1_200)
        .map(|second| super::row(second, 501, "words"))
        .collect();
    let file = super::export(folder.path(), super::CHANNEL, &rows);
    let numbers = |most: u32| {
        (1..=most)
            .map(|number| number.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let flags = format!(
        "--trigger all --sample 0 --sweep MEM_MAX_MSGS={} --sweep MEM_MAX_FETCHES={}",
        numbers(100),
        numbers(100)
    );
    let error = tuned(&[file], &flags).unwrap_err().to_string();
    let expected = "1200 questions under 10000 settings are 12000000 answers to work out, and 10000000 is the most: \
                    sweep fewer values, or take fewer questions with --sample";
    assert_eq!(error, expected);
}
