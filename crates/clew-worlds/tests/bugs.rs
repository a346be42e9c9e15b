//! The bugs of `bugs/`, by which the worlds show that they can fail: each can still be planted, and
//! its result is in docs/measurements.md.

#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

/// One a class of what the rules forbid.
const FEWEST: usize = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of the bugs, with their patches.
fn bugs() -> Vec<(String, String)> {
    let folder = root().join("crates/clew-worlds/bugs");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let patches = paths.filter(|path| path.extension().is_some_and(|is| is == "patch"));
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    patches.map(read).collect()
}

/// What each hunk of a patch expects, with its file.
fn hunks(patch: &str) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    let mut file = PathBuf::new();
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("--- a/") {
            file = root().join(path);
        } else if line.starts_with("@@") {
            found.push((file.clone(), String::new()));
        } else if let (Some((_, text)), Some(old)) =
            (found.last_mut(), line.strip_prefix([' ', '-']))
        {
            text.push_str(old);
            text.push('\n');
        }
    }
    found
}

#[test]
fn each_bug_can_be_planted() {
    let bugs = bugs();
    assert!(bugs.len() >= FEWEST, "{} bugs", bugs.len());
    for (name, patch) in bugs {
        let hunks = hunks(&patch);
        assert!(!hunks.is_empty(), "{name} changes nothing");
        for (file, old) in hunks {
            let text = fs::read_to_string(&file).unwrap_or_default();
            assert!(
                text.contains(&old),
                "make {name}.patch anew: {} does not have\n{old}",
                file.display()
            );
        }
    }
}

#[test]
fn each_bug_has_its_result() {
    let document = fs::read_to_string(root().join("docs/measurements.md")).unwrap();
    for (name, _) in bugs() {
        let row = format!("| `{name}` |");
        assert!(document.contains(&row), "docs/measurements.md lacks {name}");
    }
}
