//! A new file of entries, which gets its name when it is whole.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::Error;
use super::lines::{Line, Lines, end_line};
use tempfile::NamedTempFile;

/// A file beside its place, readable only by its owner.
pub(super) struct NewFile {
    out: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl NewFile {
    /// Nothing may have its name yet.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File {
            path: path.to_owned(),
            source,
        };
        if path.symlink_metadata().is_ok() {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        let file = tempfile::Builder::new()
            .prefix(".")
            .suffix(".clew-tmp")
            .tempfile_in(folder_of(path))
            .map_err(failed)?;
        Ok(Self {
            out: BufWriter::new(file),
            path: path.to_owned(),
        })
    }

    /// Writes one line.
    pub(super) fn line(&mut self, line: &str) -> Result<(), clew_store::Error> {
        let written = writeln!(self.out, "{line}");
        written.map_err(|source| clew_store::Error::Io {
            operation: "write",
            path: self.path.clone(),
            source,
        })
    }

    /// Ends it with how many entries it has, reads them again as an import would, and
    /// puts it in its place, without replacing another.
    pub(super) fn finish(mut self, entries: u64) -> Result<(), Error> {
        self.line(&end_line(entries))?;
        let Self { out, path } = self;
        let unwritten = |source| clew_store::Error::Io {
            operation: "write",
            path: path.clone(),
            source,
        };
        let failed = |source| Error::File {
            path: path.clone(),
            source,
        };
        let file = out.into_inner();
        let file = file.map_err(|error| unwritten(error.into_error()))?;
        file.as_file().sync_all().map_err(failed)?;
        check(file.path(), entries)?;
        file.persist_noclobber(&path)
            .map_err(|refused| failed(refused.error))?;
        let synced = File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
        synced.map_err(failed)
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn check(path: &Path, entries: u64) -> Result<(), Error> {
    let mut lines = Lines::open(path)?;
    let (mut found, mut is_ended) = (0, false);
    while let Some((line, _)) = lines.next()? {
        match line {
            Line::Entry(_) | Line::Log { .. } | Line::Output => found += 1,
            Line::End => is_ended = true,
        }
    }
    if is_ended && found == entries {
        return Ok(());
    }
    Err(Error::ReadAgain { entries, found })
}
