//! Memory and history: where conversations and facts are kept, who shares them, and
//! how much of them goes into a prompt.

use std::path::PathBuf;
use std::time::Duration;

use super::check::Checker;
use super::{store, variable as var};
use clew_store::model::{ScopeKind, StoreAddress};

/// The longest rolling window, in seconds: ten years.
const LONGEST_WINDOW_S: u64 = 10 * 366 * 24 * 60 * 60;
/// The most messages from earlier runs that one conversation loads.
const MOST_LOADED: usize = 100;
/// The largest `RECALL_MESSAGES`.
const MOST_RECALLED: usize = 20;
/// The longest time between two saves, in seconds: a day.
const LONGEST_SAVE_INTERVAL_S: f64 = 86_400.0;
/// The largest log that `MAX_CONVERSATION_LOG_SIZE` accepts, in bytes: a tebibyte.
const LARGEST_LOG: u64 = 1 << 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// `CONTEXT_STORE`.
    pub store: StoreAddress,
    /// `CONTEXT_SCOPE`; always `Member` with files.
    pub scope: ScopeKind,
    /// `CONTEXT_ROLLING_WINDOW_S`, at least a second.
    pub rolling_window: Duration,
    /// `MAX_CONTEXT_MESSAGES`: the most stored messages in a prompt.
    pub max_context_messages: usize,
    /// `MAX_CONTEXT_CHARS`: their total length in Unicode scalars.
    pub max_context_chars: usize,
    /// `LOAD_PAST_CONVERSATIONS`, at most 100.
    pub load_past: usize,
    /// `RECALL_MESSAGES`, at most 20: questions with their answers.
    pub recall: usize,
    /// `IN_MEMORY_CONTEXT_ONLY`: conversations never reach a disk.
    pub in_memory_only: bool,
    /// `RETENTION_DAYS`; if none, stored text is kept indefinitely.
    pub retention: Option<Duration>,
    /// `RECEIPT_DAYS`: how long what answers were made from is kept; if none, not at
    /// all. Always none with files.
    pub receipts: Option<Duration>,
    /// `GUILD_RETENTION_DAYS`: how long after we leave a server what is stored of
    /// it is kept; may be zero.
    pub guild_retention: Duration,
    /// `AGENTS_DIR`: a folder per agent.
    pub agents_dir: PathBuf,
    /// `DEFAULT_AGENT`: whether the built-in agent answers.
    pub default_agent: bool,
    /// `MEMORY_LEARN`: whether the model is asked for facts.
    pub learn: bool,
    /// `MAX_USER_MEMORY`: the most facts per user.
    pub max_user_facts: usize,
    /// `MAX_SERVER_MEMORY`: the most facts per server.
    pub max_server_facts: usize,
    /// `MEMORY_SAVE_INTERVAL`, at least a second.
    pub save_interval: Duration,
    /// `USER_PROFILE_DIR`, for the file store.
    pub user_profile_dir: PathBuf,
    /// `SERVER_PROFILE_DIR`, for the file store.
    pub server_profile_dir: PathBuf,
    /// `DM_LOGS_DIR`; without it direct messages are not logged.
    pub dm_logs_dir: Option<PathBuf>,
    /// `MAX_CONVERSATION_LOG_SIZE` in bytes; if none, there is no limit.
    pub max_log_bytes: Option<u64>,
}

impl MemoryConfig {
    /// Whether the store of conversations keeps calls of tools.
    pub fn keeps_tools(&self) -> bool {
        self.in_memory_only || !matches!(self.store, StoreAddress::Files(_))
    }
}

pub(super) fn read(check: &mut Checker) -> MemoryConfig {
    let (store, scope) = store::read(check);
    let is_files = matches!(store, StoreAddress::Files(_));
    check.optional_path(&var::TTS_PREFS_FILE);
    let memory = MemoryConfig {
        store,
        scope,
        rolling_window: Duration::from_secs(
            check.number(&var::CONTEXT_ROLLING_WINDOW_S, 1..=LONGEST_WINDOW_S),
        ),
        max_context_messages: check.number(&var::MAX_CONTEXT_MESSAGES, 0..=1_000),
        max_context_chars: check.number(&var::MAX_CONTEXT_CHARS, 100..=1_000_000),
        load_past: check.number(&var::LOAD_PAST_CONVERSATIONS, 0..=MOST_LOADED),
        recall: check.number(&var::RECALL_MESSAGES, 0..=MOST_RECALLED),
        in_memory_only: check.switch(&var::IN_MEMORY_CONTEXT_ONLY),
        retention: store::days(check, &var::RETENTION_DAYS),
        receipts: store::days(check, &var::RECEIPT_DAYS).filter(|_| !is_files),
        guild_retention: store::days(check, &var::GUILD_RETENTION_DAYS).unwrap_or_default(),
        agents_dir: check.path(&var::AGENTS_DIR),
        default_agent: check.switch(&var::DEFAULT_AGENT),
        learn: check.one_of(&var::MEMORY_LEARN, &[("off", false), ("model", true)]),
        max_user_facts: check.number(&var::MAX_USER_MEMORY, 0..=1_000),
        max_server_facts: check.number(&var::MAX_SERVER_MEMORY, 0..=10_000),
        save_interval: check.seconds(&var::MEMORY_SAVE_INTERVAL, 1.0..=LONGEST_SAVE_INTERVAL_S),
        user_profile_dir: check.path(&var::USER_PROFILE_DIR),
        server_profile_dir: check.path(&var::SERVER_PROFILE_DIR),
        dm_logs_dir: check.optional_path(&var::DM_LOGS_DIR),
        max_log_bytes: check.optional_number(&var::MAX_CONVERSATION_LOG_SIZE, 1..=LARGEST_LOG),
    };
    warn_about_odd(check, &memory);
    memory
}

/// Warns about settings that have no effect.
fn warn_about_odd(check: &mut Checker, memory: &MemoryConfig) {
    let logs = memory.dm_logs_dir.is_some();
    if logs && memory.in_memory_only {
        let why = "with IN_MEMORY_CONTEXT_ONLY=true: no log is written";
        check.warn_of_no_effect(&var::DM_LOGS_DIR, why);
    }
    if !logs && memory.max_log_bytes.is_some() {
        check.warn_of_no_effect(&var::MAX_CONVERSATION_LOG_SIZE, "without DM_LOGS_DIR");
    }
    if !matches!(memory.store, StoreAddress::Files(_)) {
        for variable in [&var::USER_PROFILE_DIR, &var::SERVER_PROFILE_DIR] {
            if check.is_set(variable) {
                check.warn_of_no_effect(variable, "without CONTEXT_STORE=files:DIR");
            }
        }
    }
    if memory.learn && !check.is_set(&var::LLM_BASE_URL) {
        check.warn_of_no_effect(&var::MEMORY_LEARN, "without LLM_BASE_URL");
    }
    if check.is_set(&var::TTS_PREFS_FILE) {
        check.warn("TTS_PREFS_FILE is accepted and never used: Clew does not speak");
    }
}
