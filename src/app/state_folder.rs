//! Where a process keeps what the next one needs: a folder, and in a cluster rows of its database.
//!
//! Invariant: in a cluster nothing counts as kept before it is in the rows; the files are this
//! process's copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clew_context::outside::{Lease, blocking};
use clew_store::Tenure;

/// The largest file that is kept as a row. Of a larger one, which is that of the servers, the
/// next process has nothing, and has Discord send them again.
const MOST_BYTES: u64 = 64 << 20;

/// Where this process keeps what the next one needs.
#[derive(Clone)]
pub(super) struct StateFolder {
    dir: PathBuf,
    tenure: Option<Arc<dyn Tenure>>,
}

impl StateFolder {
    /// On this machine alone.
    pub(super) const fn local(dir: PathBuf) -> Self {
        Self { dir, tenure: None }
    }

    /// In a cluster, during a tenure.
    pub(super) const fn of_tenure(dir: PathBuf, tenure: Arc<dyn Tenure>) -> Self {
        Self {
            dir,
            tenure: Some(tenure),
        }
    }

    pub(super) const fn tenure(&self) -> Option<&Arc<dyn Tenure>> {
        self.tenure.as_ref()
    }

    pub(super) fn lease(&self) -> Option<&Lease> {
        self.tenure.as_ref().map(|tenure| tenure.lease())
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Keeps the content that a file is about to have.
    pub(super) async fn keep_content(&self, file: &str, content: &[u8]) -> io::Result<()> {
        match &self.tenure {
            Some(tenure) => tenure.keep_files(&[(file, content)]).await,
            None => Ok(()),
        }
        .map_err(io::Error::other)
    }

    /// Keeps a file's content as it is now.
    pub(super) async fn keep(&self, file: &str) -> io::Result<()> {
        let Some(tenure) = &self.tenure else {
            return Ok(());
        };
        let path = self.path(file);
        let content = blocking(move || read(&path)).await;
        let content = content.unwrap_or_else(broken)?;
        let kept = match content {
            Some(content) => tenure.keep_files(&[(file, &content)]).await,
            None => tenure.forget_files(&[file]).await,
        };
        kept.map_err(io::Error::other)
    }
}

/// An error of a thread that broke off.
pub(super) fn broken<T>(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> io::Result<T> {
    Err(io::Error::other(error))
}

/// A file's content; none without the file.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(about) if about.len() > MOST_BYTES => Err(io::Error::other(format!(
            "{} is larger than {} MiB, which is too much for a row",
            path.display(),
            MOST_BYTES >> 20
        ))),
        _ => fs::read(path).map(Some),
    }
}
