//! `clew store import`: what `export` and `backup` wrote, into the store.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;

use super::lines::{LastLine, Line, Lines};
use super::{Table, copy};
use crate::app::{self, system_clock};
use crate::cli::exit::{Ended, Failure, NEEDS_CONSENT, cannot};
use crate::cli::progress;
use crate::config::Config;
use crate::report::grouped;
use clew_context::model::UserId;
use clew_store::model::StoreAddress;
use clew_store::{Import, Imported, Kind, Record, Restored, Store, Transcripts};

/// From where.
#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// What `clew store export` or `clew store backup` wrote
    file: PathBuf,
    /// Import even if entries are lost, since the store cannot hold them
    #[arg(long)]
    lossy: bool,
    /// Import a file without the last line that tells that it is whole: an export of an
    /// earlier version, or lines that you chose
    #[arg(long)]
    unchecked: bool,
}

impl ImportArgs {
    fn lines(&self) -> Result<Lines, Failure> {
        let last_line = if self.unchecked {
            LastLine::Optional
        } else {
            LastLine::Required
        };
        Lines::open(&self.file, last_line)
    }
}

/// What became of lines that are no entries of the store.
#[derive(Debug, Default)]
struct OtherLines {
    logged: u64,
    present: u64,
    opted_out: u64,
    /// Without `DM_LOGS_DIR`.
    unlogged: u64,
    /// For which `MAX_CONVERSATION_LOG_SIZE` leaves no room.
    no_room: u64,
    outputs: u64,
}

pub(super) async fn run(config: &Config, args: &ImportArgs) -> Ended {
    let _alone = app::claim(config)?;
    let opted_out = check(args)?;
    let memory = &config.memory;
    let transcripts = match &memory.dm_logs_dir {
        Some(dir) => Some(Transcripts::open(dir.clone(), memory.max_log_bytes).await?),
        None => None,
    };
    let folders = app::folders(memory);
    let store = Store::open(&memory.store, &folders, system_clock()).await?;
    let done = import(&store, transcripts.as_ref(), args, opted_out, config).await;
    store.close().await?;
    let Some((imported, others)) = done? else {
        return Ok(ExitCode::from(NEEDS_CONSENT));
    };
    tell(&memory.store, &imported, &others)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads every line before anything is changed. Returns who opted out.
fn check(args: &ImportArgs) -> Result<HashSet<UserId>, Failure> {
    let mut lines = args.lines()?;
    let mut opted_out = HashSet::new();
    while let Some((line, _)) = lines.next()? {
        if let Line::Entry(record) = line
            && let Record::OptOut(user, _) = *record
        {
            opted_out.insert(user);
        }
    }
    Ok(opted_out)
}

/// None if there is no consent to what would be lost.
async fn import(
    store: &Store,
    transcripts: Option<&Transcripts>,
    args: &ImportArgs,
    opted_out: HashSet<UserId>,
    config: &Config,
) -> Result<Option<(Imported, OtherLines)>, Failure> {
    let mut import = Import::into(store, opted_out).await?;
    let mut lines = args.lines()?;
    while let Some((line, _)) = lines.next()? {
        if let Line::Entry(record) = line {
            import.see(*record);
        }
    }
    let refusal = "Nothing was imported. Say --lossy to import without that.";
    if !copy::may_lose(&import.losses(), args.lossy, refusal)? {
        return Ok(None);
    }
    // Messages may have been deleted since the export. A bot that went on with its
    // session would not ask for them.
    let forgotten = app::forget_session(config, &system_clock()).await;
    forgotten.map_err(|error| cannot(error).context("cannot end the session"))?;
    let bar = progress::bar();
    let bytes = args.file.metadata().map_or(0, |about| about.len());
    let template = "importing {bar:30} {bytes}/{total_bytes} {eta}";
    progress::show(&bar, template, 0, bytes);
    let written = write(import, transcripts, args, &bar).await;
    bar.finish_and_clear();
    written.map(Some)
}

async fn write(
    mut import: Import<'_>,
    transcripts: Option<&Transcripts>,
    args: &ImportArgs,
    bar: &ProgressBar,
) -> Result<(Imported, OtherLines), Failure> {
    let mut others = OtherLines::default();
    let mut log: Option<(UserId, Vec<String>)> = None;
    let mut lines = args.lines()?;
    while let Some((line, bytes)) = lines.next()? {
        match line {
            Line::Entry(record) => import.put(*record, bytes).await?,
            Line::Log { user, .. } if import.is_out(user) => others.opted_out += 1,
            Line::Log { .. } if transcripts.is_none() => others.unlogged += 1,
            Line::Log { user, text } => match &mut log {
                // All of a user's at once, as a backup reads them: where not all of
                // them fit, the newest do.
                Some((of, waiting)) if *of == user => waiting.push(text),
                _ => {
                    let full = log.replace((user, vec![text]));
                    write_log(transcripts, full, &mut others).await?;
                }
            },
            Line::Output => others.outputs += 1,
            Line::End { .. } => {}
        }
        bar.inc(bytes as u64);
    }
    write_log(transcripts, log, &mut others).await?;
    Ok((import.finish().await?, others))
}

async fn write_log(
    transcripts: Option<&Transcripts>,
    log: Option<(UserId, Vec<String>)>,
    others: &mut OtherLines,
) -> Result<(), Failure> {
    let (Some(transcripts), Some((user, lines))) = (transcripts, log) else {
        return Ok(());
    };
    let all = lines.len() as u64;
    let Restored { added, no_room } = transcripts.restore(user, lines).await?;
    others.logged += added;
    others.no_room += no_room;
    others.present += all - added - no_room;
    Ok(())
}

fn tell(to: &StoreAddress, imported: &Imported, others: &OtherLines) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "Imported into {to}:")?;
    let mut added = imported.added.clone();
    if others.logged > 0 {
        added.insert(Kind::Transcripts, others.logged);
    }
    write!(out, "{}", Table::of_kinds(added.into_iter()))?;
    let rest = [
        (
            imported.present + others.present,
            "were there already and stay as they are",
        ),
        (
            imported.opted_out + others.opted_out,
            "are of people who opted out, and were left out",
        ),
        (
            others.unlogged,
            "are logs of direct messages, and were left out: DM_LOGS_DIR is not set",
        ),
        (
            others.no_room,
            "are logs of direct messages, and were left out: MAX_CONVERSATION_LOG_SIZE has no room for them",
        ),
        (
            others.outputs,
            "are results of tools, which no bot would find again, and were left out",
        ),
    ];
    for (entries, what) in rest {
        if entries > 0 {
            writeln!(out, "{} {what}.", grouped(entries))?;
        }
    }
    if matches!(to, StoreAddress::Files(_)) && imported.added.contains_key(&Kind::Messages) {
        writeln!(out, "{}", copy::FILES_EXPIRE)?;
    }
    Ok(())
}
