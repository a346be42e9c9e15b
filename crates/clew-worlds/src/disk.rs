//! The files that a bot leaves.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::twins;

/// The folder of what bots tell, in a world's or a machine's.
pub(crate) const TELEMETRY: &str = "telemetry";

/// How the names of SQLite's files begin.
pub(crate) const STORE: &str = "clew.db";

/// A file that a bot has written.
pub(crate) struct File {
    /// Below the world's folder.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn is_store(&self) -> bool {
        self.path.to_string_lossy().starts_with(STORE)
    }

    pub(crate) fn is_telemetry(&self) -> bool {
        self.path.iter().any(|part| part == TELEMETRY)
    }
}

/// All files below a world's folder but those of twins, by path.
///
/// # Errors
/// One cannot be read.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<File>> {
    let mut paths = Vec::new();
    list(folder, &mut paths)?;
    paths.sort();
    let files = paths.into_iter().map(|path| {
        let text = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        let path = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        Ok(File { path, text })
    });
    files.collect()
}

fn list(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            paths.push(entry.path());
        } else if entry.file_name() != twins::FOLDER {
            list(&entry.path(), paths)?;
        }
    }
    Ok(())
}
