//! A new file of entries, which gets its name when it is whole.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::lines::{LastLine, Lines, LinesWriter};
use crate::cli::exit::{Failure, cannot};
use tempfile::NamedTempFile;

/// A file beside its place, readable only by its owner.
pub(super) struct NewFile {
    lines: LinesWriter<BufWriter<NamedTempFile>>,
    path: PathBuf,
}

impl NewFile {
    /// Nothing may have its name yet.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error| unwritable(path, error);
        if path.symlink_metadata().is_ok() {
            return Err(failed(io::ErrorKind::AlreadyExists.into()));
        }
        let file = tempfile::Builder::new()
            .prefix(".")
            .suffix(".clew-tmp")
            .tempfile_in(folder_of(path))
            .map_err(failed)?;
        Ok(Self {
            lines: LinesWriter::new(BufWriter::new(file)),
            path: path.to_owned(),
        })
    }

    /// Writes one line.
    pub(super) fn line(&mut self, line: &str) -> Result<(), clew_store::Error> {
        let written = self.lines.line(line);
        written.map_err(|source| unwritten(&self.path, source))
    }

    /// Ends it, reads it again as an import would, and puts it in its place, without
    /// replacing another. Returns how many entries it has.
    pub(super) fn finish(self) -> Result<u64, Failure> {
        let Self { lines, path } = self;
        let unwritten = |source| unwritten(&path, source);
        let failed = |error| unwritable(&path, error);
        let (out, entries) = lines.finish().map_err(unwritten)?;
        let file = out.into_inner();
        let file = file.map_err(|error| unwritten(error.into_error()))?;
        file.as_file().sync_all().map_err(failed)?;
        check(file.path()).map_err(|failure| {
            let path = path.display();
            let lost = format!("{path} does not hold what was written to it: the disk lost some");
            failure.context(lost).while_running()
        })?;
        file.persist_noclobber(&path)
            .map_err(|refused| failed(refused.error))?;
        let synced = File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
        synced.map_err(failed)?;
        Ok(entries)
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn check(path: &Path) -> Result<(), Failure> {
    let mut lines = Lines::open(path, LastLine::Required)?;
    while lines.next()?.is_some() {}
    Ok(())
}

fn unwritten(path: &Path, source: io::Error) -> clew_store::Error {
    clew_store::Error::Io {
        operation: "write",
        path: path.to_owned(),
        source,
    }
}

fn unwritable(path: &Path, error: io::Error) -> Failure {
    cannot(error).context(format!("cannot write {}", path.display()))
}
