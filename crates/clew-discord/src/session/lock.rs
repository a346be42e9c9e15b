//! Ensures one process per token and session file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::file::beside;

/// Held while the process uses the session file; the operating system releases
/// it however the process ends.
#[derive(Debug)]
pub struct SessionLock {
    _file: File,
}

/// Why the lock could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error(
        "another process (pid {pid}) runs with this token and session file and holds `{}`: stop it \
         first, or give this one a STATE_DIR and a token of its own",
        .path.display()
    )]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Process id that it wrote there, or `unknown`.
        pid: String,
    },
    /// The lock file cannot be used.
    #[error(
        "cannot use the lock file `{}`: make its folder writable for the user that runs clew, or \
         set STATE_DIR to another folder",
        .path.display()
    )]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
}

impl SessionLock {
    /// Takes the lock of a session file: a file beside it with `.lock` appended
    /// to its name, which holds our process id.
    ///
    /// # Errors
    /// [`LockError::Held`] names the process that holds it.
    pub fn take(session_file: &Path) -> Result<Self, LockError> {
        let path = beside(session_file, ".lock");
        let io = |source| LockError::Io {
            path: path.clone(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(path)),
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        file.set_len(0).map_err(io)?;
        writeln!(file, "{}", std::process::id()).map_err(io)?;
        Ok(Self { _file: file })
    }
}

fn held(path: PathBuf) -> LockError {
    let pid = fs::read_to_string(&path).unwrap_or_default();
    let pid = pid.trim();
    LockError::Held {
        pid: if pid.is_empty() { "unknown" } else { pid }.to_owned(),
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_taker_learns_who_was_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("var/session.json");
        let first = SessionLock::take(&path).unwrap();
        let refused = SessionLock::take(&path).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("(pid {})", std::process::id())),
            "{refused}"
        );
        assert!(refused.contains("var/session.json.lock"), "{refused}");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("var"), &link).unwrap();
        let through = SessionLock::take(&link.join("session.json"));
        assert!(matches!(through, Err(LockError::Held { .. })));
        drop(first);
        SessionLock::take(&path).unwrap();
    }

    #[test]
    fn a_folder_that_cannot_be_used_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("var"), "a file").unwrap();
        let path = folder.path().join("var/session.json");
        let refused = SessionLock::take(&path).unwrap_err().to_string();
        for part in ["var/session.json.lock", "writable", "STATE_DIR"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }
}
