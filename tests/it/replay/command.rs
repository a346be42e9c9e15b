//! `clew replay`: which messages it treats as triggers, what it reports of each, what its flags change, and
//! its error messages.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clew::replay::{ReplayError, ReplayStep};
use clew_context::model::MessageId;
use serde_json::Value;

use super::run::{CHANNEL, Row, export, ids, lines, replay, replay_with, row, thread};
use super::{at, fixture};

fn files(names: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    names.iter().map(|name| root.join(name)).collect()
}

/// Files of the fixture folder, by name.
fn archive(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| fixture(name)).collect()
}

const CHAIN: &str = "replay/chain.json";

#[track_caller]
fn check_lines(files: &[PathBuf], flags: &str, expected: &str) {
    let (text, _) = replay(files, &format!("--format jsonl {flags}")).unwrap();
    let expected: Vec<&str> = expected.split_whitespace().collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

/// A thread and its parent are two files of one recording.
#[test]
fn a_line_reports_everything_about_a_trigger() {
    check_lines(
        &archive(&["general.json", "thread.json"]),
        "",
        r#"
        {"trigger":"1456225942241280000","scene":"reply_chain","target":"1456225942241280000","included":["1456225816412160000"],"omitted":[],"caps":[],"chars":162,"fetches":0,"ms":0}
        {"trigger":"1456226697216000000","scene":"thread","target":"1456226697216000000","included":["1456225690583040000","1456225732526080000"],"omitted":[{"id":"1456225694777344001","reason":"system"}],"caps":[],"chars":155,"fetches":2,"ms":0}
        "#,
    );
    check_lines(
        &archive(&["general.json", "thread.json"]),
        "--warm",
        r#"
        {"trigger":"1456225942241280000","scene":"reply_chain","target":"1456225942241280000","included":["1456225816412160000"],"omitted":[],"caps":[],"chars":162,"fetches":0,"ms":0}
        {"trigger":"1456226697216000000","scene":"thread","target":"1456226697216000000","included":["1456225690583040000","1456225732526080000"],"omitted":[{"id":"1456225694777344001","reason":"system"}],"caps":[],"chars":155,"fetches":0,"ms":0}
        "#,
    );
    check_lines(
        &archive(&["forum_post.json"]),
        "--trigger all --as-mention",
        r#"
        {"trigger":"1456229633228800000","scene":"thread","target":"1456229633228800000","included":[],"omitted":[],"caps":[],"chars":48,"fetches":1,"ms":0}
        {"trigger":"1456229884887040000","scene":"thread","target":"1456229884887040000","included":["1456229633228800000"],"omitted":[],"caps":[],"chars":123,"fetches":2,"ms":0}
        "#,
    );
}

#[test]
fn a_deleted_ancestor_ends_the_chain() {
    let lines = lines(&files(&[CHAIN]), "--text");
    let [asked, ..] = lines.as_slice() else {
        panic!("{lines:?}")
    };
    assert_eq!(ids(asked, "included"), [at(40), at(60)]);
    assert_eq!(
        asked["omitted"],
        serde_json::json!([{"id": at(30), "reason": "deleted"}])
    );
    let block = asked["block"].as_str().unwrap();
    assert!(block.contains("(a message was deleted)\n"), "{block}");
    assert!(!block.contains("soup"), "{block}");
}

#[test]
fn the_text_format_is_for_reading() {
    let (text, _) = replay(&files(&[CHAIN]), "--text --trigger 1456225774469120000").unwrap();
    let expected = "\
1456225774469120000 reply_chain in #general by Maya R. at 2026-01-01 10:01 UTC
  2 messages, 138 characters, 1 fetch in 0 ms, answers 1456225774469120000
  included: 1456225606696960000 1456225690583040000
  left out: 1456225564753920000 (deleted)
  | <discord-context f48c1878766e>
  | (a message was deleted)
  | 2026-01-01
  | 10:00 Maya R.: Since the rope was changed
  | 10:01 Tomás [pointed at by the asker]: Which rope is it now?
  | </discord-context f48c1878766e>

1 trigger among 11 messages, the bot is Clew (900)
  characters: p50 138, p95 138
  truncated: 0 by msgs, 0 by chars, 0 by lone_chars, 0 by age, 0 by chain_age; 0 with shortened messages
  fetches: 1, at most 1 a trigger; 0 with something missing
";
    assert_eq!(text, expected);
}

/// One reply in a chain, one in a thread; each scene has its line.
#[test]
fn a_summary_tells_the_figures_by_scene() {
    let both = archive(&["general.json", "thread.json"]);
    let (text, _) = replay(&both, "--summary").unwrap();
    let (figures, legend) = text.split_once("\n\nmsgs, chars, tokens: ").unwrap();
    assert!(
        legend.ends_with("over MEM_MAX_AGE_MIN or MEM_CHAIN_MAX_AGE_MIN\n"),
        "{legend}"
    );
    assert_eq!(
        figures,
        "\
2 triggers among 13 messages, the bot is Clew (900)
  characters: p50 155, p95 162
  truncated: 0 by msgs, 0 by chars, 0 by lone_chars, 0 by age, 0 by chain_age; 0 with shortened messages
  fetches: 2, at most 2 a trigger; 0 with something missing

                  msgs  chars tokens    p95 GETs >msgs >chars  >age
threads            2.0    155     73     73  2.0    0%     0%    0%
reply chains       1.0    162     76     76  0.0    0%     0%    0%
all together       1.5    158     74     76  1.0    0%     0%    0%"
    );
    let (text, _) = replay(&both, "--summary --max-msg-chars 50").unwrap();
    assert!(text.contains("; 2 with shortened messages\n"), "{text}");
    let (text, _) = replay(&both, "--summary --format jsonl").unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let scenes: Value = lines.iter().map(|line| line["scene"].clone()).collect();
    assert_eq!(scenes, serde_json::json!([null, "thread", "reply_chain"]));
    assert_eq!(lines[1]["fetches"], 2);
    assert_eq!(lines[2]["chars"]["total"], 162);
}

#[track_caller]
fn check_triggers(flags: &str, seconds: &[i64]) {
    let expected: Vec<MessageId> = seconds.iter().map(|second| at(*second)).collect();
    for start in ["--cold", "--warm"] {
        let lines = lines(&files(&[CHAIN]), &format!("{flags} {start}"));
        let found: Vec<MessageId> = lines
            .iter()
            .map(|line| serde_json::from_value(line["trigger"].clone()).unwrap())
            .collect();
        assert_eq!(found, expected, "{flags} {start}");
    }
}

#[test]
fn flags_choose_the_triggers() {
    check_triggers("", &[80, 100, 110, 120]);
    check_triggers("--trigger mentions --limit 2", &[80, 100]);
    check_triggers("--trigger replies", &[20, 40, 60, 80, 100]);
    check_triggers("--trigger all", &[0, 20, 40, 50, 60, 70, 80, 100, 110, 120]);
    check_triggers("--trigger all --limit 0", &[]);
    check_triggers("--trigger 1456225816412160000 --bot ines", &[90]);
    check_triggers("--trigger 1456225648640000000", &[50]);
    check_triggers("--bot 503", &[]);
    check_triggers("--bot 501 --trigger replies", &[20, 60]);
}

#[test]
fn the_settings_router_decides_on_mentions() {
    let check = |environment: &[(&str, &str)], expected: u64| {
        let (_, summary) = replay_with(&files(&[CHAIN]), "", environment).unwrap();
        assert_eq!(summary.figures.all.triggers, expected, "{environment:?}");
    };
    check(&[], 4);
    check(&[("MENTION_ONLY", "true")], 3);
    check(&[("AUTO_REPLY_CHANNELS", "700")], 10);
    // The lists of the operator's own servers and users do not apply to recordings.
    check(&[("ALLOWED", "guild:1"), ("DENIED", "user:501")], 4);
}

#[track_caller]
fn check_bot(names: &[&str], flags: &str, expected: &str) {
    let (_, summary) = replay(&files(names), flags).unwrap();
    assert_eq!(summary.bot, expected, "{names:?} {flags}");
}

#[test]
fn the_bot_is_found_or_named() {
    check_bot(&[CHAIN], "", "Clew (900)");
    check_bot(&[CHAIN], "--bot 501", "Maya R. (501)");
    check_bot(&[CHAIN], "--bot @clew", "Clew (900)");
    check_bot(&[CHAIN], "--bot TOMÁS", "Tomás (502)");
    check_bot(&[CHAIN], "--bot 77", "Clew (77, not in the recording yet)");
    check_bot(&["archive/scenario.json"], "", "Clew (900)");
    // The bot never wrote in this one.
    check_bot(&["archive/thread.json"], "", "Clew (900)");
    check_bot(&["archive/forum_post.json"], "--trigger all", "nobody");
}

#[test]
fn a_mention_brings_the_threads_history() {
    let (files, _folder) = thread_of_sixty();
    let check = |flags: &str, notes: i64| {
        let flags = format!("--trigger {} --as-mention {flags}", at(59));
        let lines = lines(&files, &flags);
        let mut expected = vec![at(1)];
        expected.extend((59 - notes..59).map(at));
        assert_eq!(ids(&lines[0], "included"), expected, "{flags}");
    };
    check("", 39);
    check("--warm", 39);
    check("--max-msgs 4", 3);
    check("--max-msgs 100 --warm", 57);
    check("--max-msgs 1 --tail 0", 0);
}

/// Without a mention it collects as in a channel where every message is answered.
#[test]
fn without_a_mention_there_is_only_the_tail() {
    let (files, _folder) = thread_of_sixty();
    let lines = lines(&files, &format!("--trigger {}", at(59)));
    let mut expected = vec![at(1)];
    expected.extend((54..59).map(at));
    assert_eq!(ids(&lines[0], "included"), expected);
}

/// A message and the thread on it, in which only people wrote.
fn thread_of_sixty() -> ([PathBuf; 2], tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let notes = (2..60).map(|second| row(second, 501, format!("note {second}")));
    let notes: Vec<Row> = notes.collect();
    let files = [
        export(folder.path(), CHANNEL, &[row(1, 502, "Is it on?")]),
        export(folder.path(), thread(), &notes),
    ];
    (files, folder)
}

/// A full window gives the same messages without any fetch.
#[test]
fn a_warm_window_has_what_a_cold_one_fetches() {
    for names in [
        &[CHAIN][..],
        &["archive/general.json", "archive/thread.json"],
        &["archive/forum_post.json"],
        &["archive/direct.json"],
        &["archive/scenario.json"],
    ] {
        for flags in ["", "--as-mention --tail 2 --max-msgs 3"] {
            let flags = format!("--trigger all {flags}");
            let [cold, warm] =
                ["--cold", "--warm"].map(|start| lines(&files(names), &format!("{flags} {start}")));
            let told = |line: &Value| {
                ["trigger", "scene", "target", "included"].map(|key| line[key].clone())
            };
            assert_eq!(
                cold.iter().map(told).collect::<Vec<_>>(),
                warm.iter().map(told).collect::<Vec<_>>(),
                "{names:?} {flags}"
            );
            let fetches = |lines: &[Value]| {
                lines
                    .iter()
                    .map(|line| line["fetches"].as_u64().unwrap())
                    .sum::<u64>()
            };
            assert!(fetches(&warm) <= fetches(&cold), "{names:?} {flags}");
        }
    }
}

/// Replays one trigger in the middle of a chain of replies, under caps.
#[track_caller]
fn check_caps(flags: &str, environment: &[(&str, &str)], included: usize, fetches: usize) {
    let folder = tempfile::tempdir().unwrap();
    let reply = |second: i64| Row {
        reply: (second > 0).then_some(second - 60),
        ..row(second, 501 + second.unsigned_abs() % 2, "word ".repeat(30))
    };
    let rows: Vec<Row> = (0..20).map(|minute| reply(minute * 60)).collect();
    let file = export(folder.path(), CHANNEL, &rows);
    let flags = format!(
        "--format jsonl --trigger {} --as-mention {flags}",
        at(19 * 60)
    );
    let (text, _) = replay_with(&[file], &flags, environment).unwrap();
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        ids(&line, "included").len(),
        included,
        "{flags} {environment:?}"
    );
    assert_eq!(line["fetches"], fetches, "{flags} {environment:?}");
}

#[test]
fn caps_are_flags_or_environment() {
    check_caps("", &[], 19, 1);
    check_caps("--max-msgs 5", &[], 5, 1);
    check_caps("", &[("MEM_MAX_MSGS", "6")], 6, 1);
    check_caps("--max-msgs 5", &[("MEM_MAX_MSGS", "6")], 5, 1);
    check_caps("--max-age-min 5", &[], 6, 1);
    check_caps("--chain-max-age-min 5", &[], 6, 1);
    check_caps("--chain-max-age-min 5", &[("MEM_MAX_AGE_MIN", "1")], 6, 1);
    check_caps("--max-age-min 0", &[("MEM_MAX_AGE_MIN", "5")], 19, 1);
    check_caps("--max-chars 1000", &[], 5, 1);
    check_caps("--max-msg-chars 20 --max-chars 700", &[], 12, 1);
    check_caps("--max-fetches 0", &[], 1, 0);
    check_caps("--warm --max-fetches 0", &[], 19, 0);
    check_caps("--warm --window-per-channel 10", &[], 19, 1);
}

#[track_caller]
fn check_error(files: &[PathBuf], flags: &str, expected: &str) {
    let error = replay(files, flags).unwrap_err();
    let text = format!("{:#}", anyhow::Error::from(error));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let text = text.replace(&format!("{}/", root.display()), "");
    assert_eq!(text, expected);
}

#[test]
fn what_cannot_be_replayed_is_refused_with_the_reason() {
    check_error(
        &files(&["archive/damaged/page.html"]),
        "",
        "archive/damaged/page.html is not an export: it looks like HTML; export the channel with \
         DiscordChatExporter as JSON (`--format Json`), or name a scenario file",
    );
    check_error(
        &files(&[CHAIN, "archive/damaged/cut_off.json"]),
        "",
        "archive/damaged/cut_off.json:71 (byte 1730), message 1456246418833408000: the file is cut \
         off after 2 messages; export it again, or use --lenient to replay what is there",
    );
    check_error(
        &files(&["nowhere.json"]),
        "",
        "cannot read nowhere.json: No such file or directory (os error 2)",
    );
    check_error(
        &files(&["archive/forum_post.json"]),
        "",
        "cannot tell who the bot is: no bot wrote or was mentioned in the recording; name it with \
         --bot ID or --bot NAME; accounts: Maya R. (501), Tomás (502)",
    );
    let accounts = "accounts: Clew (900, bot), Maya R. (501), Ines (503), Tomás (502)";
    check_error(
        &files(&[CHAIN]),
        "--bot zorro",
        &format!(
            "--bot zorro: nobody in the recording has this name, and a bot to come is named by its id; \
             {accounts}"
        ),
    );
    for start in ["", "--warm"] {
        check_error(
            &files(&[CHAIN]),
            &format!("--trigger 12 {start}"),
            "--trigger 12: no such message in the recording",
        );
    }
    check_error(
        &files(&[CHAIN]),
        "--trigger 1456225816412160000",
        "--trigger 1456225816412160000: the bot wrote it itself; name another with --bot",
    );
    check_error(
        &files(&["archive/general.json"]),
        "--trigger 1456225564753920000",
        "--trigger 1456225564753920000: it is a notice of Discord's, not a message of somebody",
    );
}

#[test]
fn lenient_replays_what_is_readable() {
    let damaged = files(&["archive/damaged/cut_off.json"]);
    let (_, summary) = replay(&damaged, "--lenient --trigger all").unwrap();
    let triggers = summary.figures.all.triggers;
    assert_eq!((triggers, summary.report.cut_off), (2, 1));
    assert_eq!(summary.report.places.len(), 1);
}

/// The program itself, in a folder without settings.
fn program(folder: &Path, flags: &str, files: &[PathBuf]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
    command.arg("replay").args(flags.split_whitespace());
    command.args(files).env_clear().current_dir(folder);
    command
}

#[track_caller]
fn check_program(flags: &str, files: &[PathBuf], code: i32, error: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path(), flags, files).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{errors}");
    assert_eq!(errors, error);
}

#[test]
fn bad_input_has_its_exit_code() {
    let nowhere = ["/nowhere/at/all.json".into()];
    let missing =
        "error: cannot read /nowhere/at/all.json: No such file or directory (os error 2)\n";
    check_program("", &nowhere, 2, missing);
    let setting = "error: the settings cannot be used:\n  MEM_MAX_MSGS is \"0\"; accepted: a number \
                   from 1 to 1000 (messages)\n";
    check_program("--max-msgs 0", &files(&[CHAIN]), 2, setting);
    // There is no progress bar, since standard error is not a terminal.
    check_program("--format jsonl", &files(&[CHAIN]), 0, "");
}

#[test]
fn closed_output_ends_the_replay_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Row> = (0..600).map(|second| row(second, 501, "words")).collect();
    let file = export(folder.path(), CHANNEL, &rows);
    let flags = "--trigger all --as-mention --text --format jsonl";
    let mut child = program(folder.path(), flags, &[file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

/// A reader that went away.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_and_progress_reach_the_caller() {
    let settings = super::run::settings(&files(&[CHAIN]), "");
    let error = super::run::block_on(clew::replay::run(&settings, &mut Gone, &|_, _, _| ()));
    let Err(ReplayError::Output(error)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    let seen = std::cell::Cell::new(None);
    let watch = |step, done, total| {
        if step == ReplayStep::Reading {
            seen.set(Some((done, total)));
        }
    };
    super::run::block_on(clew::replay::run(&settings, &mut io::sink(), &watch)).unwrap();
    let size = std::fs::metadata(&settings.recorded.files[0])
        .unwrap()
        .len();
    assert_eq!(seen.get(), Some((size, size)));
}

#[test]
fn a_recording_without_messages_is_refused() {
    let file = fixture("damaged/no_messages.json");
    for flags in ["", "--lenient", "--trigger all"] {
        let error = replay(std::slice::from_ref(&file), flags).unwrap_err();
        assert!(matches!(error, ReplayError::Input(_)), "{error}");
        let text = error.to_string();
        assert!(text.starts_with(&file.display().to_string()), "{text}");
        assert!(
            text.contains("holds no message: export the channel again"),
            "{text}"
        );
    }
    // Beside a file with messages it does no harm.
    let both = [file, fixture("general.json")];
    assert!(replay(&both, "").is_ok());
}
