//! `clew demo`: within this process, as a program with nothing configured, with custom caps, and when its
//! output is closed.

mod receipts;

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clew::demo::{self, DemoOptions, Error};
use tempfile::TempDir;

use crate::support::model::FakeModel;
use crate::support::schema;

/// The width of a narrow terminal.
const COLUMNS: usize = 80;
/// The most lines of the short demo: what one sees at once.
const LINES: usize = 60;

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

/// What the demo writes, and how it ends.
async fn played(options: DemoOptions) -> (String, Result<(), Error>) {
    let mut out = Vec::new();
    let ended = demo::run(options, &mut out).await;
    (String::from_utf8(out).unwrap(), ended)
}

#[track_caller]
fn fits(text: &str) {
    let wide = text.lines().find(|line| line.chars().count() > COLUMNS);
    assert_eq!(wide, None);
    assert!(!text.contains('\x1b'), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newcomer_sees_at_once_what_it_is_about() {
    let options = DemoOptions {
        program: "cargo run --".to_owned(),
        ..DemoOptions::default()
    };
    let (text, ended) = played(options).await;
    assert!(ended.is_ok(), "{ended:?}\n{text}");
    fits(&text);
    assert!(text.lines().count() <= LINES, "{text}");
    shows(
        &text,
        &[
            "6 of 6 went as expected",
            "1. A question in a thread of 300 messages that began yesterday",
            "a chain bot sends this and the thread's first message: what was tried?",
            "sends 40 more, 2 requests",
            "261 left out, over MEM_MAX_MSGS=40",
            "it reads    Ada: Turbidity after filter 3",
            "... Chidi: Then we lose sand",
            "5. A mention in a busy channel",
            "sends 6 more, 1 request: what belongs to Boris's conversation",
            "it reads    Ada: Boris, pump 4 drips at the shaft",
            "has the model call list_thread",
            "answer      Somebody said",
            "  cargo run -- demo --ask",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scene_is_answered_as_expected_and_told() {
    let folder = TempDir::new().unwrap();
    let telemetry = folder.path().display().to_string();
    let options = DemoOptions {
        settings: pairs(&[("TELEMETRY_DIR", &telemetry)]),
        is_verbose: true,
        ..DemoOptions::default()
    };
    let (text, ended) = played(options).await;
    assert!(ended.is_ok(), "{ended:?}\n{text}");
    fits(&text);
    shows(
        &text,
        &[
            "18 of 18 went as expected",
            "2 GETs made",
            "the starter, in #filter-house",
            "261 over MEM_MAX_MSGS=40",
            "· tags: procedure",
            "20 messages of this chain of replies",
            "LAH-204",
            "5 messages of this channel",
            "mem.thread tail_ok k=5 count=5",
            "route trigger scene=direct",
            "11. A thread in which two people write through an app",
            "> Luna: I think the foot valve sticks",
            "6 of other conversations",
            "13. A question about something said to the bot before",
            "spare sump pump is on shelf 14",
            "14. A question that was asked while the connection was lost",
            "15. A question about something said somewhere",
            "[1] (link to a message of #filter-house > \"Filter 3: turbidity\")",
            "16. A question about what is always known there",
            "17. A task",
            "18. What was missed",
            "as Boris sees it",
            "- Pump 4 gets a new seal [1] (link to a message of #yard)",
        ],
    );
    let lines = schema::validate_dir(folder.path());
    let done = lines.iter().filter(|line| line["event"] == "turn_done");
    // Three questions are asked before that of scene 13.
    assert_eq!(done.count(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_scene_can_be_played_and_something_else_asked() {
    let of = |scene, ask: Option<&str>| DemoOptions {
        scene,
        ask: ask.map(str::to_owned),
        ..DemoOptions::default()
    };
    let (text, ended) = played(of(Some(8), None)).await;
    assert!(ended.is_ok(), "{text}");
    shows(
        &text,
        &["\n8. A reply to an alert", "LAH-204", "1 of 1 went"],
    );
    assert!(!text.contains("\n1. "), "{text}");
    let (text, ended) = played(of(None, Some("how deep is the hollow?"))).await;
    assert!(ended.is_ok(), "{text}");
    shows(
        &text,
        &[
            "\n1. ",
            "\"@Clew how deep is the hollow?\"",
            "sends 40 more",
        ],
    );
    let (text, ended) = played(of(Some(4), Some("who will do it?"))).await;
    assert!(ended.is_ok(), "{text}");
    shows(
        &text,
        &["\n4. ", "\"@Clew who will do it?\"", "sends 20 more"],
    );
    for (options, error) in [
        (
            of(Some(0), None),
            "there is no scene 0: --scene takes 1 to 18",
        ),
        (
            of(Some(19), None),
            "there is no scene 19: --scene takes 1 to 18",
        ),
        (
            of(Some(17), Some("why?")),
            "scene 17 is a command: --ask takes one of the scenes 1 to 16",
        ),
    ] {
        let (text, ended) = played(options).await;
        assert_eq!(ended.unwrap_err().to_string(), error);
        assert_eq!(text, "");
    }
}

/// Its words are not judged, what it was sent is.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_ones_own_answers() {
    let model = FakeModel::start().await;
    let settings = [
        ("LLM_BASE_URL", model.url()),
        ("LLM_MODEL", "own".to_owned()),
    ];
    let settings = settings
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
    let options = DemoOptions {
        settings,
        ..DemoOptions::default()
    };
    let (text, ended) = played(options).await;
    assert!(ended.is_ok(), "{ended:?}\n{text}");
    shows(
        &text,
        &["Your model answers.", "answer      ", "6 of 6 went"],
    );
    assert!(!text.contains("it reads"), "{text}");
    assert_eq!(model.requests().len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_bold_headings() {
    let options = DemoOptions {
        scene: Some(1),
        is_styled: true,
        ..DemoOptions::default()
    };
    let (text, _) = played(options).await;
    shows(
        &text,
        &["\x1b[1m1. A question in a thread", "\x1b[32m   Clew "],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_question_is_no_success() {
    // Two of them are not their asker's first within the minute.
    let options = DemoOptions {
        settings: pairs(&[("USER_TURNS_PER_MIN", "1")]),
        ..DemoOptions::default()
    };
    let (text, refused) = played(options).await;
    assert!(
        matches!(refused, Err(Error::Unexpected { failed: 2, all: 6 })),
        "{refused:?}\n{text}"
    );
    shows(&text, &["NOT AS EXPECTED", "4 of 6 went"]);
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
    let good = ["6 of 6 went as expected"];
    let typed = format!("  {} demo --scene 4 --verbose", env!("CARGO_BIN_EXE_clew"));
    check(&["demo"], &[], 0, &[good[0], &typed]);
    let by_cargo = [("CARGO_MANIFEST_DIR", "/clew")];
    check(
        &[],
        &by_cargo,
        0,
        &[good[0], "  cargo run -- demo --scene 4"],
    );
    // The demo ignores the settings of the real bot.
    let foreign = [
        ("DISCORD_TOKEN", "real"),
        ("DISCORD_API_URL", "no address"),
        ("ALLOWED", "guild:1"),
    ];
    check(&["demo"], &foreign, 0, &good);
    // It obeys caps; figures are then shown but not judged.
    let caps = [("MEM_MAX_MSGS", "7"), ("THREAD_CONTEXT_TAIL_COUNT", "2")];
    let fewer = [
        "**7 messages of this thread**",
        "over MEM_MAX_MSGS=7",
        "the thread's tail",
    ];
    check(&["demo", "--scene", "1", "--verbose"], &caps, 0, &fewer);
    let target = [("THREAD_REPLY_TARGET", "trigger")];
    check(&["demo"], &target, 0, &good);
    let wrong = [("MEM_MAX_MSGS", "many")];
    check(&["demo"], &wrong, 2, &["MEM_MAX_MSGS"]);
    check(&[], &wrong, 2, &["MEM_MAX_MSGS"]);
    // A model that does not answer is none that was left out.
    let gone = [
        ("LLM_BASE_URL", "http://127.0.0.1:1/v1"),
        ("LLM_MODEL", "x"),
    ];
    check(&["demo", "--scene", "9"], &gone, 1, &["NOT AS EXPECTED"]);
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
    let ended = demo::run(DemoOptions::default(), &mut Gone(30)).await;
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
