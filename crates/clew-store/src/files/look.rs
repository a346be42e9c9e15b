//! A copy of the folders, to read beside the process that uses them. Each file is replaced
//! whole, so that each copy is whole, too; the folders themselves are not touched.

use std::path::{Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

use super::super::{Error, disk};

/// The copy; removed with the value.
pub(super) struct FolderCopy {
    folder: TempDir,
    originals: [PathBuf; 3],
}

impl FolderCopy {
    /// Copies all files but hidden ones: locks, and what is just being written.
    pub(super) fn of(originals: [PathBuf; 3]) -> Result<Self, Error> {
        let parent = tempfile::env::temp_dir();
        let folder = tempfile::tempdir().map_err(Error::io("create a folder in", &parent))?;
        let copy = Self { folder, originals };
        for (original, to) in copy.originals.iter().zip(copy.folders()) {
            fs::create_dir(&to).map_err(Error::io("copy to", &to))?;
            disk::files_below(original, &mut |file| copy_file(original, file, &to))?;
        }
        Ok(copy)
    }

    /// The copied folders, in the order of the originals.
    pub(super) fn folders(&self) -> [PathBuf; 3] {
        ["0", "1", "2"].map(|name| self.folder.path().join(name))
    }

    /// What a file was copied from.
    pub(super) fn original(&self, file: &Path) -> Option<PathBuf> {
        let mut both = self.folders().into_iter().zip(&self.originals);
        both.find_map(|(copied, original)| Some(original.join(file.strip_prefix(copied).ok()?)))
    }
}

fn copy_file(from: &Path, file: &Path, to: &Path) -> Result<(), Error> {
    let name = file.file_name().and_then(|name| name.to_str());
    let Ok(path) = file.strip_prefix(from) else {
        return Ok(());
    };
    if name.is_none_or(|name| name.starts_with('.')) {
        return Ok(());
    }
    let to = to.join(path);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(Error::io("copy to", folder))?;
    }
    match fs::copy(file, &to) {
        // It was removed meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.map(drop).map_err(Error::io("copy to", &to)),
    }
}
