//! A database's file: made for us alone, and locked under its own name.

use std::fs;
use std::io;
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
