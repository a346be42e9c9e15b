//! The connection to Discord's gateway: one supervised task per shard, which
//! converts and forwards events and never waits for work.

mod backoff;
mod beside;
mod link;
mod plan;
mod read;
mod shard;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use twilight_gateway::{Config, ConfigBuilder, Intents};

pub use self::link::{Before, Dial, Link, NextFrame};

use self::link::Twilight;
use self::plan::Plan;
use self::shard::ShardTask;
use super::event::{FatalReason, ShardEvent};
use super::guild_state::GuildState;
use super::rest::Rest;
use super::session::{ShardProgress, ShardSession};
use clew_context::model::Clock;

/// Runs all shards until `shutdown`, then closes each so that it can be
/// resumed, from where [`ShardProgress::sessions`] says.
///
/// # Errors
/// A reason only a person can fix; all shards are closed by then.
pub async fn run(gateway: Gateway, rest: &Rest) -> Result<(), FatalReason> {
    let Some(plan) = plan::plan(&gateway, rest).await? else {
        return Ok(());
    };
    let dial = match &gateway.dial {
        Some(dial) => Arc::clone(dial),
        None => Arc::new(Twilight(twilight_config(&gateway.settings, &plan))),
    };
    let context = Arc::new(gateway);
    let mut running = ShardSet::begin(&context, &dial, plan.shards, true);
    loop {
        let count = running.count;
        tokio::select! {
            biased;
            ended = running.ended() => return ended,
            (next, gate) = beside::next_set(&context, &dial, rest, count) => {
                if gate.has_failed() {
                    continue;
                }
                running.close().await?;
                // What they did not hear, or not finish, is looked for, as after a lost session.
                for shard in 0..count {
                    context.progress().disconnected(shard, gate.since);
                }
                gate.open();
                running = next;
            }
        }
    }
}

/// All shards of a bot.
struct ShardSet {
    count: u32,
    tasks: JoinSet<Result<(), FatalReason>>,
    closing: CancellationToken,
    outcome: Result<(), FatalReason>,
}

impl ShardSet {
    /// So many connect; they may go on with the sessions of the process before.
    fn begin(context: &Arc<Gateway>, dial: &Arc<dyn Dial>, count: u32, resume: bool) -> Self {
        let closing = context.shutdown.child_token();
        let mut tasks = JoinSet::new();
        for number in 0..count {
            let session = context.settings.session(number, count).filter(|_| resume);
            let (context, dial) = (Arc::clone(context), Arc::clone(dial));
            let mut task = ShardTask::new(context, dial, number, count, closing.clone());
            if !resume {
                task.replaces();
            }
            tasks.spawn(task.run(session));
        }
        Self {
            count,
            tasks,
            closing,
            outcome: Ok(()),
        }
    }

    /// Waits until all have ended. If one ends by itself, the others are closed.
    async fn ended(&mut self) -> Result<(), FatalReason> {
        while let Some(ended) = self.tasks.join_next().await {
            let ended = ended.unwrap_or_else(|error| {
                tracing::error!(%error, "a shard's task ended by itself");
                Err(FatalReason::Broken)
            });
            if ended.is_err() {
                self.closing.cancel();
                self.outcome = ended;
            }
        }
        std::mem::replace(&mut self.outcome, Ok(()))
    }

    /// Closes all.
    async fn close(&mut self) -> Result<(), FatalReason> {
        self.closing.cancel();
        self.ended().await
    }
}

/// What the gateway needs.
pub struct Gateway {
    /// How to connect.
    pub settings: GatewaySettings,
    /// Updated with every event before it is forwarded.
    pub guild_state: Arc<GuildState>,
    /// Records every event; the receiver calls `finished`.
    pub progress: Arc<Mutex<ShardProgress>>,
    /// Where events go. A full queue blocks the shard and its heartbeats, so
    /// the receiver must not wait for work.
    pub events: mpsc::Sender<ShardEvent>,
    /// The time.
    pub clock: Clock,
    /// Ends the connection.
    pub shutdown: CancellationToken,
    /// How many shards there are to be; 0 for as many as Discord recommends at the start.
    pub shards: watch::Receiver<u32>,
    /// What connects instead of twilight.
    pub dial: Option<Arc<dyn Dial>>,
}

/// How to connect.
#[derive(Clone)]
pub struct GatewaySettings {
    /// The bot's token.
    pub token: String,
    /// The REST API's address, safe to log.
    pub api: String,
    /// `DISCORD_GATEWAY_URL`; otherwise what `/gateway/bot` returns.
    pub url: Option<String>,
    /// Request the message content intent.
    pub message_content: bool,
    /// Request the server members intent.
    pub members: bool,
    /// Sessions of the previous process.
    pub resume: Vec<ShardSession>,
    /// Seed of the random waits. Differs per process, so that processes cut off
    /// together do not all reconnect together.
    pub seed: u64,
}

impl GatewaySettings {
    /// The session to resume, if the number of shards still matches.
    fn session(&self, shard: u32, shards: u32) -> Option<ShardSession> {
        let mut sessions = self.resume.iter();
        let fits = |session: &&ShardSession| session.shard == shard && session.shards == shards;
        sessions.find(fits).cloned()
    }

    fn intents(&self) -> Intents {
        let mut intents = Intents::GUILDS | Intents::GUILD_MESSAGES | Intents::DIRECT_MESSAGES;
        intents.set(Intents::MESSAGE_CONTENT, self.message_content);
        intents.set(Intents::GUILD_MEMBERS, self.members);
        intents
    }
}

impl std::fmt::Debug for GatewaySettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewaySettings")
            .field("url", &self.url)
            .field("message_content", &self.message_content)
            .field("members", &self.members)
            .field("token", &"[redacted]")
            .finish_non_exhaustive()
    }
}

impl Gateway {
    fn progress(&self) -> std::sync::MutexGuard<'_, ShardProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn twilight_config(settings: &GatewaySettings, plan: &Plan) -> Config<plan::Identifies> {
    // Without a crypto provider the builder panics, even for ws://. If one is
    // installed already, this call fails, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ConfigBuilder::new(settings.token.clone(), settings.intents())
        .queue(plan.identifies.clone())
        .proxy_url(plan.url.trim_end_matches('/').to_owned())
        .build()
}
