//! `clew mcp serve` where no bot lets programs in: what the gateway and the store would have told a
//! bot is asked for anew before each call, and once more before what was read is told.
//!
//! Invariant: nothing is written, to Discord, the store, `STATE_DIR` or a file of telemetry; without
//! an answer of Discord and of the store nothing is read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use clew_mcp::Asked;
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::{Door, Greeting, socket};
use crate::agents::Agents;
use crate::app::{self, secret, system_clock, wiring};
use crate::config::{Config, Endpoint, Search};
use crate::memory::{Memory, StoreError, Stores};
use crate::runs::{Approvals, CatchUpPace, Connections, OpenApprovals, OpenRuns, Runs};
use crate::telemetry::{Guard, QUEUE_LINES, Telemetry};
use crate::tools::{Address, Arguments, SearchedServers};
use crate::turn::{LastRefusals, Services};
use clew_context::collect::NegativeCache;
use clew_context::discord::error::RestError;
use clew_context::engine::window::Window;
use clew_context::model::{ChannelId, Clock, Fallback, GuildId, MessageId, OptOuts, UserId};
use clew_discord::event::FatalReason;
use clew_discord::guild_state::{CurrentUser, GuildState, PartialGuild};
use clew_discord::rest::Rest;
use clew_discord::session::Claims;
use clew_store::{Record, Store};

/// How long a start may take.
const START: Duration = Duration::from_secs(20);

/// Why nothing can be read without a bot.
#[derive(Debug, thiserror::Error)]
pub enum AloneError {
    /// The token, the address of Discord, or the state of the machine.
    #[error(transparent)]
    Start(#[from] app::Error),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// We are in no such server.
    #[error("the bot is not in server {0}: invite it there, or name another one with --guild")]
    NotIn(GuildId),
    /// They are not in the server.
    #[error("user {0} is no member of server {1}: name one with --as")]
    NoMember(UserId, GuildId),
    /// Discord does not tell.
    #[error("Discord does not tell what may be read")]
    Discord(#[source] RestError),
}

impl AloneError {
    /// Whether it may pass without anybody's doing.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Discord(_) => true,
            Self::Store(error) => error.is_passing(),
            Self::Start(_) | Self::NotIn(_) | Self::NoMember(..) => false,
        }
    }
}

/// What stays from call to call.
pub(super) struct Alone {
    config: Config,
    clock: Clock,
    rest: Rest,
    us: CurrentUser,
    searched: Arc<SearchedServers>,
    secret: Vec<u8>,
    telemetry: Telemetry,
}

/// Answers the operator's own program without a bot.
pub struct AloneServer {
    door: Arc<Door>,
    /// Of the lines on standard error.
    guard: Guard,
}

impl AloneServer {
    /// Looks whether that member can read at all. What is called is told on standard error, in
    /// lines as telemetry has them.
    ///
    /// # Errors
    /// Whatever keeps every call from reading.
    pub async fn begin(config: &Config, who: Greeting) -> Result<Self, AloneError> {
        let (token, deadline) = (app::token(config)?, Instant::now() + START);
        let api = config.discord.api.as_ref().map(Endpoint::url);
        let rest = Rest::new(token.expose(), api.as_deref()).map_err(app::Error::from)?;
        let us = rest.current_user(deadline).await.map_err(refused)?;
        let clock = system_clock();
        let subsystem = &config.telemetry.context_subsys;
        let (telemetry, guard) =
            Telemetry::start_with(io::stderr(), QUEUE_LINES, subsystem, Arc::clone(&clock));
        let secret = secret::random().map_err(|source| app::Error::State {
            path: config.state_dir.clone(),
            source,
        })?;
        let alone = Alone {
            config: config.clone(),
            clock,
            rest,
            us,
            searched: Arc::default(),
            secret,
            telemetry,
        };
        let services = alone.services(who.guild, None, deadline).await?;
        let reader = alone.rest.reader();
        let member = reader.member_roles(who.guild, who.user, deadline).await;
        member.map_err(|error| match error.reason {
            Fallback::NotFound => AloneError::NoMember(who.user, who.guild),
            _ => refused(error),
        })?;
        let door = Door::new(Arc::new(services), config.access.clone());
        let door = Door {
            alone: Some(alone),
            ..door
        };
        let door = Arc::new(door);
        Ok(Self { door, guard })
    }

    /// Answers who is at the other end, who greets first, until they have gone.
    ///
    /// # Errors
    /// Why the other end cannot be read or written to.
    pub async fn serve(self, stream: UnixStream) -> io::Result<()> {
        let Self { door, guard } = self;
        let ended = socket::converse(stream, door).await;
        drop(guard);
        ended
    }
}

/// What only a person can mend, apart from what Discord does not tell just now.
fn refused(error: RestError) -> AloneError {
    if error.unauthorized {
        return app::Error::from(FatalReason::TokenRefused).into();
    }
    AloneError::Discord(error)
}

impl Alone {
    /// What a call is judged by and reads through, as it is now.
    pub(super) async fn services(
        &self,
        guild: GuildId,
        asked: Option<&Asked>,
        deadline: Instant,
    ) -> Result<Services, AloneError> {
        let (known, records) = self.told(guild, asked.and_then(answer), deadline).await?;
        let guild_state = GuildState::default();
        guild_state.set_current_user(self.us.clone());
        guild_state.tell(known);
        let opt_outs = Arc::new(OptOuts::default());
        let (config, clock) = (&self.config, &self.clock);
        let mut settings = wiring::turn_settings(config, self.secret.clone());
        if settings.tools.search == Search::Window {
            // Nothing is in the window.
            settings.tools.search = Search::Off;
        }
        Ok(Services {
            rest: self.rest.clone(),
            guild_state: Arc::new(guild_state),
            model: None,
            tokens: None,
            telemetry: self.telemetry.clone(),
            window: Mutex::new(Window::new(config.window)),
            memory: self.memory(guild, records, &opt_outs).await?,
            opt_outs,
            negative_cache: NegativeCache::default(),
            searched_servers: Arc::clone(&self.searched),
            tool_servers: Arc::default(),
            claims: Arc::new(Claims::in_memory()),
            agents: Agents::load(None, None, Instant::now()).await,
            runs: Runs::new(0, OpenRuns::default()),
            approvals: Approvals::new(OpenApprovals::default(), clock()),
            connections: Connections::default(),
            catch_up_pace: CatchUpPace::default(),
            image_room: Arc::default(),
            settings,
            refusals: LastRefusals::default(),
            observer: None,
        })
    }

    /// The same once something was read. Threads that are not open any more stay: whether one was
    /// deleted or archived the next call finds out.
    pub(super) async fn services_after(
        &self,
        before: &Services,
        guild: GuildId,
        deadline: Instant,
    ) -> Result<Services, AloneError> {
        let services = self.services(guild, None, deadline).await?;
        let before = &before.guild_state;
        let met = before.channels_of(guild).into_iter();
        let met = met.filter_map(|id| before.channel(id)).collect();
        services.guild_state.meet_threads(guild, met);
        Ok(services)
    }

    /// What Discord and the store say.
    async fn told(
        &self,
        guild: GuildId,
        answer: Option<(ChannelId, MessageId)>,
        deadline: Instant,
    ) -> Result<(PartialGuild, Vec<Record>), AloneError> {
        let memory = &self.config.memory;
        let folders = wiring::folders(memory);
        let clock = Arc::clone(&self.clock);
        let us = self.us.application;
        let records = Store::peek(&memory.store, &folders, clock, us, answer).await?;
        let known = self.rest.guild_now(guild, self.us.user, deadline).await;
        let known = known.map_err(|error| match error.reason {
            Fallback::NotFound | Fallback::Forbidden => AloneError::NotIn(guild),
            _ => refused(error),
        })?;
        Ok((known, records))
    }

    /// A memory of this, which ends with the call.
    async fn memory(
        &self,
        guild: GuildId,
        records: Vec<Record>,
        opt_outs: &Arc<OptOuts>,
    ) -> Result<Memory, StoreError> {
        let store = Arc::new(Store::in_memory().await?);
        let is_wanted = |record: &Record| match record {
            Record::Settings(of, _) => *of == guild,
            _ => true,
        };
        let records: Vec<Record> = records.into_iter().filter(is_wanted).collect();
        store.write(&records).await?;
        let stores = Stores {
            lasting: Arc::clone(&store),
            conversations: store,
            transcripts: None,
            outputs: None,
        };
        let settings = wiring::memory_settings(&self.config);
        let clock = Arc::clone(&self.clock);
        let telemetry = self.telemetry.clone();
        Memory::open(stores, settings, Arc::clone(opt_outs), clock, telemetry).await
    }
}

/// The answer that a call asks about, by one of its messages.
fn answer(asked: &Asked) -> Option<(ChannelId, MessageId)> {
    let text = Arguments::of(asked.arguments.clone()).text("answer")?;
    match Address::parse(&text)? {
        Address::Link(link) => Some((link.channel, link.message?)),
        Address::Id(_) => None,
    }
}
