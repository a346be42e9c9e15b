//! `clew demo`: within this process, as a program with nothing configured, with custom caps, and when its
//! output is closed.

mod receipts;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clew::demo::{self, Error};
use tempfile::TempDir;

use crate::support::schema;

/// The width of a narrow terminal.
const COLUMNS: usize = 90;

/// Runs the program in an empty folder with only `variables` set.
fn program(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_clew"))
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[track_caller]
fn shows(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scene_is_answered_as_expected_and_told() {
    let folder = TempDir::new().unwrap();
    let telemetry = folder.path().display().to_string();
    let mut out = Vec::new();
    let played = demo::run(pairs(&[("TELEMETRY_DIR", &telemetry)]), &mut out, false).await;
    let text = String::from_utf8(out).unwrap();
    assert!(played.is_ok(), "{played:?}\n{text}");
    let wide = text.lines().find(|line| line.chars().count() > COLUMNS);
    assert_eq!(wide, None);
    assert!(!text.contains('\x1b'), "{text}");
    shows(
        &text,
        &[
            "11 of 11 scenes answered as expected",
            "2 GETs made",
            "the starter, in #filter-house",
            "60 over MEM_MAX_MSGS=40",
            "tags: procedure, wells",
            "20 messages of this chain of replies",
            "LAH-204",
            "5 messages of this channel",
            "mem.thread tail_ok k=5 count=5",
            "mem.ctx collect_ok case=direct",
            "clew run",
        ],
    );
    let lines = schema::validate_dir(folder.path());
    let done = lines.iter().filter(|line| line["event"] == "turn_done");
    assert_eq!(done.count(), 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_bold_headings() {
    let mut out = Vec::new();
    demo::run(Vec::new(), &mut out, true).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    shows(&text, &["\x1b[1m1. A question in a thread"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_question_is_no_success() {
    let mut out = Vec::new();
    // Seven of them are not their asker's first within the minute.
    let settings = pairs(&[("USER_TURNS_PER_MIN", "1")]);
    let refused = demo::run(settings, &mut out, false).await;
    let text = String::from_utf8(out).unwrap();
    assert!(
        matches!(refused, Err(Error::Unexpected { failed: 7, all: 11 })),
        "{refused:?}\n{text}"
    );
    shows(&text, &["NOT AS EXPECTED", "4 of 11 scenes"]);
}

#[test]
fn without_settings_the_demo_runs_and_leaves_nothing_behind() {
    #[track_caller]
    fn check(arguments: &[&str], variables: &[(&str, &str)], code: i32, expected: &[&str]) {
        let folder = TempDir::new().unwrap();
        let output = program(folder.path(), arguments, variables);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{text}\n{errors}");
        shows(&format!("{text}{errors}"), expected);
        assert_eq!(errors.is_empty(), code == 0, "{errors}");
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }
    let good = ["11 of 11 scenes answered as expected"];
    check(&["demo"], &[], 0, &good);
    check(&[], &[], 0, &good);
    // The demo ignores the settings of the real bot.
    let foreign = [
        ("DISCORD_TOKEN", "real"),
        ("DISCORD_API_URL", "no address"),
        ("LLM_BASE_URL", "http://127.0.0.1:1/v1"),
        ("ALLOWED_GUILDS", "1"),
    ];
    check(&["demo"], &foreign, 0, &good);
    // It obeys caps; figures are then shown but not judged.
    let caps = [("MEM_MAX_MSGS", "7"), ("THREAD_CONTEXT_TAIL_COUNT", "2")];
    let fewer = [
        "**7 messages of this thread**",
        "over MEM_MAX_MSGS=7",
        "2 of 2",
    ];
    check(&["demo"], &caps, 0, &fewer);
    let target = [("THREAD_REPLY_TARGET", "trigger")];
    check(&["demo"], &target, 0, &good);
    let wrong = [("MEM_MAX_MSGS", "many")];
    check(&["demo"], &wrong, 2, &["MEM_MAX_MSGS"]);
    check(&[], &wrong, 2, &["MEM_MAX_MSGS"]);
}

#[test]
fn with_a_token_plain_clew_runs_the_bot() {
    let folder = TempDir::new().unwrap();
    let variables = [
        ("DISCORD_TOKEN", "x"),
        ("DISCORD_API_URL", "http://127.0.0.1:1"),
        ("STATE_DIR", "/dev/null/state"),
    ];
    let output = program(folder.path(), &[], &variables);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    shows(&errors, &["STATE_DIR"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_output_ends_the_demo() {
    struct Gone(usize);
    impl Write for Gone {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let ended = demo::run(Vec::new(), &mut Gone(30), false).await;
    let Err(Error::Output(error)) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}

/// Whoever misspells the token's name wants a bot, not the demo.
#[test]
fn a_misspelt_token_does_not_start_the_demo() {
    let folder = TempDir::new().unwrap();
    let check = |variables: &[(&str, &str)], place: &str| {
        let output = program(folder.path(), &[], variables);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(output.stdout.is_empty());
        let last = errors.lines().last().unwrap();
        shows(
            last,
            &[
                "clew: DISCORD_TOKEN is not set",
                "DISCORD_TOKN",
                place,
                "clew demo",
            ],
        );
        assert!(!errors.contains("hush"), "{errors}");
    };
    check(&[("DISCORD_TOKN", "hush")], "(environment)");
    std::fs::write(folder.path().join(".env"), "DISCORD_TOKN=hush\n").unwrap();
    check(&[], "(.env)");
}
