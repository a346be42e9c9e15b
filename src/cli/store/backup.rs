//! `clew store backup`: everything as of one moment, in a file that `import` restores.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::new_file::NewFile;
use super::{OpenedStore, export};
use crate::cli::exit::{Ended, Failure};
use crate::config::Config;

/// Where to.
#[derive(Debug, Args)]
pub(in crate::cli) struct BackupArgs {
    /// A new file, readable only by you
    path: PathBuf,
}

pub(super) async fn run(config: &Config, args: &BackupArgs) -> Ended {
    let mut file = NewFile::create(&args.path)?;
    let opened = OpenedStore::look(config).await?;
    let written = write(&opened, &mut file).await;
    opened.store.close().await?;
    written?;
    let entries = file.finish()?;
    let path = args.path.display();
    writeln!(
        io::stdout(),
        "{entries} entries in {path}, written and read again. To restore them: clew store import \
         {path}"
    )?;
    Ok(ExitCode::SUCCESS)
}

async fn write(opened: &OpenedStore, file: &mut NewFile) -> Result<(), Failure> {
    opened
        .store
        .each_record(&mut |record| file.line(&record.to_line()))
        .await?;
    for user in export::logged_users(opened, None).await? {
        for line in export::log_lines(opened, user).await? {
            file.line(&line)?;
        }
    }
    Ok(())
}
