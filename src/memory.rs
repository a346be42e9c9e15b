//! Memory: what is remembered between turns, and what may be. History, facts,
//! snapshots, settings of servers and who opted out, over the stores.
//!
//! A turn asks with [`Memory::history`], [`Memory::read_facts`] and
//! [`Memory::profiles`] and tells with [`Memory::record`] and
//! [`Memory::learn`]; a store that fails costs its part of the prompt, never
//! the answer, and gets the turn when it is back. Commands get the error.
//!
//! Invariant: nothing of a user who opted out is ever given to a store; what
//! is purged is purged from every store and from memory.

mod circuit;
mod confirm;
mod facts;
mod history;
mod learn;
mod mend;
mod privacy;
mod recovery;
mod saving;
mod snapshots;
mod unsaved;
mod upkeep;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use crate::model::Agent;
use crate::telemetry::event::{StoreFailed, StoreOperation};
use crate::telemetry::{Ids, Telemetry, with_sources};
use clew_context::model::{ApplicationId, ChannelId, Clock, GuildId, OptOuts, UnixMillis, UserId};
use clew_store::model::{AgentName, GuildSettings, Scope, ScopeKind, SettingsChange};
use clew_store::{Backend, Store, Transcripts};

pub use confirm::EditOf;
pub use facts::{Readable, Remembered};
pub use history::{Exchange, Overview};
pub use learn::Lesson;
pub use mend::{Edit, Fetched, Mend, Missed};
pub use privacy::Exported;
pub use snapshots::{RestoreError, Restored, SaveError};

/// How much is remembered, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `CONTEXT_SCOPE`.
    pub scope: ScopeKind,
    /// `CONTEXT_ROLLING_WINDOW_S`.
    pub rolling_window: Duration,
    /// `MAX_CONTEXT_MESSAGES`.
    pub max_messages: usize,
    /// `MAX_CONTEXT_CHARS`.
    pub max_chars: usize,
    /// `LOAD_PAST_CONVERSATIONS`.
    pub load_past: usize,
    /// `IN_MEMORY_CONTEXT_ONLY`: no conversation reaches a disk.
    pub in_memory_only: bool,
    /// `MAX_USER_MEMORY`.
    pub max_user_facts: usize,
    /// `MAX_SERVER_MEMORY`.
    pub max_server_facts: usize,
    /// `MEMORY_SAVE_INTERVAL`.
    pub save_interval: Duration,
    /// `MEMORY_LEARN`.
    pub learn: bool,
    /// `RETENTION_DAYS`; for ever if none.
    pub retention: Option<Duration>,
    /// `GUILD_RETENTION_DAYS`.
    pub guild_retention: Duration,
    /// `MEM_FETCH_TIMEOUT_S`: what a store that hangs costs a turn.
    pub patience: Duration,
}

/// Where things are kept.
#[derive(Clone)]
pub struct Stores {
    /// What outlives the process.
    pub lasting: Arc<Store>,
    /// Conversations: the same, or one in memory (`IN_MEMORY_CONTEXT_ONLY`).
    pub conversations: Arc<Store>,
    /// `DM_LOGS_DIR`.
    pub transcripts: Option<Arc<Transcripts>>,
}

impl Stores {
    /// Each store once, with the name that people are told.
    fn all(&self) -> Vec<(&'static str, &Arc<Store>)> {
        let mut all = vec![("store", &self.lasting)];
        if !Arc::ptr_eq(&self.lasting, &self.conversations) {
            all.push(("memory", &self.conversations));
        }
        all
    }
}

/// What is remembered. One for the process.
pub struct Memory {
    stores: Stores,
    settings: Settings,
    clock: Clock,
    started: UnixMillis,
    telemetry: Telemetry,
    opt_outs: Arc<OptOuts>,
    guilds: Mutex<HashMap<GuildId, Arc<GuildSettings>>>,
    changing: tokio::sync::Mutex<()>,
    /// When agents came to be, as far as it was asked for.
    created: Mutex<HashMap<AgentName, UnixMillis>>,
    facts: facts::Cache,
    mends: mend::Queue,
    doubts: mend::Doubts,
    lessons: learn::Lessons,
    unsaved: unsaved::Unsaved,
    /// Of the lasting store, and of one for conversations.
    circuits: [circuit::Circuit; 2],
    /// A store failed, or a turn could not be stored.
    recovery: tokio::sync::Notify,
    /// The longest window that was read by, in milliseconds.
    longest_window: AtomicI64,
    /// Who we are, once Discord said so.
    application: OnceLock<ApplicationId>,
}

/// Where a conversation takes place, and with whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The key of its history.
    pub scope: Scope,
    /// The agent that answers.
    pub agent: AgentName,
    /// The server; none in direct messages.
    pub guild: Option<GuildId>,
    /// The channel or thread.
    pub channel: ChannelId,
    /// Who asks.
    pub asker: UserId,
    /// How far back it is remembered.
    pub rolling_window: Duration,
}

impl Memory {
    /// Over stores that are open; reads the settings of servers and who opted
    /// out.
    ///
    /// # Errors
    /// What the store says: without knowing who opted out nothing may be
    /// stored.
    pub async fn open(
        stores: Stores,
        settings: Settings,
        opt_outs: Arc<OptOuts>,
        clock: Clock,
        telemetry: Telemetry,
    ) -> Result<Self, clew_store::Error> {
        let lasting = &stores.lasting;
        let opted_out = lasting.opt_outs().await?;
        opt_outs.set(opted_out.into_iter().map(|(user, _)| user).collect());
        let guilds = lasting.settings().await?;
        let guilds = guilds
            .into_iter()
            .map(|(guild, settings)| (guild, Arc::new(settings)))
            .collect();
        Ok(Self {
            started: clock(),
            stores,
            settings,
            clock,
            telemetry,
            opt_outs,
            guilds: Mutex::new(guilds),
            changing: tokio::sync::Mutex::default(),
            created: Mutex::default(),
            facts: facts::Cache::default(),
            mends: mend::Queue::default(),
            doubts: mend::Doubts::default(),
            lessons: learn::Lessons::default(),
            unsaved: unsaved::Unsaved::default(),
            circuits: <[circuit::Circuit; 2]>::default(),
            recovery: tokio::sync::Notify::new(),
            application: OnceLock::new(),
            longest_window: AtomicI64::new(0),
        })
    }

    /// Says whose the lasting store is: what is in it is of the servers of one
    /// bot only.
    ///
    /// # Errors
    /// [`clew_store::Error::Owned`] if it is another bot's; what else the store
    /// says.
    pub async fn claim(&self, application: ApplicationId) -> Result<(), clew_store::Error> {
        let _same = self.application.set(application);
        self.stores.lasting.claim(application).await
    }

    /// The place of a conversation: a server's own setting of the window goes
    /// before the agent's, that before the operator's.
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

    /// Whether this user wants nothing to be kept or read.
    pub fn opted_out(&self, user: UserId) -> bool {
        self.opt_outs.current().contains(user)
    }

    /// The settings in effect.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the people of a server set for it.
    pub fn guild_settings(&self, guild: GuildId) -> Arc<GuildSettings> {
        let guilds = self.guilds.lock().unwrap_or_else(PoisonError::into_inner);
        guilds.get(&guild).cloned().unwrap_or_default()
    }

    /// Changes the settings of a server. They are on disk when this returns.
    ///
    /// # Errors
    /// What the store says; nothing has changed then.
    pub async fn change_settings(
        &self,
        guild: GuildId,
        change: &SettingsChange,
    ) -> Result<Arc<GuildSettings>, clew_store::Error> {
        // One at a time: the second builds on the first.
        let _changing = self.changing.lock().await;
        let changed = GuildSettings::clone(&self.guild_settings(guild)).changed(change);
        self.stores.lasting.set_settings(guild, &changed).await?;
        let changed = Arc::new(changed);
        let mut guilds = self.guilds.lock().unwrap_or_else(PoisonError::into_inner);
        guilds.insert(guild, Arc::clone(&changed));
        Ok(changed)
    }

    /// Whether facts are learnt there (`MEMORY_LEARN`, `/settings`).
    pub fn learns(&self, guild: Option<GuildId>) -> bool {
        let of_guild = guild.and_then(|guild| self.guild_settings(guild).learning);
        self.settings.learn && of_guild.unwrap_or(true)
    }

    /// The time by which turns are stored.
    pub fn now(&self) -> UnixMillis {
        (self.clock)()
    }

    /// A failure that costs a part of what is remembered, not the answer.
    fn failed(&self, ids: &Ids, operation: StoreOperation, error: &clew_store::Error) {
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

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("lasting", &self.stores.lasting)
            .field("conversations", &self.stores.conversations)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
