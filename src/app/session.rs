//! What one process leaves for the next: sessions to resume, gaps and the guild state. It is
//! written all the time, so that a kill leaves it, too.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::state_folder::StateFolder;
use super::{Running, SESSION_FILE};
use crate::telemetry::with_sources;
use crate::turn::Services;
use clew_context::model::Clock;
use clew_context::outside::blocking;
use clew_discord::guild_state::GuildState;
use clew_discord::session::{
    self, GUILD_FILE, Gap, Heard, Lasts, Left, SessionFile, ShardProgress, ShardSession,
};

/// How often the session is noted, if anything has happened...
const EVERY: Duration = Duration::from_secs(1);
/// ...and if nothing has: the next process has to know how old it is.
const AT_LEAST: Duration = Duration::from_secs(30);
/// After the guild state was written, so many times as long as that took nothing is written
/// of it: a large bot has many megabytes, of which something always changes.
const PAUSE_FACTOR: u32 = 50;
const NOT_SAVED: &str = "the session cannot be saved, so after a crash the next start begins a \
     fresh one: make STATE_DIR writable for the user that runs clew";

/// What the previous process has left.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) left: Option<Left>,
    pub(super) heard: Heard,
}

/// Reads what the previous process left. It stays until this one has written its own: if it is
/// killed before that, the next one resumes. If nothing says until when questions were heard,
/// they are this process's from now on.
pub(super) async fn take(
    folder: &StateFolder,
    token: &str,
    clock: &Clock,
    guild_state: &GuildState,
) -> Taken {
    let now = clock();
    let path = folder.path(SESSION_FILE);
    let absent = match session::load(&path, token, now) {
        Ok(mut left) => {
            left.restore(guild_state);
            return Taken {
                heard: left.session.heard(),
                left: Some(left),
            };
        }
        Err(absent) => absent,
    };
    if absent.is_ordinary() {
        tracing::info!(absent = %with_sources(&absent), "a fresh session begins");
    } else {
        tracing::warn!(path = %path.display(), error = %with_sources(&absent),
            "a fresh session begins: what was asked since the last stop is not answered. \
             Keep STATE_DIR readable for the user that runs clew and touched by nobody else");
    }
    let heard = absent.heard();
    if heard.whole_until.is_none() {
        let begun = match session::begin(&path, token, now, heard.alive) {
            Ok(()) => folder.keep(SESSION_FILE).await,
            failed => failed,
        };
        if let Err(error) = begun {
            tracing::warn!(path = %path.display(), %error, "{NOT_SAVED}");
        }
    }
    Taken { left: None, heard }
}

/// Keeps the files of a session up to date.
pub(super) struct SessionKeeper {
    folder: StateFolder,
    token: String,
    services: Arc<Services>,
    progress: Arc<Mutex<ShardProgress>>,
    /// The guild file, once it is written.
    guilds: Option<NotedGuilds>,
    /// When it may be written again.
    guilds_due: Instant,
    /// What the session file says, and since when.
    noted: Option<(Vec<ShardSession>, Vec<Gap>, Instant)>,
    has_failed: bool,
}

/// The guild state as it was written.
struct NotedGuilds {
    revision: u64,
    /// From these on it is made whole by what Discord sends again.
    sessions: Vec<ShardSession>,
}

impl SessionKeeper {
    pub(super) fn new(running: &Running<'_>, progress: &Arc<Mutex<ShardProgress>>) -> Self {
        Self {
            folder: running.folder.clone(),
            token: running.token.to_owned(),
            services: Arc::clone(running.services),
            progress: Arc::clone(progress),
            guilds: None,
            guilds_due: Instant::now(),
            noted: None,
            has_failed: false,
        }
    }

    /// Notes the session each second until the end. Returns itself for the last time.
    pub(super) async fn keep(mut self, ends: CancellationToken) -> Self {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while ends.run_until_cancelled(ticks.tick()).await.is_some() {
            self.note(Lasts::Process).await;
        }
        self
    }

    /// The last time: what is written outlasts a loss of power.
    pub(super) async fn leave(mut self) {
        self.noted = None;
        self.guilds = None;
        self.guilds_due = Instant::now();
        self.note(Lasts::System).await;
    }

    /// Whoever has our store has our questions; a refused bot has none.
    pub(super) async fn forget(mut self) {
        let (path, now) = (self.folder.path(SESSION_FILE), self.services.memory.now());
        self.write(SESSION_FILE, move || session::forget(&path, now))
            .await;
    }

    async fn note(&mut self, lasts: Lasts) {
        let services = &self.services;
        services.claims.tidy(services.memory.now()).await;
        // In this order: what is written of servers and gaps is never behind the sequences.
        let sessions = {
            let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.sessions()
        };
        if sessions.is_empty() {
            let (path, now) = (self.folder.path(SESSION_FILE), self.services.memory.now());
            self.write(SESSION_FILE, move || session::note_alive(&path, now, lasts))
                .await;
            return;
        }
        let revision = self.services.guild_state.revision();
        self.note_guilds(revision, &sessions, lasts).await;
        let shards = self.resumable(revision, sessions);
        let gaps = self.services.memory.gaps();
        let is_noted = |(of, known, at): &(Vec<ShardSession>, Vec<Gap>, Instant)| {
            *of == shards && *known == gaps && at.elapsed() < AT_LEAST
        };
        if self.noted.as_ref().is_some_and(is_noted) {
            return;
        }
        let us = self.services.guild_state.current_user();
        let now = self.services.memory.now();
        let file = SessionFile::new(now, &self.token, shards.clone(), us, gaps.clone());
        let path = self.folder.path(SESSION_FILE);
        if self
            .write(SESSION_FILE, move || session::save(&path, &file, lasts))
            .await
        {
            self.noted = Some((shards, gaps, Instant::now()));
        }
    }

    /// Writes the guild state if it has changed and is due.
    async fn note_guilds(&mut self, revision: u64, sessions: &[ShardSession], lasts: Lasts) {
        let is_noted = |noted: &NotedGuilds| noted.revision == revision;
        let began = Instant::now();
        if self.guilds.as_ref().is_some_and(is_noted) || began < self.guilds_due {
            return;
        }
        let (path, token) = (self.folder.path(SESSION_FILE), self.token.clone());
        let services = Arc::clone(&self.services);
        let saving = self.write(GUILD_FILE, move || {
            let (guild_state, opted_out) = (&services.guild_state, services.opt_outs.current());
            session::save_guilds(&path, &token, guild_state, &opted_out, lasts)
        });
        let is_saved = saving.await;
        self.guilds_due = Instant::now() + began.elapsed() * PAUSE_FACTOR;
        if is_saved {
            self.guilds = Some(NotedGuilds {
                revision,
                sessions: sessions.to_vec(),
            });
        }
    }

    /// Writes a file on another thread. Returns whether the next process finds it.
    async fn write(
        &mut self,
        file: &'static str,
        write: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> bool {
        let written = blocking(write).await;
        let written = match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(()) => self.folder.keep(file).await,
            failed => failed,
        };
        self.told(&written);
        written.is_ok()
    }

    /// From where these sessions can be resumed with the guild state as it is written.
    fn resumable(&self, revision: u64, sessions: Vec<ShardSession>) -> Vec<ShardSession> {
        let Some(guilds) = &self.guilds else {
            return Vec::new();
        };
        if guilds.revision == revision {
            return sessions;
        }
        let sessions = sessions.into_iter().filter_map(|session| {
            let mut written = guilds.sessions.iter();
            let is_same = |of: &&ShardSession| (of.shard, &of.id) == (session.shard, &session.id);
            let sequence = written.find(is_same)?.sequence.min(session.sequence);
            Some(ShardSession {
                sequence,
                ..session
            })
        });
        sessions.collect()
    }

    /// Says once that it cannot be written.
    fn told(&mut self, result: &io::Result<()>) {
        match result {
            Ok(()) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                let path = self.folder.path(SESSION_FILE);
                tracing::warn!(path = %path.display(), %error, "{NOT_SAVED}");
            }
            Err(_) => {}
        }
    }
}
