//! `clew store`: lets the operator inspect and maintain the store.
//!
//! Exit codes: 0 done; 1 failed while running; 2 cannot be done as requested; 3
//! nothing was changed, because `--yes` or `--lossy` is missing.

mod backup;
mod copy;
mod erase;
mod export;
mod import;
mod lines;
mod new_file;
mod stats;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Subcommand;

use super::exit::{Ended, Failure, cannot, failed};
use crate::app::{self, system_clock};
use crate::config::{Config, MemoryConfig};
use crate::report::grouped;
use clew_discord::session::LockError;
use clew_store::model::StoreAddress;
use clew_store::outputs::OutputFolder;
use clew_store::{Kind, Store, Transcripts};

/// Inspect and maintain the store named by `CONTEXT_STORE`, the direct message logs in
/// `DM_LOGS_DIR` and the results of tools in `TOOL_OUTPUT_DIR`. Commands that change
/// them are refused while the bot runs.
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Show what is stored: entries, size and age of each kind, and room on disk
    Stats {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Write everything, or one user's data, as JSON Lines
    ///
    /// The last line says how many entries there are, and the SHA-256 of their lines. With
    /// `--out` the file is written beside its place, read again, and only then put there.
    Export(export::ExportArgs),
    /// Write everything as of one moment to a new file, also while the bot runs
    ///
    /// The file is written beside its place, read again, and only then put there.
    /// It holds what people said: keep it as you keep the store, and not for longer
    /// than people may expect, since what they erase later stays in it.
    Backup(backup::BackupArgs),
    /// Put what `export` or `backup` wrote into the store
    ///
    /// What the store has already stays as it is, and nothing enters of who opted
    /// out, so that importing twice changes nothing. What was erased after the file
    /// was written comes back with it: erase it again. Logs of direct messages take in
    /// what `MAX_CONVERSATION_LOG_SIZE` has room for, the newest. The whole file is checked
    /// before anything is changed, and refused if lines are missing. Stop the bot first; it begins a new session then,
    /// and checks with Discord what it shows of before.
    Import(import::ImportArgs),
    /// Erase everything of a user, server or channel, or from before a date,
    /// without leaving a trace on disk
    ///
    /// Without `--yes` it only shows what would be erased and exits with code 3;
    /// that works while the bot runs. Stop the bot before using `--yes`, since it
    /// would write again what it has in memory. A user's opt-out is kept, so that
    /// nothing of theirs is stored again. Backups and exports still hold what they
    /// held.
    Erase(erase::EraseArgs),
    /// Upgrade the store to this version's format, as starting the bot does
    Migrate,
    /// Copy everything to another store, which must be empty
    ///
    /// If the other store cannot hold everything, the rest is listed and nothing
    /// is copied (exit code 3), unless `--lossy` is given. Afterwards the copy is
    /// read back and compared. Direct message logs, results of tools, and saved
    /// conversations in `AGENTS_DIR` do not belong to a store and stay where they
    /// are. Stop the bot first.
    Copy(copy::CopyArgs),
    /// Return unused space to the file system
    Vacuum,
}

/// Runs a command on the process's standard output and error.
pub(super) async fn run(command: StoreCommand, config: &Config) -> Ended {
    match command {
        StoreCommand::Stats { json } => stats::run(config, json).await,
        StoreCommand::Export(args) => export::run(config, &args).await,
        StoreCommand::Backup(args) => backup::run(config, &args).await,
        StoreCommand::Import(args) => import::run(config, &args).await,
        StoreCommand::Erase(args) => erase::run(config, &args).await,
        StoreCommand::Migrate => migrate(config).await,
        StoreCommand::Copy(args) => copy::run(config, &args).await,
        StoreCommand::Vacuum => vacuum(config).await,
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        cannot(error)
    }
}

impl From<clew_store::Error> for Failure {
    fn from(error: clew_store::Error) -> Self {
        match error {
            clew_store::Error::Open { .. }
            | clew_store::Error::Held { .. }
            | clew_store::Error::Newer { .. }
            | clew_store::Error::Damaged { .. } => cannot(error),
            error => failed(error),
        }
    }
}

/// The configured store, with the logs of direct messages and the results of tools.
struct OpenedStore {
    store: Store,
    transcripts: Option<Transcripts>,
    outputs: OutputFolder,
    place: String,
    version: u32,
}

impl OpenedStore {
    /// Opens it for changes, all that may be changed; refused while the bot runs.
    async fn of(config: &Config) -> Result<Self, Failure> {
        let store = there(&config.memory.store, config).await?;
        let memory = &config.memory;
        let transcripts = match logs(memory) {
            Some(dir) => Some(Transcripts::open(dir, memory.max_log_bytes).await?),
            None => None,
        };
        let opened = Self::with(config, store, transcripts).await?;
        opened.outputs.hold().await?;
        Ok(opened)
    }

    /// Opens it for reading, even while the bot runs.
    async fn look(config: &Config) -> Result<Self, Failure> {
        let address = &config.memory.store;
        check_there(address).await?;
        let folders = app::folders(&config.memory);
        let store = Store::look(address, &folders, system_clock()).await?;
        let transcripts = match logs(&config.memory) {
            Some(dir) => Some(Transcripts::look(dir).await?),
            None => None,
        };
        Self::with(config, store, transcripts).await
    }

    async fn with(
        config: &Config,
        store: Store,
        transcripts: Option<Transcripts>,
    ) -> Result<Self, Failure> {
        let memory = &config.memory;
        Ok(Self {
            store,
            transcripts,
            // Also where the bot would not use it: an earlier one may have.
            outputs: OutputFolder::new(&config.tool_outputs.dir),
            place: memory.store.to_string(),
            version: Store::version(&memory.store).await?.unwrap_or_default(),
        })
    }
}

/// The folder of logs, if there is one.
fn logs(memory: &MemoryConfig) -> Option<PathBuf> {
    memory.dm_logs_dir.clone().filter(|dir| dir.exists())
}

/// Reading must never create a store.
async fn check_there(address: &StoreAddress) -> Result<(), Failure> {
    match Store::version(address).await? {
        Some(_) => Ok(()),
        None => Err(cannot(anyhow!(
            "there is nothing at {address} yet: CONTEXT_STORE names another place, or nothing was \
             stored so far"
        ))),
    }
}

/// Opens a store that exists.
async fn there(address: &StoreAddress, config: &Config) -> Result<Store, Failure> {
    check_there(address).await?;
    let folders = app::folders(&config.memory);
    Ok(Store::open(address, &folders, system_clock()).await?)
}

async fn migrate(config: &Config) -> Ended {
    let _alone = app::claim(config)?;
    let address = &config.memory.store;
    let before = Store::version(address).await?;
    let folders = app::folders(&config.memory);
    let store = Store::open(address, &folders, system_clock()).await?;
    store.close().await?;
    let after = Store::version(address).await?.unwrap_or_default();
    let mut out = io::stdout();
    match before {
        Some(before) if before == after => {
            writeln!(out, "{address} is of version {after}: nothing to do")?;
        }
        Some(before) => writeln!(out, "{address}: from version {before} to {after}")?,
        None => writeln!(out, "{address} was made, of version {after}")?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn vacuum(config: &Config) -> Ended {
    let opened = OpenedStore::of(config).await?;
    opened.store.vacuum().await?;
    opened.store.close().await?;
    writeln!(io::stdout(), "{}: done", opened.place)?;
    Ok(ExitCode::SUCCESS)
}

/// Of a column of numbers, in characters.
const LEAST_WIDTH: usize = 12;

/// Columns of names and values, with the values aligned to the right. Heads are a row.
struct Table(Vec<(String, Vec<String>)>);

impl Table {
    /// One number per kind.
    fn of_kinds(numbers: impl Iterator<Item = (Kind, u64)>) -> Self {
        let row = |(kind, number): (Kind, u64)| (kind.as_str().to_owned(), vec![grouped(number)]);
        Self(numbers.map(row).collect())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().map(|(name, _)| name.len());
        let kinds = Kind::ALL.map(|kind| kind.as_str().len());
        let width = names.chain(kinds).max().unwrap_or_default();
        let widths = |column: usize| {
            let values = self.0.iter().filter_map(|(_, values)| values.get(column));
            let widest = values.map(String::len).max().unwrap_or_default();
            widest.max(LEAST_WIDTH)
        };
        for (name, values) in &self.0 {
            write!(f, "{name:width$}")?;
            for (column, value) in values.iter().enumerate() {
                write!(f, " {value:>0$}", widths(column))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
