//! The store: whether it is there, of this version, and can be written and read.

use std::time::Duration;

use super::{Finding, Outcome};
use crate::app::{self, system_clock};
use crate::config::Config;
use crate::telemetry::with_sources;
use clew_context::model::GuildId;
use clew_discord::session::LockError;
use clew_store::{Checked, ClusterStatus, Error, Store};

/// How long it is checked for damage.
const CHECK: Duration = Duration::from_mins(1);
/// A server that cannot exist: its id is from the year 2084.
const NOWHERE: GuildId = GuildId::new(i64::MAX.unsigned_abs());

pub(super) async fn look(config: &Config, tell: &mut dyn FnMut(Finding)) {
    let found = found(config).await;
    let is_reached = found.outcome != Outcome::Failed;
    tell(found);
    let address = &config.memory.store;
    if is_reached && Store::is_unguarded(address).await.unwrap_or(false) {
        tell(Finding::warning(
            "store",
            format!("{address}: its role is a superuser or has BYPASSRLS"),
            "use an ordinary role, since row-level security does not hold for this one; \
             docs/operating.md has the SQL",
        ));
    }
    if is_reached && config.cluster {
        tell(cluster(config).await);
    }
}

async fn cluster_status(config: &Config) -> Result<ClusterStatus, Error> {
    app::cluster(config)?.status().await
}

/// The processes that share the store.
async fn cluster(config: &Config) -> Finding {
    let status = match cluster_status(config).await {
        Err(error) => return failed(&error),
        Ok(status) => status,
    };
    let holder = status.holder.as_deref().unwrap_or("none of them");
    let found = format!("{} processes, the bot is {holder}", status.nodes.len());
    if status.is_replicated {
        return Finding::ok("cluster", found);
    }
    let remedy = "with one database server nothing else is to be done; with a standby name it in \
                  synchronous_standby_names, or a failover loses what was confirmed last";
    Finding::warning(
        "cluster",
        format!("{found}; no synchronous standby"),
        remedy,
    )
}

async fn found(config: &Config) -> Finding {
    let address = &config.memory.store;
    let newest = Store::newest_version(address);
    match Store::version(address).await {
        Err(error) => failed(&error),
        Ok(None) => Finding::ok(
            "store",
            format!("{address}: nothing there yet, it is made at the start"),
        ),
        Ok(Some(version)) if version < newest => Finding::warning(
            "store",
            format!("{address}: of version {version}, this program's is {newest}"),
            "it is upgraded at the next start; keep a copy for the way back (clew store migrate \
             does it now)",
        ),
        Ok(Some(_)) => tried(config).await,
    }
}

/// Writes and reads an entry, unless a bot uses the store, and looks for damage.
async fn tried(config: &Config) -> Finding {
    let address = &config.memory.store;
    let folders = app::folders(&config.memory);
    let mut done = format!("{address}: read; a bot uses it, so nothing was written");
    if !is_in_use(config).await {
        match write_and_read(config).await {
            Ok(true) => done = format!("{address}: written and read"),
            Ok(false) => {
                return Finding::failed(
                    "store",
                    format!("{address}: an entry that was written cannot be read"),
                    "do not start the bot with it; restore a backup, or name another CONTEXT_STORE",
                );
            }
            Err(error) => return failed(&error),
        }
    }
    // It takes long: a bot may start meanwhile.
    match Store::look(address, &folders, system_clock()).await {
        Ok(store) => {
            let checked = checked(&store).await;
            let closed = store.close().await;
            found_of(checked.and_then(|checked| closed.map(|()| checked)), done)
        }
        Err(error) => failed(&error),
    }
}

/// Whether a bot uses the store, on this machine or in the cluster.
async fn is_in_use(config: &Config) -> bool {
    if let Err(LockError::Held { .. }) = app::claim(config) {
        return true;
    }
    let status = cluster_status(config);
    config.cluster && status.await.is_ok_and(|status| status.holder.is_some())
}

/// Reads it, and looks for damage.
async fn checked(store: &Store) -> Result<Checked, Error> {
    store.stats().await?;
    store.check(CHECK).await
}

fn found_of(checked: Result<Checked, Error>, done: String) -> Finding {
    match checked {
        Ok(Checked::Whole) => Finding::ok("store", done),
        Ok(Checked::InPart) => Finding::warning(
            "store",
            format!(
                "{done}; it is too large to be checked whole within {} s",
                CHECK.as_secs()
            ),
            "`clew store backup` checks all of it",
        ),
        Err(error) => failed(&error),
    }
}

/// An entry of no meaning, which is taken away again.
async fn write_and_read(config: &Config) -> Result<bool, Error> {
    let folders = app::folders(&config.memory);
    let store = Store::open(&config.memory.store, &folders, system_clock()).await?;
    store.set_departure(NOWHERE, Some(system_clock()())).await?;
    let departures = store.departures().await?;
    let is_there = departures.iter().any(|(guild, _)| *guild == NOWHERE);
    store.set_departure(NOWHERE, None).await?;
    store.close().await?;
    Ok(is_there)
}

fn failed(error: &Error) -> Finding {
    let found = with_sources(error);
    if let Error::Damaged { place, .. } = error {
        let remedy = format!(
            "stop the bot, mv {place} {place}.damaged, and restore a backup: clew store import FILE"
        );
        return Finding::failed("store", found, remedy);
    }
    let remedy = "see that CONTEXT_STORE names what this user may read and write, and that it runs";
    Finding::failed("store", found, remedy)
}
