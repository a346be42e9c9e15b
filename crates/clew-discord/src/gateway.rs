//! The connection to Discord's gateway: one supervised task a shard, which
//! converts and forwards and never waits on work.

mod backoff;
mod plan;
mod read;
mod shard;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use twilight_gateway::{Config, ConfigBuilder, Intents};

use self::plan::Plan;
use self::shard::ShardTask;
use super::event::{Delivery, FatalReason};
use super::facts::Facts;
use super::rest::Rest;
use super::session::{Progress, ShardSession};

/// Runs all shards until `shutdown`, then closes each so that its session can
/// be resumed. [`Progress::sessions`] then tells from where.
///
/// # Errors
/// What only a person can cure; all shards are closed then.
pub async fn run(gateway: Gateway, rest: &Rest) -> Result<(), FatalReason> {
    let Some(plan) = plan::plan(&gateway, rest).await? else {
        return Ok(());
    };
    let config = twilight_config(&gateway.settings, &plan);
    let context = Arc::new(gateway);
    let mut tasks = JoinSet::new();
    for number in 0..plan.shards {
        let resume = context.settings.session(number, plan.shards);
        let task = ShardTask::new(Arc::clone(&context), config.clone(), number, plan.shards);
        tasks.spawn(task.run(resume));
    }
    let mut outcome = Ok(());
    while let Some(ended) = tasks.join_next().await {
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => {
                context.shutdown.cancel();
                outcome = Err(reason);
            }
            Err(error) => {
                tracing::error!(%error, "a shard's task ended by itself");
                context.shutdown.cancel();
                outcome = Err(FatalReason::Broken);
            }
        }
    }
    outcome
}

/// What the gateway works with.
pub struct Gateway {
    /// How to connect.
    pub settings: GatewaySettings,
    /// Fed with every event before it is handed on.
    pub facts: Arc<Facts>,
    /// Told of every event; the receiver says `finished`.
    pub progress: Arc<Mutex<Progress>>,
    /// Where the events go. A full queue holds the shard up, and with it its
    /// heartbeats: the receiver must not wait on work.
    pub events: mpsc::Sender<Delivery>,
    /// Ends the connection.
    pub shutdown: CancellationToken,
}

/// How to connect.
#[derive(Clone)]
pub struct GatewaySettings {
    /// The bot's token.
    pub token: String,
    /// Where the REST API is, as it may be logged.
    pub api: String,
    /// `DISCORD_GATEWAY_URL`; else what `/gateway/bot` says.
    pub url: Option<String>,
    /// Ask for the message content intent.
    pub message_content: bool,
    /// Ask for the server members intent.
    pub members: bool,
    /// Sessions of the process before.
    pub resume: Vec<ShardSession>,
    /// What waits are drawn from: another one for each process, so that those
    /// that were cut off together do not come back together.
    pub seed: u64,
}

impl GatewaySettings {
    /// The session to resume, if it fits the number of shards.
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
    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn twilight_config(settings: &GatewaySettings, plan: &Plan) -> Config<plan::Identifies> {
    // Without a provider the builder panics, even for ws://; a second
    // installation is refused, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    ConfigBuilder::new(settings.token.clone(), settings.intents())
        .queue(plan.identifies.clone())
        .proxy_url(plan.url.trim_end_matches('/').to_owned())
        .build()
}
