//! What one process leaves for the next: sessions to resume, answered
//! triggers and the guild state.

use std::path::Path;

use crate::telemetry::with_sources;
use clew_context::model::{Clock, MessageId, OptedOut};
use clew_discord::guild_state::GuildState;
use clew_discord::session::{self, Gap, SessionFile, ShardSession};

/// The session file of one bot.
pub(super) struct SessionHandover<'a> {
    /// Where it is.
    pub(super) path: &'a Path,
    /// The bot's token: another bot's file is not used.
    pub(super) token: &'a str,
    /// The time, since an old file is of no use.
    pub(super) clock: &'a Clock,
}

impl SessionHandover<'_> {
    /// What the previous process left, taken only once: if this one is killed, the
    /// next starts a fresh session rather than answer twice.
    pub(super) fn take(&self, guild_state: &GuildState) -> Option<SessionFile> {
        let loaded = session::load(self.path, self.token, (self.clock)());
        if self.path.exists()
            && let Err(error) = std::fs::remove_file(self.path)
        {
            tracing::warn!(path = %self.path.display(), %error,
                "the session file cannot be removed: delete it, and make STATE_DIR writable for \
                 the user that runs clew");
        }
        match loaded {
            Ok(mut file) => {
                file.restore(guild_state);
                Some(file)
            }
            Err(absent) if absent.is_ordinary() => {
                tracing::info!(%absent, "a fresh session begins");
                None
            }
            Err(absent) => {
                tracing::warn!(path = %self.path.display(), error = %with_sources(&absent),
                    "a fresh session begins: what was asked since the last stop is not answered. \
                     Keep STATE_DIR readable for the user that runs clew and touched by nobody else");
                None
            }
        }
    }

    /// Saves these sessions, unless there are none.
    pub(super) fn leave(
        &self,
        sessions: Vec<ShardSession>,
        answered: Vec<MessageId>,
        guild_state: &GuildState,
        opted_out: &OptedOut,
        gaps: Vec<Gap>,
    ) {
        let now = (self.clock)();
        let file = SessionFile::new(
            now,
            self.token,
            sessions,
            answered,
            guild_state,
            opted_out,
            gaps,
        );
        let Some(file) = file else {
            return;
        };
        if let Err(error) = session::save(self.path, &file) {
            tracing::warn!(path = %self.path.display(), %error,
                "the session cannot be saved, so the next start begins a fresh one: make STATE_DIR \
                 writable for the user that runs clew");
        }
    }
}
