//! Which files are read, and in which order.

use std::io::Write;
use std::path::PathBuf;

use clew::report;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::world::{Turn, folder, options, report_in, turn};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The order in which files of a folder are read, as their broken first lines tell.
#[test]
fn a_folder_is_its_rotated_files_oldest_first() {
    let good = turn(&Turn::default());
    let broken = format!("x\n{good}");
    let packed = gzip(broken.as_bytes());
    let folder = folder(&[
        ("clew.2026-01-03.jsonl", broken.as_bytes()),
        ("clew.2026-01-01.jsonl.gz", &packed),
        ("clew.2026-01-02.jsonl.1", broken.as_bytes()),
        ("clew.2026-01-02.jsonl", broken.as_bytes()),
        ("clew.2026-01-02.jsonl.10.gz", &packed),
        ("clew.2026-01-03.jsonl.gz", &packed),
        ("notes.txt", b"x\n"),
        ("clew.jsonl.old", b"x\n"),
    ]);
    std::fs::create_dir(folder.path().join("clew.2026-01-09.jsonl")).unwrap();
    let report = report_in(folder.path(), &options());
    let named = report["input"]["unreadable_at"].as_array().unwrap();
    let files: Vec<&str> = named
        .iter()
        .map(|place| place["file"].as_str().unwrap())
        .collect();
    let expected = [
        "clew.2026-01-01.jsonl.gz",
        "clew.2026-01-02.jsonl.10.gz",
        "clew.2026-01-02.jsonl.1",
        "clew.2026-01-02.jsonl",
        "clew.2026-01-03.jsonl",
    ];
    assert_eq!(files, expected);
    assert_eq!(report["input"]["files"], 5);
}

#[test]
fn files_count_once_whatever_their_names() {
    let lines = turn(&Turn::default());
    // Two gzip members behind one another, as when compressed files are joined.
    let packed = [gzip(lines.as_bytes()), gzip(lines.as_bytes())].concat();
    let folder = folder(&[("a.jsonl", lines.as_bytes()), ("b", &packed)]);
    let path = |name: &str| folder.path().join(name);
    let twice = [
        path("a.jsonl"),
        folder.path().to_owned(),
        path("b"),
        path("./b"),
    ];
    let report = report::read(&twice, &options()).unwrap();
    let report = serde_json::to_value(&report).unwrap();
    assert_eq!(report["input"]["files"], 2);
    assert_eq!(report["turns"]["ended"], 3);
}

#[test]
fn a_compressed_file_that_breaks_off_is_named_and_the_rest_is_read() {
    let lines: String = (1..200)
        .map(|id| {
            turn(&Turn {
                id,
                ..Turn::default()
            })
        })
        .collect();
    let packed = gzip(lines.as_bytes());
    let good = turn(&Turn {
        id: 900,
        ..Turn::default()
    });
    let folder = folder(&[
        ("a.jsonl.gz", &packed[..packed.len() - 100]),
        ("b.jsonl", good.as_bytes()),
    ]);
    let report = report::read(&[folder.path().to_owned()], &options()).unwrap();
    assert!(!report.is_complete());
    let report = serde_json::to_value(&report).unwrap();
    let broken = report["input"]["broken_files"].as_array().unwrap();
    assert_eq!(broken.len(), 1);
    assert!(broken[0]["file"].as_str().unwrap().ends_with("a.jsonl.gz"));
    assert!(report["turns"]["ended"].as_u64().unwrap() > 1);
    assert_eq!(report["usage"]["guilds"]["rows"][0]["name"], json!("11"));
}

#[test]
fn what_cannot_be_read_is_an_error_that_names_it() {
    let empty = folder(&[("notes.txt", b"x")]);
    let none = folder(&[("a.jsonl", b"a\nb\n")]);
    let missing = PathBuf::from("no/such/file");
    let read = |path: PathBuf| report::read(&[path], &options()).unwrap_err();
    let error = read(missing);
    assert_eq!(error.to_string(), "cannot read `no/such/file`");
    let error = read(empty.path().to_owned()).to_string();
    assert!(error.contains("no telemetry in the folder"), "{error}");
    let error = read(none.path().to_owned()).to_string();
    assert!(
        error.contains("a.jsonl:1: expected value (column 1)"),
        "{error}"
    );
}
