//! A faithful, stateful fake of Discord: REST v10 and Gateway v10 over real
//! sockets on loopback, for tests of bots.
//!
//! Invariant: it shares no code with the bot and uses no Discord library, so that
//! both cannot be wrong in the same way. Its sources are Discord's documentation
//! and the official `OpenAPI` document.
//!
//! ```no_run
//! use clew_simulator::{ChannelKind, Draft, Simulator, World};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut world = World::new();
//! let guild = world.guild("Guild");
//! let channel = world.channel(guild, ChannelKind::Text, "general");
//! let alice = world.member(guild, "alice");
//! world.seed(channel, alice, "said before the bot came");
//! let simulator = Simulator::start(world).await?;
//! // Point the bot at `simulator.url()` with `simulator.token()`, then:
//! simulator.wait_ready().await?;
//! let bot = simulator.bot();
//! let question = simulator.post(channel, alice, format!("<@{bot}> hello?"));
//! let answers = simulator.wait_answers(channel, 1).await?;
//! # Ok(()) }
//! ```
//!
//! What it covers: the routes for guilds, channels, messages, threads, reactions,
//! commands, interactions and direct messages that a question-answering bot
//! needs; permissions and overwrites that apply to the bot's own calls; pages,
//! nonces, rate-limit headers and 429s; the gateway with sessions, resuming,
//! compression, intents and blanked content; and faults in both.
//!
//! Limits: one token and one bot. Voice, soundboards, emoji, stickers beyond
//! their names, stages, events, auto moderation and audit logs are missing. Of
//! components only buttons are checked. A follow-up to a deferred answer is a
//! message of its own. Interaction tokens do not expire after the first answer,
//! old messages can be edited without limit, and slowmode is ignored. As on
//! Discord, `GUILD_CREATE` contains hidden channels; a channel that becomes
//! visible causes only an update. Field errors of 50035 use names as codes, as
//! the API does, although the `OpenAPI` document says numbers.
//!
//! [`ScriptedModel`] stands in for a model server, for demonstrations and tests of bots that
//! ask one.
//!
//! No call panics. An action on an id that does not exist changes nothing; it is
//! a mistake in the script, which makes [`Simulator::start`] and every later wait
//! fail ([`ScriptError`]).

mod control;
mod cuttable;
mod draft;
mod events;
mod faults;
mod gateway;
mod ids;
mod limits;
mod local;
mod log;
mod permissions;
mod render;
mod rest;
mod script;
mod scripted_model;
mod state;
mod world;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use control::{Choice, Invocation, Shown, TimedOut, Use, WaitError};
pub use draft::{Draft, File, Reference, Referenced};
pub use faults::{Fault, FaultKind, Gate};
pub use ids::{Id, TimeSource};
pub use limits::Limit;
pub use local::{Local, LocalConnection, Received};
pub use log::{Dispatch, GatewayEvent, GatewayRecord, RequestRecord};
pub use permissions::Permissions;
pub use script::ScriptError;
pub use scripted_model::{ModelReply, ScriptedModel};
pub use world::{
    Attachment, Channel, ChannelKind, Guild, Interaction, Member, Message, Overwrite, OverwriteOf,
    Role, Settings, Tag, Thread, User, World,
};

use gateway::Outgoing;
use state::Shared;

/// How long a wait may take, unless [`Simulator::patience`] sets it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The port in the address of a simulator without sockets ("discard"): nothing listens there.
const NO_PORT: u16 = 9;

/// A running fake of Discord. Stops at once when dropped.
#[derive(Debug)]
pub struct Simulator {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// None without sockets.
    server: Option<JoinHandle<()>>,
    patience: Duration,
}

impl Simulator {
    /// Serves a world on a free loopback port.
    ///
    /// # Errors
    ///
    /// No port was available, or the world was built with ids that do not exist
    /// ([`ScriptError`] as the source).
    pub async fn start(world: World) -> io::Result<Self> {
        Self::start_on(world, 0).await
    }

    /// Serves a world on a loopback port; 0 means any free one.
    ///
    /// # Errors
    ///
    /// Like [`start`](Self::start).
    pub async fn start_on(world: World, port: u16) -> io::Result<Self> {
        if let Some(mistake) = world.mistake() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, mistake.clone()));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let mut simulator = Self::at(listener.local_addr()?, world);
        let router = Router::new()
            .fallback(rest::entry)
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&simulator.shared));
        let service = router.into_make_service_with_connect_info::<cuttable::CutSwitch>();
        simulator.server = Some(tokio::spawn(async move {
            // It only ends when stopped; errors while accepting are retried.
            let _ = axum::serve(cuttable::CuttableListener(listener), service).await;
        }));
        Ok(simulator)
    }

    /// Serves a world without sockets, through [`Simulator::local`]. Its address, where
    /// attachments seem to be, answers nobody.
    ///
    /// # Errors
    ///
    /// The world was built with ids that do not exist.
    pub fn without_sockets(world: World) -> Result<Self, ScriptError> {
        if let Some(mistake) = world.mistake() {
            return Err(mistake.clone());
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, NO_PORT));
        Ok(Self::at(address, world))
    }

    fn at(address: SocketAddr, mut world: World) -> Self {
        world.base_url = format!("http://{address}");
        Self {
            shared: Arc::new(Shared::new(world)),
            address,
            server: None,
            patience: PATIENCE,
        }
    }

    /// The way in without a socket.
    pub fn local(&self) -> Local {
        Local(Arc::clone(&self.shared))
    }

    /// Base URL of the REST API: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// URL of the gateway: `ws://127.0.0.1:PORT`.
    pub fn gateway_url(&self) -> String {
        format!("ws://{}", self.address)
    }

    /// Host and port, `127.0.0.1:PORT`, as REST proxy settings expect them.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Stops: no more connections or answers, and gateway connections are dropped.
    pub async fn stop(mut self) {
        self.halt();
        if let Some(server) = self.server.take() {
            // The task was aborted, so this is a cancellation error.
            let _ = server.await;
        }
    }

    fn halt(&self) {
        self.shared.with(|state| {
            state.stopped = true;
            state.hub.broadcast(|| Outgoing::Drop);
        });
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.halt();
    }
}

/// Compiles and runs the test in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
