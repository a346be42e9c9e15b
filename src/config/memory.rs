//! Memory and history: accepted and checked now, used by a later version, so
//! that settings written for it (seed S3) are neither refused nor misread.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;
use super::{Group, VARIABLES, variable as var};

/// Most messages of earlier runs that one conversation loads (seed S4).
const MOST_LOADED: usize = 100;
/// Longest time between two saves, seconds: a day.
const LONGEST_SAVE_INTERVAL_S: f64 = 86_400.0;

/// Largest log that `MAX_CONVERSATION_LOG_SIZE` accepts, bytes: a tebibyte.
const LARGEST_LOG: u64 = 1 << 40;

/// Memory and history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryConfig {
    /// `MAX_CONTEXT_MESSAGES`: stored messages that go into a prompt.
    pub max_context_messages: usize,
    /// `IN_MEMORY_CONTEXT_ONLY`: conversations never reach a disk.
    pub in_memory_only: bool,
    /// `MAX_USER_MEMORY`: facts a user.
    pub max_user_facts: usize,
    /// `MAX_SERVER_MEMORY`: facts a server.
    pub max_server_facts: usize,
    /// `MEMORY_SAVE_INTERVAL`.
    pub save_interval: Duration,
    /// `LOAD_PAST_CONVERSATIONS`, at most 100.
    pub load_past: usize,
    /// `USER_PROFILE_DIR`.
    pub user_profile_dir: PathBuf,
    /// `SERVER_PROFILE_DIR`.
    pub server_profile_dir: PathBuf,
    /// `DM_LOGS_DIR`.
    pub dm_logs_dir: PathBuf,
    /// `MAX_CONVERSATION_LOG_SIZE` in bytes; no limit when none.
    pub max_log_bytes: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Raw {
    max_context_messages: Option<String>,
    in_memory_context_only: Option<String>,
    max_user_memory: Option<String>,
    max_server_memory: Option<String>,
    memory_save_interval: Option<String>,
    load_past_conversations: Option<String>,
    user_profile_dir: Option<String>,
    server_profile_dir: Option<String>,
    dm_logs_dir: Option<String>,
    max_conversation_log_size: Option<String>,
    tts_prefs_file: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> MemoryConfig {
    let raw: Raw = check.raw();
    check.optional_path(&var::TTS_PREFS_FILE, raw.tts_prefs_file);
    warn_about_unused(check);
    MemoryConfig {
        max_context_messages: check.number(
            &var::MAX_CONTEXT_MESSAGES,
            raw.max_context_messages,
            0..=1_000,
        ),
        in_memory_only: check.switch(&var::IN_MEMORY_CONTEXT_ONLY, raw.in_memory_context_only),
        max_user_facts: check.number(&var::MAX_USER_MEMORY, raw.max_user_memory, 0..=1_000),
        max_server_facts: check.number(&var::MAX_SERVER_MEMORY, raw.max_server_memory, 0..=10_000),
        save_interval: check.seconds(
            &var::MEMORY_SAVE_INTERVAL,
            raw.memory_save_interval,
            1.0..=LONGEST_SAVE_INTERVAL_S,
        ),
        load_past: check.number(
            &var::LOAD_PAST_CONVERSATIONS,
            raw.load_past_conversations,
            0..=MOST_LOADED,
        ),
        user_profile_dir: check.path(&var::USER_PROFILE_DIR, raw.user_profile_dir),
        server_profile_dir: check.path(&var::SERVER_PROFILE_DIR, raw.server_profile_dir),
        dm_logs_dir: check.path(&var::DM_LOGS_DIR, raw.dm_logs_dir),
        max_log_bytes: check.optional_number(
            &var::MAX_CONVERSATION_LOG_SIZE,
            raw.max_conversation_log_size,
            1..=LARGEST_LOG,
        ),
    }
}

/// One line for all of them.
fn warn_about_unused(check: &mut Checker) {
    let set: Vec<&str> = VARIABLES
        .iter()
        .filter(|variable| variable.group == Group::Memory && check.is_set(variable))
        .map(|variable| variable.name)
        .collect();
    if !set.is_empty() {
        check.warn(format!(
            "accepted, not used by this version: {}",
            set.join(", ")
        ));
    }
}
