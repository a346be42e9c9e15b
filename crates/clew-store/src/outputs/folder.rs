//! The folder of outputs for those who look after it without a bot: no pointers, each
//! call reads the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::files::{Disk, FileSystem as _};
use super::{ContextPointer, StoredContext};
use crate::disk::blocking;
use crate::{Erasure, Error, Kind, KindStats, Purge, Purged};
use clew_context::model::UserId;

/// `TOOL_OUTPUT_DIR`, with what a bot left there (`TOOL_OUTPUT_RESUME`).
///
/// What is broken is nobody's as far as one can tell: no export has it, and every
/// erasure takes it.
#[derive(Debug, Clone)]
pub struct OutputFolder {
    folder: PathBuf,
    disk: Arc<Disk>,
}

impl OutputFolder {
    /// The outputs in this folder, which need not be there.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            disk: Arc::default(),
        }
    }

    /// Takes the folder for this process alone, if there is one, until this is dropped.
    ///
    /// # Errors
    /// A bot uses the folder.
    pub async fn hold(&self) -> Result<(), Error> {
        self.run("lock outputs", |disk, folder| {
            if folder.exists() {
                disk.open(folder)?;
            }
            Ok(())
        })
        .await
    }

    /// Removes the outputs that a purge reaches, as
    /// [`ToolOutputs::purge`](super::ToolOutputs::purge) does.
    ///
    /// # Errors
    /// A bot uses the folder, or a file cannot be read or removed; others may have
    /// been removed.
    pub async fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        let purge = purge.clone();
        let gone = self.run("purge outputs", move |disk, folder| {
            if !folder.exists() {
                return Ok(0);
            }
            if !disk.is_held() {
                disk.open(folder)?;
            }
            let mut gone = 0;
            let mut first_error = None;
            for path in disk.list(folder)? {
                match remove_reached(disk, &path, &purge) {
                    Ok(is_gone) => gone += u64::from(is_gone),
                    Err(error) => first_error = first_error.or(Some(error)),
                }
            }
            first_error.map_or(Ok(gone), Err)
        });
        let mut purged = Purged::default();
        purged.add(Kind::Outputs, gone.await?);
        Ok(purged)
    }

    /// How many outputs an erasure would remove.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn would_go(&self, erasure: Erasure) -> Result<u64, Error> {
        let purge = erasure.purge();
        self.run("look into outputs", move |disk, folder| {
            let mut going = 0;
            each_file(disk, folder, |path, text| {
                going += u64::from(is_reached(text, path, &purge));
            })?;
            Ok(going)
        })
        .await
    }

    /// The outputs that belong to a user, or to anybody, as lines of an export.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn lines(&self, owner: Option<UserId>) -> Result<Vec<String>, Error> {
        self.run("read outputs", move |disk, folder| {
            let mut lines = Vec::new();
            each_file(disk, folder, |path, text| {
                let context = StoredContext::from_json(text, path).ok();
                let is_theirs =
                    |one: &StoredContext| owner.is_none_or(|owner| one.pointer.owner == owner);
                lines.extend(context.filter(is_theirs).map(|one| one.to_line()));
            })?;
            Ok(lines)
        })
        .await
    }

    /// How much there is.
    ///
    /// # Errors
    /// A file cannot be read.
    pub async fn stats(&self) -> Result<KindStats, Error> {
        self.run("count outputs", |disk, folder| {
            let mut stats = KindStats::none(Kind::Outputs);
            each_file(disk, folder, |path, text| {
                let pointer = ContextPointer::from_json(text, path);
                stats.count(text.len(), pointer.ok().map(|pointer| pointer.time));
            })?;
            Ok(stats)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Disk, &Path) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let Self { folder, disk } = self.clone();
        blocking(operation, move || work(&disk, &folder)).await
    }
}

/// Visits the files of outputs with their texts.
fn each_file(disk: &Disk, folder: &Path, mut visit: impl FnMut(&Path, &[u8])) -> Result<(), Error> {
    for path in disk.list(folder)? {
        if let Some(text) = disk.read(&path)? {
            visit(&path, &text);
        }
    }
    Ok(())
}

fn remove_reached(disk: &Disk, path: &Path, purge: &Purge) -> Result<bool, Error> {
    let text = disk.read(path)?;
    let is_reached = text.is_some_and(|text| is_reached(&text, path, purge));
    Ok(is_reached && disk.remove(path)?)
}

fn is_reached(text: &[u8], path: &Path, purge: &Purge) -> bool {
    let pointer = ContextPointer::from_json(text, path);
    pointer.map_or(true, |pointer| pointer.is_reached_by(purge))
}
