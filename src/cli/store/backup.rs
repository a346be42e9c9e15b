//! `clew store backup`: everything as of one moment, in a file that `import` restores.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::lines::{Line, Lines, end_line};
use super::{CommandEnd, Error, OpenedStore, export};
use crate::config::Config;
use tempfile::NamedTempFile;

/// Where to.
#[derive(Debug, Args)]
pub(in crate::cli) struct BackupArgs {
    /// A new file, readable only by you
    path: PathBuf,
}

pub(super) async fn run(config: &Config, args: &BackupArgs) -> Result<CommandEnd, Error> {
    let path = &args.path;
    let failed = |source| Error::File {
        path: path.clone(),
        source,
    };
    // Before the work; the file is put in its place without replacing one, too.
    if path.symlink_metadata().is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let file = tempfile::Builder::new()
        .prefix(".")
        .suffix(".clew-tmp")
        .tempfile_in(folder)
        .map_err(failed)?;
    let opened = OpenedStore::look(config).await?;
    let written = write(&opened, &file, path).await;
    opened.store.close().await?;
    let entries = written?;
    file.as_file().sync_all().map_err(failed)?;
    check(file.path(), entries)?;
    file.persist_noclobber(path)
        .map_err(|refused| failed(refused.error))?;
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(failed)?;
    let path = path.display();
    writeln!(
        io::stdout(),
        "{entries} entries in {path}, written and read again. To restore them: clew store import \
         {path}"
    )?;
    Ok(CommandEnd::All)
}

/// Returns how many entries were written.
async fn write(opened: &OpenedStore, file: &NamedTempFile, path: &Path) -> Result<u64, Error> {
    let failed = |source| clew_store::Error::Io {
        operation: "write",
        path: path.to_owned(),
        source,
    };
    let mut out = BufWriter::new(file.as_file());
    let mut entries = 0;
    opened
        .store
        .each_record(&mut |record| {
            entries += 1;
            writeln!(out, "{}", record.to_line()).map_err(failed)
        })
        .await?;
    for user in export::logged_users(opened, None).await? {
        for line in export::log_lines(opened, user).await? {
            entries += 1;
            writeln!(out, "{line}").map_err(failed)?;
        }
    }
    writeln!(out, "{}", end_line(entries)).map_err(failed)?;
    out.flush().map_err(failed)?;
    Ok(entries)
}

/// Reads everything again, as an import would.
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
