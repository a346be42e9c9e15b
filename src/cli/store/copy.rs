//! `clew store copy`: from one store to another, with consent to what is lost.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;

use super::Table;
use crate::app::{self, system_clock};
use crate::cli::exit::{Ended, Failure, NEEDS_CONSENT, cannot, failed};
use crate::cli::progress;
use crate::config::Config;
use crate::report::grouped;
use clew_store::model::StoreAddress;
use clew_store::{Copied, CopyError, CopyPlan, CopyProgress, Kind, Loss, Store};

/// Stands for `CONTEXT_STORE`, so that no password has to be typed.
const CONFIGURED: &str = "configured";

/// What files do with messages of another store.
pub(super) const FILES_EXPIRE: &str = "Files keep messages for 24 hours from now.";

/// From where to where.
#[derive(Debug, Args)]
pub(in crate::cli) struct CopyArgs {
    #[arg(help = format!("{}, or `{CONFIGURED}` for the store named by `CONTEXT_STORE` (use that \
        for an address with a password: arguments are visible to everybody in `ps`)",
        StoreAddress::CHOICE))]
    from: String,
    /// Like FROM; must be empty, and is created if it does not exist
    to: String,
    /// Copy even if entries are lost
    #[arg(long)]
    lossy: bool,
}

pub(super) async fn run(config: &Config, args: &CopyArgs) -> Ended {
    let from_address = address("FROM", &args.from, config)?;
    let to_address = address("TO", &args.to, config)?;
    check_pair(&from_address, &to_address)?;
    let configured = &config.memory.store;
    let is_ours = is_same(&from_address, configured) || is_same(&to_address, configured);
    let _alone = is_ours.then(|| app::claim(config)).transpose()?;
    let from = super::there(&from_address, config).await?;
    let folders = app::folders(&config.memory);
    let to = Store::open_beside(&to_address, &folders, system_clock()).await?;
    let done = copy(&from, &to, args.lossy).await;
    to.close().await?;
    from.close().await?;
    let done = done?;
    if let Some(copied) = &done {
        tell(&from_address, &to_address, copied)?;
    }
    Ok(done.map_or(ExitCode::from(NEEDS_CONSENT), |_| ExitCode::SUCCESS))
}

/// None if there is no consent to what would be lost.
async fn copy(from: &Store, to: &Store, lossy: bool) -> Result<Option<Copied>, Failure> {
    let held = from.stats().await?;
    let total = held.iter().map(|stats| stats.entries).sum();
    let bar = progress::bar();
    let notice = |progress| {
        let (done, template) = phase(progress);
        progress::show(&bar, template, done, total);
    };
    let plan = CopyPlan::new(from, to, &notice).await;
    bar.finish_and_clear();
    let plan = plan.map_err(|error| {
        let failure = match error {
            CopyError::NotEmpty { .. } => cannot(error),
            error => failed(error),
        };
        failure.context("nothing was copied")
    })?;
    let refusal = "Nothing was copied. Say --lossy to copy without that.";
    if !may_lose(&plan.losses(), lossy, refusal)? {
        return Ok(None);
    }
    bar.reset();
    let copied = plan.copy(&notice).await;
    bar.finish_and_clear();
    let copied = copied.map_err(|error| {
        failed(error)
            .context("copied in part only: remove what the store to copy to holds, and copy again")
    })?;
    Ok(Some(copied))
}

fn address(which: &'static str, text: &str, config: &Config) -> Result<StoreAddress, Failure> {
    if text == CONFIGURED {
        return Ok(config.memory.store.clone());
    }
    text.parse().map_err(|_| {
        let forms = StoreAddress::FORMS;
        cannot(anyhow!(
            "{which} is no store's address; accepted: `{CONFIGURED}`, {forms}"
        ))
    })
}

fn check_pair(from: &StoreAddress, to: &StoreAddress) -> Result<(), Failure> {
    if is_same(from, to) {
        return Err(cannot(anyhow!("FROM and TO are the same store")));
    }
    match (from, to) {
        (StoreAddress::Files(_), StoreAddress::Files(_)) => Err(cannot(anyhow!(
            "two stores of files would share USER_PROFILE_DIR and SERVER_PROFILE_DIR: copy the \
             folder itself while the bot is stopped"
        ))),
        _ => Ok(()),
    }
}

/// Whether two addresses name the same place, as far as one can tell.
fn is_same(one: &StoreAddress, other: &StoreAddress) -> bool {
    match (one, other) {
        (StoreAddress::Sqlite(one), StoreAddress::Sqlite(other))
        | (StoreAddress::Files(one), StoreAddress::Files(other)) => {
            let real = |path: &std::path::Path| path.canonicalize().ok();
            one == other || real(one).is_some_and(|path| Some(path) == real(other))
        }
        (one, other) => one == other,
    }
}

/// Tells what would be lost, if anything, and whether it may be.
pub(super) fn may_lose(losses: &[Loss], lossy: bool, refusal: &str) -> io::Result<bool> {
    if losses.is_empty() {
        return Ok(true);
    }
    let mut err = io::stderr();
    writeln!(err, "The store cannot hold all of it:")?;
    for Loss { kind, why, entries } in losses {
        let entries = grouped(*entries);
        writeln!(err, "  {}: {entries} {why}", kind.as_str())?;
    }
    if !lossy {
        writeln!(err, "{refusal}")?;
    }
    Ok(lossy)
}

fn tell(from: &StoreAddress, to: &StoreAddress, copied: &Copied) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "Copied from {from} to {to}, read again and compared:")?;
    write!(out, "{}", Table::of_kinds(copied.iter()))?;
    let has = |kind| copied.iter().any(|(copied, _)| copied == kind);
    if matches!(to, StoreAddress::Files(_)) && has(Kind::Messages) {
        writeln!(out, "{FILES_EXPIRE}")?;
    }
    if has(Kind::Snapshots) {
        writeln!(
            out,
            "Both stores use the same files of saved conversations in AGENTS_DIR: what is erased \
             from one is gone from both."
        )?;
    }
    Ok(())
}

/// How far it is, and how that is shown.
fn phase(progress: CopyProgress) -> (u64, &'static str) {
    match progress {
        CopyProgress::Looking(done) => (done, "looking   {bar:30} {pos}/{len} entries {eta}"),
        CopyProgress::Copying(done) => (done, "copying   {bar:30} {pos}/{len} entries {eta}"),
        CopyProgress::Comparing(done) => (done, "comparing {bar:30} {pos}/{len} entries {eta}"),
    }
}
