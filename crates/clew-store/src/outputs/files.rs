//! Where the files of outputs are: on disk, or in memory alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::name::is_output;
use crate::{Error, disk};

/// Largest file read, in bytes.
const LARGEST_FILE: u64 = 1 << 30;
/// Keeps two processes from using one folder.
const LOCK: &str = ".clew-lock";

/// The file operations that outputs need. Calls block; each is whole or did
/// nothing.
pub trait FileSystem: Send + Sync {
    /// Prepares the folder for this process alone.
    ///
    /// # Errors
    /// It cannot be created, or another process uses it.
    fn open(&self, folder: &Path) -> Result<(), Error>;

    /// Writes a new file, readable by its owner only.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error>;

    /// Reads a file; `None` if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Error>;

    /// Removes a file. Returns whether it existed.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove(&self, path: &Path) -> Result<bool, Error>;

    /// The files of outputs in a folder, sorted by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, Error>;
}

/// The disk.
#[derive(Debug, Default)]
pub struct Disk {
    hold: Mutex<Option<disk::Hold>>,
}

impl Disk {
    /// Whether the folder is for this process alone.
    pub(super) fn is_held(&self) -> bool {
        let hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        hold.is_some()
    }
}

impl FileSystem for Disk {
    fn open(&self, folder: &Path) -> Result<(), Error> {
        disk::create_folders(folder)?;
        let hold = disk::hold(&folder.join(LOCK))?.map_err(|holder| {
            let remedy = format!(
                "another process ({holder}) uses it; give each bot a TOOL_OUTPUT_DIR of its own"
            );
            Error::unopened(folder.display(), remedy, None)
        })?;
        disk::take_over(folder)?;
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner) = Some(hold);
        Ok(())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        disk::write(path, bytes)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        disk::read(path, LARGEST_FILE)
    }

    fn remove(&self, path: &Path) -> Result<bool, Error> {
        disk::remove(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let entries = disk::entries(folder)?.into_iter();
        let files = entries.filter(|entry| !entry.is_folder);
        let paths = files.map(|entry| entry.path);
        Ok(paths.filter(|path| is_output(path)).collect())
    }
}

/// Memory, for `IN_MEMORY_CONTEXT_ONLY`: nothing reaches a disk.
#[derive(Debug, Default)]
pub struct InMemory {
    files: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

impl InMemory {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<PathBuf, Vec<u8>>) -> T) -> T {
        work(&mut self.files.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl FileSystem for InMemory {
    fn open(&self, _folder: &Path) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        self.with(|files| files.insert(path.to_owned(), bytes.to_owned()));
        Ok(())
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.with(|files| files.get(path).cloned()))
    }

    fn remove(&self, path: &Path) -> Result<bool, Error> {
        Ok(self.with(|files| files.remove(path).is_some()))
    }

    fn list(&self, folder: &Path) -> Result<Vec<PathBuf>, Error> {
        let is_here = |path: &&PathBuf| path.parent() == Some(folder);
        Ok(self.with(|files| files.keys().filter(is_here).cloned().collect()))
    }
}
