//! The command: flags, exit codes, a reader that goes away.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::world::{a_week, folder};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
    command
        .arg("report")
        .args(arguments)
        .current_dir(folder)
        .env_clear();
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

#[test]
fn it_prints_text_or_json_and_writes_a_page() {
    let folder = folder(&[("clew.2026-01-02.jsonl", a_week().as_bytes())]);
    let text = run(folder.path(), &["."]);
    assert_eq!(text.status.code(), Some(0));
    assert!(
        String::from_utf8(text.stdout)
            .unwrap()
            .contains("\nSLOWEST TURNS\n")
    );
    let arguments = [
        "clew.2026-01-02.jsonl",
        "--format",
        "json",
        "--html",
        "page.html",
        "--top",
        "1",
    ];
    let json = run(folder.path(), &arguments);
    assert_eq!((json.status.code(), json.stderr.len()), (Some(0), 0));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["turns"]["began"], 14);
    assert_eq!(json["slowest"].as_array().unwrap().len(), 1);
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    let some = run(
        folder.path(),
        &[
            ".",
            "--format",
            "json",
            "--since",
            "2026-01-04",
            "--until",
            "2026-01-05",
            "--guild",
            "11",
        ],
    );
    let some: Value = serde_json::from_slice(&some.stdout).unwrap();
    assert_eq!(some["turns"]["began"], 2);
    assert_eq!(some["filter"]["until"], "2026-01-06T00:00:00.000Z");
}

#[test]
fn without_a_path_it_reads_the_folder_of_the_settings() {
    let folder = folder(&[]);
    std::fs::create_dir_all(folder.path().join("var/telemetry")).unwrap();
    let file = folder.path().join("var/telemetry/clew.2026-01-02.jsonl");
    std::fs::write(file, a_week()).unwrap();
    let output = run(folder.path(), &["--format", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["turns"]["began"], 14);
}

#[test]
fn what_it_cannot_do_is_said_with_the_remedy() {
    let folder = folder(&[("a.jsonl", a_week().as_bytes())]);
    for (arguments, part) in [
        (&["none"][..], "cannot read `none`"),
        (&[][..], "cannot read `var/telemetry`"),
        (
            &[".", "--since", "yesterday"][..],
            "`--since yesterday` is no time",
        ),
        (&[".", "--guild", "mine"][..], "a server's id, or `direct`"),
        (&[".", "--top", "0"][..], "1..=1000"),
    ] {
        let output = run(folder.path(), arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(2), 0),
            "{errors}"
        );
        assert!(errors.contains(part), "{errors}");
    }
    let output = run(folder.path(), &[".", "--html", "no/such/page.html"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors.contains("cannot write the page to `no/such/page.html`"),
        "{errors}"
    );
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let folder = folder(&[("a.jsonl", a_week().as_bytes())]);
    let mut child = command(folder.path(), &["."])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}
