//! A database's file: made for us alone, and locked under its own name.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::super::error::is_full;
use super::super::{Error, disk};

/// The lock file of a database: beside the file itself, whichever links lead to it. A file
/// with a second name has a second place for it, so that two processes would not see each
/// other. The database file is not locked: closing it would drop the locks that SQLite has
/// on it.
pub(super) fn lock_of(path: &Path) -> Result<PathBuf, Error> {
    let file = fs::canonicalize(path).map_err(Error::io("find", path))?;
    let names = fs::metadata(&file).map_or(1, |file| file.nlink());
    if names > 1 {
        let remedy = "it has a second name (a hard link), under which another process could use \
                      it: remove that, or link by `ln -s`";
        return Err(Error::unopened(path.display(), remedy, None));
    }
    Ok(beside(&file, ".lock"))
}

/// Whether the last process that wrote a database did not close it.
pub(super) fn has_log(path: &Path) -> bool {
    beside(path, "-wal").exists()
}

/// What tells whether anybody used a database.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct State {
    /// Whether a process has it, or did not close it.
    pub(super) has_log: bool,
    bytes: u64,
    changed: (i64, i64),
}

/// The state of a database; none if there is none.
pub(super) fn state(path: &Path) -> Option<State> {
    let about = fs::metadata(path).ok()?;
    Some(State {
        has_log: has_log(path),
        bytes: about.len(),
        changed: (about.mtime(), about.mtime_nsec()),
    })
}

/// A file's name as SQLite takes names with parameters.
pub(super) fn uri(path: &Path, parameters: &str) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' => uri.push(char::from(*byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + parameters
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The files of a database that are there.
fn files_of(path: &Path) -> Vec<PathBuf> {
    let all = ["", "-wal", "-shm"].map(|end| beside(path, end));
    all.into_iter().filter(|file| file.exists()).collect()
}

/// Creates the file and its folder, readable only by us, since it holds what people said;
/// closes to others one that is there. The error says if there is a folder in its place.
pub(super) fn make(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        let remedy = "a folder stands in its place; name a file";
        return Err(Error::unopened(path.display(), remedy, None));
    }
    if path.exists() {
        disk::close_files(path.parent().unwrap_or(path), files_of(path));
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    disk::create_folders(folder)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if is_full(&error) => Err(Error::io("make", path)(error)),
        Err(error) => {
            let remedy = "the file cannot be made";
            Err(Error::unopened(path.display(), remedy, Some(error.into())))
        }
    }
}
