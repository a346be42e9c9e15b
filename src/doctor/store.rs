//! The store: whether it is there, of this version, and can be written and read.

use super::{Finding, Outcome};
use crate::app::{self, system_clock};
use crate::config::Config;
use clew_context::model::GuildId;
use clew_discord::session::LockError;
use clew_store::{Error, Store};

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

/// Writes and reads an entry, unless a bot uses the store.
async fn tried(config: &Config) -> Finding {
    let address = &config.memory.store;
    let folders = app::folders(&config.memory);
    if let Err(LockError::Held { .. }) = app::claim(config) {
        return match Store::look(address, &folders, system_clock()).await {
            Ok(store) => match store.stats().await {
                Ok(_) => Finding::ok(
                    "store",
                    format!("{address}: read; a bot uses it, so nothing was written"),
                ),
                Err(error) => failed(&error),
            },
            Err(error) => failed(&error),
        };
    }
    let store = match Store::open(address, &folders, system_clock()).await {
        Ok(store) => store,
        Err(error) => return failed(&error),
    };
    let done = write_and_read(&store).await;
    let closed = store.close().await;
    match done.and_then(|is_there| closed.map(|()| is_there)) {
        Ok(true) => Finding::ok("store", format!("{address}: written and read")),
        Ok(false) => Finding::failed(
            "store",
            format!("{address}: an entry that was written cannot be read"),
            "do not start the bot with it; restore a backup, or name another CONTEXT_STORE",
        ),
        Err(error) => failed(&error),
    }
}

/// An entry of no meaning, which is taken away again.
async fn write_and_read(store: &Store) -> Result<bool, Error> {
    store.set_departure(NOWHERE, Some(system_clock()())).await?;
    let departures = store.departures().await?;
    let is_there = departures.iter().any(|(guild, _)| *guild == NOWHERE);
    store.set_departure(NOWHERE, None).await?;
    Ok(is_there)
}

fn failed(error: &Error) -> Finding {
    let mut found = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        found = format!("{found}: {cause}");
        source = cause.source();
    }
    let remedy = "see that CONTEXT_STORE names what this user may read and write, and that it runs";
    Finding::failed("store", found, remedy)
}
