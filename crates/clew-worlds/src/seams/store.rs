//! Something that goes wrong between the bot and its store.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use clew_context::model::{ApplicationId, ChannelId, GuildId, MessageId, UnixMillis, UserId};
use clew_store::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, ReceiptLimits, Scope,
    SnapshotId, StoredMessage, StoredReceipt, Subject,
};
use clew_store::{
    Backend, Capacity, Checked, ConversationStats, Cursor, Error, ExchangeQuery, Kind, KindStats,
    PartSize, Purge, Purged, Record, RecordKey, Records, Store, TurnKey, Visit, WindowQuery,
};
use tokio::time::sleep;

use super::net::Net;
use crate::history::{StoreCall, What};
use crate::world::{StoreTrouble, lock};

/// A disk that is full (ENOSPC).
const FULL: i32 = 28;
/// How long the bot waits for a call.
const PATIENCE: Duration = Duration::from_secs(5);

/// A store with its troubles.
pub(crate) struct TroubledStore {
    store: Arc<Store>,
    net: Net,
    /// In a cluster: the tenure that may use it.
    epoch: Option<u32>,
    /// Whether it did what it was asked last.
    last: Mutex<BTreeMap<StoreCall, bool>>,
}

impl TroubledStore {
    pub(crate) fn around(store: Store, net: Net) -> Store {
        Self {
            store: Arc::new(store),
            net,
            epoch: None,
            last: Mutex::default(),
        }
        .into()
    }

    /// One that others use as well, each in its tenure.
    pub(crate) fn of_tenure(store: Arc<Store>, net: Net, epoch: u32) -> Store {
        Self {
            store,
            net,
            epoch: Some(epoch),
            last: Mutex::default(),
        }
        .into()
    }

    /// Whether it is another's by now.
    fn is_held(&self) -> bool {
        let is_last = |epoch| self.net.world.database.is_last(epoch);
        self.epoch.is_some_and(|epoch| !is_last(epoch))
    }

    fn is_over(&self) -> bool {
        let number = self.net.process.number();
        self.epoch.is_some_and(|epoch| epoch != number)
    }

    /// Does a call, or not, or not in time.
    async fn go<T>(
        &self,
        call: StoreCall,
        operation: &'static str,
        done: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        self.net.process.cross().await;
        let trouble = {
            let mut troubles = self.net.world.troubles();
            let fits = |trouble: &StoreTrouble| {
                call == StoreCall::Writes || *trouble != StoreTrouble::Full
            };
            let next = troubles.store.first().copied().filter(fits);
            if next.is_some() {
                troubles.store.remove(0);
            }
            next
        };
        let done = async {
            if self.is_held() {
                return Err(held());
            }
            done.await
        };
        let answer = match trouble {
            _ if self.epoch.is_some() && self.net.is_parted() => Err(unavailable(operation)),
            None => done.await,
            Some(StoreTrouble::Fails) => Err(unavailable(operation)),
            Some(StoreTrouble::AppliedButLost) => {
                let _ = done.await;
                Err(unavailable(operation))
            }
            Some(StoreTrouble::Full) => Err(Error::Io {
                operation,
                path: PathBuf::from("store"),
                source: io::Error::from_raw_os_error(FULL),
            }),
            Some(StoreTrouble::Held) => Err(held()),
            Some(StoreTrouble::Hangs(ms)) => {
                let hangs = Duration::from_millis(ms);
                sleep(hangs.min(PATIENCE)).await;
                if hangs > PATIENCE && !self.is_over() {
                    // Failed for whom waits for it.
                    lock(&self.last).remove(&call);
                    let process = self.net.process.number();
                    self.net.world.note(What::StoreHangs { process, call });
                    sleep(hangs.saturating_sub(PATIENCE)).await;
                }
                done.await
            }
        };
        let pause = Duration::from_micros(self.net.world.between(0, 3) * 1_000);
        if !pause.is_zero() {
            sleep(pause).await;
        }
        self.net.process.cross().await;
        let error = answer.as_ref().err();
        self.note(call, operation, !error.is_some_and(Error::is_of_store));
        answer
    }

    /// Notes whether it does what it is asked, if that is news.
    fn note(&self, call: StoreCall, operation: &'static str, is_done: bool) {
        // One whose tenure is over is not the bot's store any more.
        if lock(&self.last).insert(call, is_done) == Some(is_done) || self.is_over() {
            return;
        }
        self.net.world.note(What::StoreDid {
            process: self.net.process.number(),
            call,
            operation,
            is_done,
        });
    }
}

/// Another process has it.
pub(super) fn held() -> Error {
    Error::Held {
        place: "store".to_owned(),
        holder: "another".to_owned(),
    }
}

fn unavailable(operation: &'static str) -> Error {
    Error::Unavailable {
        operation,
        source: "it is not there".into(),
    }
}

/// Calls of a store that may go wrong.
macro_rules! troubled {
    ($($call:ident $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Backend for TroubledStore {
            fn capacity(&self) -> Capacity {
                self.store.capacity()
            }

            $(
                async fn $name(&self, $($argument: $kind),*) -> Result<$answer, Error> {
                    let done = async {
                        let answer = self.store.$name($($argument),*).await;
                        if let Some(twins) = &self.net.world.twins {
                            twins.ask(stringify!($name), &answer, |twin| twin.$name($($argument),*));
                        }
                        answer
                    };
                    self.go(StoreCall::$call, stringify!($name), done).await
                }
            )*

            async fn claim(&self, application: ApplicationId) -> Result<(), Error> {
                if self.is_held() {
                    return Err(held());
                }
                self.store.claim(application).await
            }

            async fn each_record(&self, visit: Visit<'_>) -> Result<(), Error> {
                self.store.each_record(visit).await
            }

            async fn close(&self) -> Result<(), Error> {
                if self.epoch.is_some() {
                    // Others go on with it.
                    return Ok(());
                }
                self.store.close().await
            }
        }
    };
}

troubled! {
    Writes try_writing() -> ();
    Writes append(turn: &[StoredMessage]) -> u64;
    Writes append_with(turn: &[StoredMessage], receipt: &StoredReceipt) -> u64;
    Writes append_early(turn: &[StoredMessage]) -> ();
    Writes take_back(key: &TurnKey) -> u64;
    Reads early(limit: usize) -> Vec<StoredMessage>;
    Reads read_window(query: &WindowQuery) -> Vec<StoredMessage>;
    Reads read_exchanges(query: &ExchangeQuery) -> Vec<StoredMessage>;
    Reads conversation(scope: Scope, now: UnixMillis) -> ConversationStats;
    Writes delete_conversation(scope: Scope) -> u64;
    Writes clear(key: &ClearKey, at: UnixMillis) -> ();
    Reads cleared_at(agent: &AgentName, guild: Option<GuildId>, user: UserId) -> Option<UnixMillis>;
    // It is part of reading, and writes the first time only.
    Reads agent_created(agent: &AgentName, now: UnixMillis) -> UnixMillis;
    Reads own_messages(owner: UserId, agent: &AgentName, guild: Option<GuildId>, since: UnixMillis) -> Vec<StoredMessage>;
    Reads snapshots(owner: UserId, guild: Option<GuildId>, agent: Option<&AgentName>, limit: usize) -> Vec<ContextSnapshotInfo>;
    Reads snapshot(owner: UserId, id: &SnapshotId) -> Option<ContextSnapshot>;
    Reads receipt_of(channel: ChannelId, message: MessageId) -> Option<StoredReceipt>;
    Reads last_receipt(channel: ChannelId, reader: UserId) -> Option<StoredReceipt>;
    Writes expire_receipts(limits: ReceiptLimits) -> u64;
    Reads facts(subject: Subject, most: usize) -> Vec<Fact>;
    Writes purge(purge: &Purge) -> Purged;
    Writes edit_message(channel: ChannelId, message: MessageId, text: &str) -> u64;
    Reads held_messages(channel: ChannelId, from: MessageId, to: MessageId) -> Vec<MessageId>;
    Reads guilds() -> Vec<GuildId>;
    Reads recent_direct(limit: usize) -> Vec<ChannelId>;
    Reads members(guild: GuildId) -> Vec<UserId>;
    Writes sweep(now: UnixMillis) -> u64;
    Reads records(kind: Kind, owner: Option<UserId>, after: Option<&Cursor>, limit: usize) -> Records;
    Writes write(records: &[Record]) -> ();
    Writes remove(keys: &[RecordKey]) -> u64;
    Reads stats() -> Vec<KindStats>;
    Reads sizes() -> Vec<PartSize>;
    Reads tidy() -> ();
    Reads check(most: Duration) -> Checked;
    Writes vacuum() -> ();
}
