//! Memory: what is remembered between turns, and what may be. It manages history,
//! facts, snapshots, servers' settings and opt-outs, on top of the stores.
//!
//! A turn reads with [`Memory::earlier`], [`Memory::read_facts`] and [`Memory::profiles`],
//! and writes with [`Memory::record_early`], [`Memory::record`] and [`Memory::extract_facts`].
//! If a store fails, the turn loses that part of its prompt, never its answer, and
//! is stored once the store is back. Commands get the error.
//!
//! Invariant: nothing of a user who opted out is ever given to a store; what
//! is purged is purged from every store and from memory.

mod circuit;
mod confirm;
mod early;
mod extract;
mod facts;
mod history;
mod outputs;
mod privacy;
mod recall;
mod receipts;
mod reconcile;
mod recovery;
mod saving;
mod snapshots;
mod unsaved;
mod upkeep;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::config::MemoryConfig;
use crate::model::{Agent, Payer, Spender};
use crate::telemetry::event::{StoreFailed, StoreOperation};
use crate::telemetry::{Ids, Telemetry, with_sources};
use clew_context::model::{
    ApplicationId, ChannelId, Clock, GuildId, OptOuts, RoleId, UnixMillis, UserId,
};
use clew_store::model::{AgentName, GuildSettings, Scope, SettingsChange};
use clew_store::outputs::ToolOutputs;
use clew_store::{Store, Transcripts};

pub use clew_store::Error as StoreError;
pub use clew_store::outputs::{ContextPointer, Keywords, OutputId};
pub use confirm::{Confirming, EditOf};
pub use early::EarlyTurn;
pub use extract::{ExtractionInput, NoteOutcome};
pub use facts::{PromptFacts, Readable};
pub use history::{Exchange, Overview, ToolRound};
pub use outputs::{KeptOutput, MadeOutput};
pub use privacy::Exported;
pub use reconcile::{Became, DiscordChange, Edit, Fetched, UnderWay, Words};
pub use snapshots::{MOST_SAVED, RestoreError, Restored, SaveError};

/// What a store gave, or its error.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// The operator's settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How much is remembered, and how.
    pub memory: MemoryConfig,
    /// `ANSWER_MAX_MESSAGES`: by it an answer is known again on Discord.
    pub answer_messages: usize,
    /// `MEM_FETCH_TIMEOUT_S`: how long a turn waits for a store that hangs.
    pub patience: Duration,
}

#[derive(Clone)]
pub struct Stores {
    /// What outlives the process.
    pub lasting: Arc<Store>,
    /// Conversations: the same store, or one in memory (`IN_MEMORY_CONTEXT_ONLY`).
    pub conversations: Arc<Store>,
    /// `DM_LOGS_DIR`.
    pub transcripts: Option<Arc<Transcripts>>,
    /// `TOOL_OUTPUT_DIR`; none without tools.
    pub outputs: Option<Arc<ToolOutputs>>,
}

impl Stores {
    /// Each store once, with the name used for it in messages to people.
    fn all(&self) -> Vec<(&'static str, &Arc<Store>)> {
        let mut all = vec![("store", &self.lasting)];
        if !self.are_one() {
            all.push(("memory", &self.conversations));
        }
        all
    }

    /// Whether conversations are where everything else is.
    fn are_one(&self) -> bool {
        Arc::ptr_eq(&self.lasting, &self.conversations)
    }
}

/// How long after a process was last heard of it may have stored something, in milliseconds:
/// it is heard of each second, and a disk may be slow.
const STORED_SOON_AFTER: i64 = 5_000;

/// What is remembered. There is one per process.
pub struct Memory {
    stores: Stores,
    settings: MemoryConfig,
    /// `ANSWER_MAX_MESSAGES`.
    answer_messages: usize,
    /// `MEM_FETCH_TIMEOUT_S`.
    patience: Duration,
    clock: Clock,
    /// The latest time that was read or heard of, in Unix milliseconds.
    latest: AtomicI64,
    started: UnixMillis,
    telemetry: Telemetry,
    opt_outs: Arc<OptOuts>,
    /// Held while they are read, so that nothing older comes after what is newer.
    reads_opt_outs: tokio::sync::Mutex<()>,
    /// Whether opt-outs may be unfinished: at the start, and after an error of the store.
    owes_opt_outs: AtomicBool,
    guilds: Mutex<HashMap<GuildId, Arc<GuildSettings>>>,
    changing: tokio::sync::Mutex<()>,
    /// When agents were created, as far as looked up.
    created: Mutex<HashMap<AgentName, UnixMillis>>,
    facts: facts::Cache,
    changes: reconcile::ChangeQueue,
    doubts: reconcile::Doubts,
    /// Room for turns that wait for Discord to confirm their rows.
    confirms: tokio::sync::Semaphore,
    extractions: extract::Extractions,
    unsaved: unsaved::Unsaved,
    /// Turns that earlier processes left early.
    left: Mutex<Vec<early::LeftTurn>>,
    recall: recall::Recall,
    /// The lasting store's, and that of a separate one for conversations.
    circuits: [circuit::Circuit; 2],
    /// Notified when a store failed or a turn could not be stored.
    recovery: Notify,
    /// Which store another process has taken, and which process.
    lost: tokio::sync::watch::Sender<Option<(String, String)>>,
    /// The longest rolling window used so far, in milliseconds.
    longest_window: AtomicI64,
    /// Our application id, once Discord has told us.
    application: OnceLock<ApplicationId>,
    /// Shards that have been connected, of how many: they were told what servers we left.
    heard: Mutex<BTreeSet<(u32, u32)>>,
    /// Tells that a shard was told by resuming.
    resumed: Notify,
}

/// Where a conversation takes place, and who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The key of its history.
    pub scope: Scope,
    pub agent: AgentName,
    /// The server; none in direct messages.
    pub guild: Option<GuildId>,
    pub channel: ChannelId,
    pub asker: UserId,
    /// How far back the conversation is remembered.
    pub rolling_window: Duration,
}

impl Memory {
    /// Uses stores that are already open; reads the servers' settings and the
    /// opt-outs.
    ///
    /// # Errors
    /// The store's error: without knowing who opted out, nothing may be stored.
    pub async fn open(
        stores: Stores,
        settings: Settings,
        opt_outs: Arc<OptOuts>,
        clock: Clock,
        telemetry: Telemetry,
    ) -> Result<Self> {
        let lasting = &stores.lasting;
        let opted_out = lasting.opt_outs().await?;
        opt_outs.set(opted_out.into_iter().map(|(user, _)| user).collect());
        let guilds = lasting.settings().await?;
        let guilds = guilds
            .into_iter()
            .map(|(guild, settings)| (guild, Arc::new(settings)))
            .collect();
        let memory = Self {
            started: clock(),
            stores,
            settings: settings.memory,
            answer_messages: settings.answer_messages,
            patience: settings.patience,
            clock,
            latest: AtomicI64::new(i64::MIN),
            telemetry,
            opt_outs,
            reads_opt_outs: tokio::sync::Mutex::default(),
            owes_opt_outs: AtomicBool::new(true),
            guilds: Mutex::new(guilds),
            changing: tokio::sync::Mutex::default(),
            created: Mutex::default(),
            facts: facts::Cache::default(),
            changes: reconcile::ChangeQueue::default(),
            doubts: reconcile::Doubts::default(),
            confirms: confirm::room(),
            extractions: extract::Extractions::default(),
            unsaved: unsaved::Unsaved::default(),
            left: Mutex::default(),
            recall: recall::Recall::default(),
            circuits: <[circuit::Circuit; 2]>::default(),
            recovery: Notify::new(),
            lost: tokio::sync::watch::Sender::default(),
            application: OnceLock::new(),
            heard: Mutex::default(),
            resumed: Notify::new(),
            longest_window: AtomicI64::new(0),
        };
        memory.find_left().await;
        Ok(memory)
    }

    /// Marks the lasting store as this bot's: it holds the servers of one bot
    /// only.
    ///
    /// # Errors
    /// [`clew_store::Error::Owned`] if it belongs to another bot; otherwise the
    /// store's error.
    pub async fn claim(&self, application: ApplicationId) -> Result<()> {
        let _same = self.application.set(application);
        self.stores.lasting.claim(application).await
    }

    /// A shard is connected: what servers it left has been told. Before, we may be back in one.
    pub fn heard(&self, shard: u32, shards: u32, resumed: bool) {
        self.heard.lock().insert((shard, shards));
        if resumed {
            self.resumed.notify_one();
        }
    }

    /// The place of a conversation. For the rolling window, the server's setting
    /// takes precedence over the agent's, and that over the operator's.
    pub fn place(
        &self,
        agent: &Agent,
        guild: Option<GuildId>,
        channel: ChannelId,
        is_thread: bool,
        asker: UserId,
    ) -> Place {
        let kind = agent.scope.unwrap_or(self.settings.scope);
        let of_guild = guild.and_then(|guild| self.guild_settings(guild).rolling_window);
        Place {
            scope: Scope::of(kind, guild, channel, is_thread, asker),
            agent: agent.name.clone(),
            guild,
            channel,
            asker,
            rolling_window: of_guild
                .or(agent.rolling_window)
                .unwrap_or(self.settings.rolling_window),
        }
    }

    /// Whether this user has opted out of being remembered or read.
    pub fn opted_out(&self, user: UserId) -> bool {
        self.opt_outs.current().contains(user)
    }

    pub fn settings(&self) -> &MemoryConfig {
        &self.settings
    }

    /// The settings that a server's managers chose.
    pub fn guild_settings(&self, guild: GuildId) -> Arc<GuildSettings> {
        let guilds = self.guilds.lock();
        guilds.get(&guild).cloned().unwrap_or_default()
    }

    /// Whether a server's moderators blocked somebody; nobody is in direct messages.
    pub fn is_blocked(&self, guild: Option<GuildId>, user: UserId) -> bool {
        guild.is_some_and(|guild| self.guild_settings(guild).blocked.contains(&user))
    }

    /// Who pays for a question, within what their roles allow them in the server. Of unknown
    /// roles only everybody's counts.
    pub fn payer(
        &self,
        spender: Spender,
        guild: Option<GuildId>,
        roles: Option<&[RoleId]>,
    ) -> Payer {
        let limits = guild.map(|guild| {
            let settings = self.guild_settings(guild);
            settings.limits_of(guild, roles.unwrap_or_default())
        });
        Payer {
            spender,
            guild,
            limits: limits.unwrap_or_default(),
        }
    }

    /// Changes a server's settings. They are on disk when this returns.
    ///
    /// # Errors
    /// The store's error; nothing has changed then.
    pub async fn change_settings(
        &self,
        guild: GuildId,
        change: &SettingsChange,
    ) -> Result<Arc<GuildSettings>> {
        // One at a time: each change builds on the one before.
        let _changing = self.changing.lock().await;
        let changed = GuildSettings::clone(&self.guild_settings(guild)).changed(change);
        self.stores.lasting.set_settings(guild, &changed).await?;
        let changed = Arc::new(changed);
        let mut guilds = self.guilds.lock();
        guilds.insert(guild, Arc::clone(&changed));
        Ok(changed)
    }

    /// Whether facts are learnt there (`MEMORY_LEARN`, `/settings`).
    pub fn learns(&self, guild: Option<GuildId>) -> bool {
        let of_guild = guild.and_then(|guild| self.guild_settings(guild).learning);
        self.settings.learn && of_guild.unwrap_or(true)
    }

    /// The time with which turns are stored. It stands still while the system's clock lies
    /// behind what it was: what was stored before a gap stays before it.
    pub fn now(&self) -> UnixMillis {
        let now = self.system_now();
        UnixMillis(self.latest.fetch_max(now.0, Ordering::Relaxed).max(now.0))
    }

    /// What the system's clock says, also while it lies behind what it was.
    pub fn system_now(&self) -> UnixMillis {
        (self.clock)()
    }

    /// A time that nothing else has: all that was stored lies before it, and all that will be
    /// after it, also while the time stands still.
    fn now_apart(&self) -> UnixMillis {
        self.now();
        UnixMillis(self.latest.fetch_add(2, Ordering::Relaxed) + 1)
    }

    /// An earlier process was heard of at that time, and may have stored something soon after.
    pub fn not_before(&self, heard: UnixMillis) {
        let at = heard.0.saturating_add(STORED_SOON_AFTER);
        self.latest.fetch_max(at, Ordering::Relaxed);
    }

    /// Reports a failure that costs part of what is remembered, not the answer.
    fn failed(&self, ids: &Ids, operation: StoreOperation, error: &clew_store::Error) {
        self.report(ids, operation, error);
        let sides = circuit::Side::of(operation);
        self.note_failure(&self.stores.lasting, sides, error);
    }

    /// What was done of what costs no turn anything; a failure is reported.
    fn done<T>(&self, operation: StoreOperation, done: Result<T>) -> Option<T> {
        done.inspect_err(|error| self.failed(&Ids::default(), operation, error))
            .ok()
    }

    fn report(&self, ids: &Ids, operation: StoreOperation, error: &clew_store::Error) {
        tracing::warn!(error = %with_sources(error), operation = operation.as_str(),
            "the store failed");
        self.tell_failed(ids, operation, error.is_passing());
    }

    fn tell_failed(&self, ids: &Ids, operation: StoreOperation, transient: bool) {
        let failed = StoreFailed {
            operation,
            transient,
        };
        self.telemetry.emit(ids, failed);
    }
}

#[cfg(test)]
mod tests;
