//! Stores of the other kinds that do all that the bot's store does: each answer must be the same.

use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use clew_context::model::{Clock, Secret};
use clew_store::model::StoreAddress;
use clew_store::{Error, Folders, Store};
use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};

use crate::plan::{Plan, StoreKind};
use crate::postgres::{Postgres, query_each};
use crate::world::lock;

/// Where they are, below a world's folder. What is no longer in files is not removed from them.
pub(crate) const FOLDER: &str = "twins";
/// What each kind of store answers in its own way: sizes on disk, and what there is to tidy.
const OWN: [&str; 5] = ["sizes", "stats", "check", "tidy", "vacuum"];

const FILES: &str = "files";
/// What files do as databases do that also hold what files never do, or no longer.
const IN_FILES: [&str; 3] = ["facts", "cleared_at", "agent_created"];
/// What files do as databases do.
const OF_FILES: [&str; 5] = [
    "facts",
    "cleared_at",
    "agent_created",
    "guilds",
    "recent_direct",
];

/// The twins of a world's store. They live on a runtime of their own, in real time, in which a
/// world's time stands still.
pub(crate) struct Twins {
    runtime: Runtime,
    of: StoreKind,
    stores: Vec<(&'static str, Store)>,
    /// The database that PostgreSQL has for them.
    database: String,
    differences: Mutex<Vec<String>>,
}

impl Twins {
    /// Empty stores of the other kinds, below a world's folder.
    ///
    /// # Errors
    /// What kept one from being opened.
    pub(crate) fn open(plan: &Plan, folder: &Path, clock: &Clock) -> Result<Self, String> {
        let folder = folder.join(FOLDER);
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let mut addresses = Vec::new();
        addresses.push(match plan.store {
            StoreKind::Sqlite => (FILES, StoreAddress::Files(folder.join("users"))),
            StoreKind::Files => ("sqlite", StoreAddress::Sqlite(folder.join("twin.db"))),
        });
        let database = on(&runtime, || Box::pin(Postgres::shared().fresh_database()));
        let postgres = StoreAddress::Postgres(Secret::new(database.url));
        addresses.push(("postgres", postgres));
        let mut stores = Vec::new();
        for (name, address) in addresses {
            let folders = ["agents", "users", "servers"].map(|kind| folder.join(name).join(kind));
            let [agents, users, servers] = folders;
            let folders = Folders {
                agents,
                users,
                servers,
            };
            let clock = Arc::clone(clock);
            let opened = on(&runtime, || {
                Box::pin(Store::open(&address, &folders, clock))
            });
            stores.push((name, opened.map_err(|error| error.to_string())?));
        }
        Ok(Self {
            runtime,
            of: plan.store,
            stores,
            database: database.name,
            differences: Mutex::default(),
        })
    }

    /// Has the twins do the same, and notes what they answer otherwise.
    pub(crate) fn ask<'a, T: Debug + Send>(
        &'a self,
        operation: &str,
        answer: &Result<T, Error>,
        call: impl Fn(&'a Store) -> BoxFuture<'a, Result<T, Error>> + Sync,
    ) {
        for (name, store) in &self.stores {
            let twin = on(&self.runtime, || call(store));
            if !self.is_compared(name, operation) {
                continue;
            }
            let (answer, twin) = (compared(answer), compared(&twin));
            if answer != twin {
                let difference = format!("{operation}: {answer}, and {name}: {twin}");
                lock(&self.differences).push(difference);
            }
        }
    }

    /// Whether the world's store and its twin do the same here: files hold the last few turns of a
    /// conversation and fewer kinds.
    fn is_compared(&self, twin: &str, operation: &str) -> bool {
        let alike = match self.of {
            StoreKind::Files => OF_FILES.contains(&operation),
            StoreKind::Sqlite => twin != FILES || IN_FILES.contains(&operation),
        };
        !OWN.contains(&operation) && alike
    }

    /// What they answered otherwise, in order.
    pub(crate) fn differences(&self) -> Vec<String> {
        lock(&self.differences).clone()
    }
}

impl Drop for Twins {
    /// Thousands of databases would fill the disk.
    fn drop(&mut self) {
        let database = &self.database;
        let gone = [
            format!("DROP DATABASE {database} WITH (FORCE)"),
            format!("DROP ROLE {database}"),
        ];
        let server = Postgres::shared().admin_url("postgres");
        on(&self.runtime, || {
            Box::pin(async move {
                let [database, role] = &gone;
                query_each(&server, &[database, role]).await;
            })
        });
    }
}

/// An answer without the place from which a page's next one begins: stores number their own.
fn compared(answer: &impl Debug) -> String {
    let text = format!("{answer:?}");
    match text.rsplit_once("Cursor(") {
        Some((before, _)) => before.to_owned(),
        None => text,
    }
}

/// Does something on the twins' runtime, which the world's own waits for.
fn on<'a, T: Send>(runtime: &Runtime, call: impl FnOnce() -> BoxFuture<'a, T> + Send) -> T {
    thread::scope(|scope| {
        let done = scope.spawn(|| runtime.block_on(call()));
        done.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
