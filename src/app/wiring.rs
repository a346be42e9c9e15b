//! Builds the parts from the settings.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::secret::Keys;
use super::state_folder::StateFolder;
use super::when_ready::when_ready;
use super::{Outside, cluster, state_file, token_file};

use crate::agents::Agents;
use crate::config::{Config, Endpoint, LlmConfig, McpListen, MemoryConfig, MessageContent};
use crate::engine::deliver::MAX_ATTACHMENT_BYTES;
use crate::memory::{self, Memory, Stores};
use crate::runs::{Approvals, CatchUpPace, Connections, OpenApprovals, Runs};
use crate::telemetry::event::{self, Answers, Capped, Started};
use crate::telemetry::{self, IdStyle, Telemetry};
use crate::tools::ToolServers;
use crate::turn::{LastRefusals, Services, TurnSettings};
use crate::{app, llm};
use clew_context::collect::NegativeCache;
use clew_context::engine::route::Rules;
use clew_context::engine::window::Window;
use clew_context::model::{Clock, OptOuts};
use clew_context::outside::Sending;
use clew_discord::event::FatalReason;
use clew_discord::gateway::GatewaySettings;
use clew_discord::guild_state::GuildState;
use clew_discord::rest::Rest;
use clew_discord::session::ShardSession;
use clew_store::outputs::{Disk, FileSystem, InMemory, OutputLimits, OutputSettings, ToolOutputs};
use clew_store::{Folders, Store, Transcripts};

/// The address of the REST API, unless `DISCORD_API_URL` names another.
const DISCORD: &str = "https://discord.com";
/// The most bytes of tools' results that are kept in memory (`IN_MEMORY_CONTEXT_ONLY`).
const MOST_IN_MEMORY: u64 = 32 << 20;

pub(super) async fn services(
    config: &Config,
    token: &str,
    telemetry: Telemetry,
    keys: Keys,
    outside: &Outside,
    folder: &StateFolder,
) -> Result<Services, app::Error> {
    let clock = &outside.clock;
    let sending = outside.sending(folder.lease().cloned());
    let api = config.discord.api.as_ref().map(Endpoint::url);
    let opt_outs = Arc::new(OptOuts::default());
    let opening = || remembered(config, &opt_outs, outside, folder, &telemetry);
    let memory = if folder.tenure().is_some() {
        // Whoever cannot open it lets another process try.
        opening().await?
    } else {
        when_ready(opening).await?
    };
    let builtin = config.memory.default_agent.then(|| config.prompt.clone());
    let agents_dir = Some(config.memory.agents_dir.clone());
    let tokens = token_meter(config, folder, clock);
    let claims = cluster::claims(folder, &keys.claims, clock).await?;
    Ok(Services {
        rest: Rest::through(token, api.as_deref(), sending.clone())?,
        guild_state: Arc::new(GuildState::default()),
        model: model(config, tokens.as_ref(), &sending)?,
        tokens,
        telemetry,
        window: Mutex::new(Window::new(config.window)),
        opt_outs,
        negative_cache: NegativeCache::default(),
        searched_servers: Arc::default(),
        tool_servers: ToolServers::start(
            config.mcp.as_ref(),
            super::seen_tools(config),
            folder.lease().cloned(),
        ),
        memory,
        claims: Arc::new(claims),
        agents: Agents::load(agents_dir, builtin, Instant::now()).await,
        runs: Runs::new(
            config.runs.most,
            state_file::left(folder.dir(), state_file::RUNS),
        ),
        approvals: Approvals::new(
            state_file::left::<OpenApprovals>(folder.dir(), state_file::APPROVALS),
            clock(),
        ),
        connections: Connections::new(
            state_file::left(folder.dir(), state_file::CONNECTIONS),
            clock(),
        ),
        catch_up_pace: CatchUpPace::default(),
        image_room: Arc::default(),
        settings: turn_settings(config, keys.frames),
        refusals: LastRefusals::default(),
        observer: None,
    })
}

/// `secret`: for the nonces of frames.
pub(super) fn turn_settings(config: &Config, secret: Vec<u8>) -> TurnSettings {
    TurnSettings {
        limits: config.limits,
        proxies: config.triggers.proxies.clone(),
        reply_target: config.reply_target,
        max_messages: config.answers.max_messages,
        tools: config.tools,
        receipt_button: config.answers.receipt_button,
        mcp_listen: config.mcp_listen.and_then(McpListen::address),
        runs: config.runs.bounds,
        secret,
    }
}

async fn remembered(
    config: &Config,
    opt_outs: &Arc<OptOuts>,
    outside: &Outside,
    folder: &StateFolder,
    telemetry: &Telemetry,
) -> Result<Memory, clew_store::Error> {
    let stores = stores(config, outside, folder).await?;
    let (opt_outs, clock) = (Arc::clone(opt_outs), Arc::clone(&outside.clock));
    let settings = memory_settings(config);
    Memory::open(stores, settings, opt_outs, clock, telemetry.clone()).await
}

pub(super) fn memory_settings(config: &Config) -> memory::Settings {
    memory::Settings {
        memory: config.memory.clone(),
        answer_messages: config.answers.max_messages,
        patience: config.limits.fetch_timeout,
    }
}

/// Opens what `CONTEXT_STORE` names. Conversations that must not reach a disk get a
/// separate store in memory, and are not logged.
async fn stores(
    config: &Config,
    outside: &Outside,
    folder: &StateFolder,
) -> Result<Stores, clew_store::Error> {
    let clock = &outside.clock;
    let outputs = outputs(config, clock).await?;
    let config = &config.memory;
    let lasting = match folder.tenure() {
        Some(tenure) => tenure.open_store(&folders(config)).await?,
        None => Store::open_patiently(&config.store, &folders(config), Arc::clone(clock)).await?,
    };
    let lasting = Arc::new(match &outside.store {
        Some(wrap) => wrap(lasting),
        None => lasting,
    });
    if config.in_memory_only {
        return Ok(Stores {
            lasting,
            conversations: Arc::new(Store::in_memory().await?),
            transcripts: None,
            outputs,
        });
    }
    let transcripts = match &config.dm_logs_dir {
        Some(dir) => Some(Transcripts::open(dir.clone(), config.max_log_bytes).await?),
        None => None,
    };
    Ok(Stores {
        conversations: Arc::clone(&lasting),
        lasting,
        transcripts: transcripts.map(Arc::new),
        outputs,
    })
}

/// Opens `TOOL_OUTPUT_DIR`. Without tools only to remove what an earlier process left.
async fn outputs(
    config: &Config,
    clock: &Clock,
) -> Result<Option<Arc<ToolOutputs>>, clew_store::Error> {
    let kept = &config.tool_outputs;
    // A file on the machine of a process that stands by would be out of an erasure's reach.
    let in_memory = config.memory.in_memory_only || config.cluster;
    if in_memory && kept.dir.exists() {
        // What an earlier process left, which no purge would reach.
        let left = OutputSettings::new(&kept.dir);
        ToolOutputs::open(left, Arc::new(Disk::default()), Arc::clone(clock)).await?;
    }
    if !config.tools.is_on() && (in_memory || !kept.dir.exists()) {
        return Ok(None);
    }
    let (files, most): (Arc<dyn FileSystem>, u64) = if in_memory {
        (Arc::new(InMemory::default()), MOST_IN_MEMORY)
    } else {
        (Arc::new(Disk::default()), u64::MAX)
    };
    let limits = OutputLimits::default();
    let settings = OutputSettings {
        limits: OutputLimits {
            bytes: limits.bytes.min(most),
            ..limits
        },
        resume: kept.resume,
        ..OutputSettings::new(&kept.dir)
    };
    let outputs = ToolOutputs::open(settings, files, Arc::clone(clock)).await?;
    Ok(Some(Arc::new(outputs)))
}

/// The folders that stores use in addition to what `CONTEXT_STORE` names.
pub fn folders(config: &MemoryConfig) -> Folders {
    Folders {
        agents: config.agents_dir.clone(),
        users: config.user_profile_dir.clone(),
        servers: config.server_profile_dir.clone(),
    }
}

/// Counts the model's tokens, of which servers may limit some.
fn token_meter(
    config: &Config,
    folder: &StateFolder,
    clock: &Clock,
) -> Option<Arc<llm::TokenMeter>> {
    config.llm.as_ref()?;
    let limits = config.turns.tokens;
    let kept = token_file::load(folder.dir());
    let meter = llm::TokenMeter::new(limits, kept, Arc::clone(clock));
    Some(Arc::new(meter))
}

fn model(
    config: &Config,
    tokens: Option<&Arc<llm::TokenMeter>>,
    sending: &Sending,
) -> Result<Option<llm::ModelServers>, llm::SetupError> {
    let Some(model) = &config.llm else {
        return Ok(None);
    };
    let (first, fallbacks) = model_settings(model);
    let servers = llm::ModelServers::new(first, fallbacks, seed())?.through(sending);
    Ok(Some(match tokens {
        Some(meter) => servers.metered(Arc::clone(meter)),
        None => servers,
    }))
}

/// The model server that is asked first, and those that are asked when it cannot answer.
pub fn model_settings(model: &LlmConfig) -> (llm::ModelSettings, Vec<llm::ModelSettings>) {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a temperature has two digits"
    )]
    let temperature = model.temperature.map(|temperature| temperature as f32);
    let first = llm::ModelSettings {
        base_url: model.base_url.url(),
        api_key: model.api_key.clone(),
        model: model.model.clone(),
        timeout: model.timeout,
        max_output_tokens: model.max_output_tokens,
        context_tokens: model.context_tokens,
        max_answer_bytes: MAX_ATTACHMENT_BYTES,
        temperature,
        vision: model.vision,
    };
    let fallbacks = model.fallbacks.iter().map(|fallback| llm::ModelSettings {
        base_url: fallback.base_url.url(),
        api_key: fallback.api_key.clone(),
        model: fallback.model.clone(),
        context_tokens: None,
        ..first.clone()
    });
    let fallbacks = fallbacks.collect();
    (first, fallbacks)
}

/// A number that differs between processes.
fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

pub(super) fn gateway(config: &Config, token: &str, resume: Vec<ShardSession>) -> GatewaySettings {
    GatewaySettings {
        token: token.to_owned(),
        api: match &config.discord.api {
            Some(api) => api.url(),
            None => DISCORD.to_owned(),
        },
        url: config.discord.gateway.as_ref().map(Endpoint::url),
        message_content: sees_content(config),
        members: config.discord.members_intent,
        resume,
        seed: seed(),
    }
}

pub(super) fn rules(config: &Config) -> Rules {
    Rules {
        access: config.access.clone(),
        triggers: config.triggers.clone(),
        message_content: sees_content(config),
    }
}

fn sees_content(config: &Config) -> bool {
    config.discord.message_content == MessageContent::Required
}

pub(super) fn telemetry(config: &Config, ids: IdStyle) -> telemetry::TelemetrySettings {
    telemetry::TelemetrySettings {
        dir: config.telemetry.dir.clone(),
        keep_days: config.telemetry.keep_days.map_or(0, |days| days as usize),
        log_subsys: config.telemetry.context_subsys.clone(),
        ids,
    }
}

pub(super) fn started(config: &Config, node: Option<&str>) -> Started {
    Started {
        node: node.map(str::to_owned),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        answers: if config.llm.is_some() {
            Answers::Model
        } else {
            Answers::Inspector
        },
        model: config.llm.as_ref().map(|llm| llm.model.clone()),
        caps: Capped::from(&config.limits),
    }
}

pub(super) fn fatal(reason: &FatalReason) -> event::FatalReason {
    match reason {
        FatalReason::TokenRefused => event::FatalReason::TokenRejected,
        FatalReason::IntentsRefused { .. } => event::FatalReason::DisallowedIntents,
        FatalReason::IntentsInvalid => event::FatalReason::InvalidIntents,
        FatalReason::ShardingRefused(_) => event::FatalReason::Sharding,
        FatalReason::Closed(_) | FatalReason::Broken | FatalReason::AnotherUser { .. } => {
            event::FatalReason::Other
        }
    }
}
