//! Which files are read, in which order.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

/// Where a file of telemetry's name ends, except for what rotating it adds.
const ENDING: &str = ".jsonl";

/// The files of the given paths: a file is itself, whatever its name; a folder is the
/// telemetry in it, oldest first. None twice.
pub(super) fn find(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for path in paths {
        let shown = path.display();
        let cannot = || format!("cannot read `{shown}`");
        let kind = fs::metadata(path).with_context(cannot)?;
        if kind.is_dir() {
            let files = in_folder(path).with_context(cannot)?;
            ensure!(
                !files.is_empty(),
                "no telemetry in the folder `{shown}`: name the folder that TELEMETRY_DIR names where \
                 the bot runs, or files"
            );
            found.extend(files);
        } else {
            if kind.is_file() {
                // What stands at a pipe's beginning could not be read again.
                fs::File::open(path).with_context(cannot)?;
            }
            found.push(path.clone());
        }
    }
    let mut seen = HashSet::new();
    found.retain(|path| seen.insert(fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
    Ok(found)
}

/// A file that is there both plain and compressed is read once, plain.
fn in_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let rotated = name.and_then(Rotated::of);
        if let Some(rotated) = rotated.filter(|_| path.is_file()) {
            files.push((rotated, path));
        }
    }
    files.sort();
    files.dedup_by(|second, first| second.0.is_same(&first.0));
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// A name such as `clew.2026-01-02.jsonl`, `clew.jsonl.3.gz`. It sorts by age: the day
/// is in the stem, and of one stem a higher number is older.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rotated {
    stem: String,
    age: std::cmp::Reverse<u64>,
    is_compressed: bool,
}

impl Rotated {
    fn of(name: &str) -> Option<Self> {
        let plain = name.strip_suffix(".gz");
        let is_compressed = plain.is_some();
        let plain = plain.unwrap_or(name);
        let (stem, age) = if let Some(stem) = plain.strip_suffix(ENDING) {
            (stem, 0)
        } else {
            let (before, number) = plain.rsplit_once('.')?;
            (before.strip_suffix(ENDING)?, number.parse().ok()?)
        };
        Some(Self {
            stem: stem.to_owned(),
            age: std::cmp::Reverse(age),
            is_compressed,
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.stem == other.stem && self.age == other.age
    }
}
