//! `clew store export`: everything as lines of JSON.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::OpenedStore;
use super::lines::{LOG_LINE, LinesWriter};
use super::new_file::NewFile;
use crate::cli::exit::{Ended, Failure};
use crate::config::Config;
use clew_context::model::UserId;
use clew_store::{Kind, Pages};

/// What to export, and where to.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExportArgs {
    /// Only what is owned by this user, about them, or said by them
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
    /// Write to a new file, readable only by you, instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) async fn run(config: &Config, args: &ExportArgs) -> Ended {
    let Some(path) = &args.out else {
        let opened = OpenedStore::look(config).await?;
        let mut lines = LinesWriter::new(BufWriter::new(io::stdout()));
        export(&opened, args.user, &mut |line| Ok(lines.line(line)?)).await?;
        let (mut out, _) = lines.finish()?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    };
    let mut file = NewFile::create(path)?;
    let opened = OpenedStore::look(config).await?;
    export(&opened, args.user, &mut |line| Ok(file.line(line)?)).await?;
    let entries = file.finish()?;
    writeln!(io::stdout(), "{entries} entries in {}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the entries, line by line.
async fn export(
    opened: &OpenedStore,
    user: Option<UserId>,
    write: &mut impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for kind in Kind::ALL {
        let mut pages = Pages::of(&*opened.store, kind, user);
        while let Some(records) = pages.next().await? {
            let mut records = records.iter();
            records.try_for_each(|record| write(&record.to_line()))?;
        }
    }
    for user in logged_users(opened, user).await? {
        for line in log_lines(opened, user).await? {
            write(&line)?;
        }
    }
    for line in opened.outputs.lines(user).await? {
        write(&line)?;
    }
    Ok(opened.store.close().await?)
}

/// This user, or everybody, if there are logs of direct messages.
pub(super) async fn logged_users(
    opened: &OpenedStore,
    user: Option<UserId>,
) -> Result<Vec<UserId>, Failure> {
    match (&opened.transcripts, user) {
        (None, _) => Ok(Vec::new()),
        (Some(_), Some(user)) => Ok(vec![user]),
        (Some(transcripts), None) => Ok(transcripts.users().await?),
    }
}

/// A user's log, as lines of an export.
pub(super) async fn log_lines(opened: &OpenedStore, user: UserId) -> Result<Vec<String>, Failure> {
    let Some(transcripts) = &opened.transcripts else {
        return Ok(Vec::new());
    };
    let lines = transcripts.lines(user).await?.into_iter();
    let lines = lines.map(|line| {
        let fields = line.strip_prefix('{').unwrap_or(&line);
        format!("{LOG_LINE}{fields}")
    });
    Ok(lines.collect())
}
