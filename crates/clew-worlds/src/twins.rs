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
use crate::postgres::Postgres;
use crate::world::lock;

/// What each kind of store answers in its own way: sizes on disk, what there is to tidy, the
/// number of a turn's place, and what lies before or behind such a number. That these places are
/// in order, rows show.
const OWN: [&str; 7] = [
    "sizes",
    "stats",
    "check",
    "tidy",
    "vacuum",
    "append",
    "read_exchanges",
];

/// What files do as databases do.
const OF_FILES: [&str; 5] = [
    "facts",
    "cleared_at",
    "agent_created",
    "guilds",
    "recent_direct",
];

/// Comes before the place of a turn in its conversation.
const ORDINAL: &str = "ordinal: ";
/// Comes before the time of a row.
const TIME: &str = "timestamp: UnixMillis(";
/// Begins a row.
const ROW: &str = "StoredMessage {";

/// The twins of a world's store. They live on a runtime of their own, in real time, in which a
/// world's time stands still.
pub(crate) struct Twins {
    runtime: Runtime,
    of: StoreKind,
    /// Whether the turns of a conversation run one after the other.
    is_in_order: bool,
    stores: Vec<(&'static str, Store)>,
    differences: Mutex<Vec<String>>,
}

impl Twins {
    /// Empty stores of the other kinds, below a folder.
    ///
    /// # Errors
    /// What kept one from being opened.
    pub(crate) fn open(plan: &Plan, folder: &Path, clock: &Clock) -> Result<Self, String> {
        let is_shared = |(name, scope): &(&str, &str)| {
            *name == "CONTEXT_SCOPE" && ["thread", "user"].contains(scope)
        };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let mut addresses = Vec::new();
        if plan.store != StoreKind::Sqlite {
            addresses.push(("sqlite", StoreAddress::Sqlite(folder.join("twin.db"))));
        }
        let database = on(&runtime, || Box::pin(Postgres::shared().fresh_database()));
        let url = Secret::new(database.url);
        addresses.push(("postgres", StoreAddress::Postgres(url)));
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
            is_in_order: !plan.settings.iter().any(is_shared),
            stores,
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
            if !self.is_compared(operation) {
                continue;
            }
            let (answer, twin) = (self.text(answer), self.text(&twin));
            if answer != twin {
                let difference = format!("{operation}: {answer}, and {name}: {twin}");
                lock(&self.differences).push(difference);
            }
        }
    }

    /// An answer as it is compared. Of turns that run at the same time in one conversation, one
    /// store keeps the order in which answers were ready, another that in which they were
    /// posted, and times follow the order.
    fn text<T: Debug>(&self, answer: &Result<T, Error>) -> String {
        let text = without(ORDINAL, &format!("{answer:?}"));
        if self.is_in_order {
            return text;
        }
        let rows = text.split(ROW).map(|row| without(TIME, row));
        // The last one ends the list.
        let ends = [' ', ',', ']', ')', '}'];
        let mut rows: Vec<String> = rows
            .map(|row| row.trim_end_matches(ends).to_owned())
            .collect();
        rows.sort_unstable();
        rows.concat()
    }

    /// Whether the world's store and its twin do the same here: files hold the last few turns of a
    /// conversation and fewer kinds.
    fn is_compared(&self, operation: &str) -> bool {
        let is_in_files = self.of == StoreKind::Sqlite || OF_FILES.contains(&operation);
        !OWN.contains(&operation) && is_in_files
    }

    /// What they answered otherwise, in order.
    pub(crate) fn differences(&self) -> Vec<String> {
        lock(&self.differences).clone()
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

/// A text without the numbers that come after a word.
fn without(word: &str, text: &str) -> String {
    let mut parts = text.split(word);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.trim_start_matches(|letter: char| letter.is_ascii_digit())
    })
}
