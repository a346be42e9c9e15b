//! Commands: which there are, one file each, and what calling one leads to. Those that
//! ask a question start a turn by a [`TurnRequest`]; all others are a [`Call`] for
//! [`run`].
//!
//! Invariant: `commands` reads and changes what is kept; it posts nothing: `app` posts what
//! it returns.

mod agent;
mod ask;
mod block;
mod call;
mod catch_up;
mod choices;
mod clear_context;
mod confirm;
mod connect;
mod consent;
mod context;
mod definition;
mod done;
mod facts;
mod help;
mod memory;
mod noted;
mod pages;
mod privacy;
mod readable;
mod server_memory;
mod settings;
mod steer;
mod usage;
mod why;
mod words;

use std::net::SocketAddr;

use tokio::time::Instant;

use crate::agents::Agents;
use crate::llm;
use crate::memory::Memory;
use crate::runs::{Approvals, CatchUpPace, Connections, Runs};
use crate::telemetry::Telemetry;
use crate::telemetry::event::Refusal;
use clew_context::engine::admission::{Admission, Denied, admit};
use clew_context::engine::eligible::Us;
use clew_context::model::{
    AccessRules, Channel, ChannelMode, InteractionPlace, Limits, OptOuts, ReplyTarget, TurnRequest,
    UnixMillis,
};
use clew_discord::event::IncomingInteraction;
use clew_discord::guild_state::GuildState;
use clew_discord::model::{CommandSpec, InteractionData};
use clew_discord::rest::Rest;
use clew_discord::session::Claims;

pub use ask::asked;
pub use call::Call;
pub use done::{BeginningRun, Deferral, Done, Effect, Reply, Steer, Steered};
pub use readable::Reader;
pub use why::{left_out, told};

use definition::{Button, Command, Handler, find};
use done::{Stop, finished};

const COMMANDS: &[&Command] = &[
    &ask::ASK,
    &ask::ASK_ABOUT,
    &catch_up::CATCH_UP,
    &catch_up::SUMMARISE,
    &agent::AGENT,
    &context::CONTEXT,
    &clear_context::CLEAR_CONTEXT,
    &memory::MEMORY,
    &server_memory::SERVER_MEMORY,
    &settings::SETTINGS,
    &block::BLOCK,
    &block::UNBLOCK,
    &usage::USAGE,
    &connect::CONNECT,
    &privacy::PRIVACY,
    &help::HELP,
];
/// The buttons of no command in particular.
const BUTTONS: &[Button] = &[
    confirm::CANCEL,
    consent::ALLOW,
    consent::DENY,
    noted::SHOW,
    steer::STOP,
    steer::REGENERATE,
    steer::CONTINUE,
];

/// The commands as they are registered with Discord.
pub fn specs(has_clients: bool) -> Vec<CommandSpec> {
    offered(has_clients).map(Command::spec).collect()
}

/// Those that there are; `/connect` only where programs can connect.
fn offered(has_clients: bool) -> impl Iterator<Item = &'static Command> {
    let commands = COMMANDS.iter().copied();
    commands.filter(move |command| has_clients || command.name != connect::CONNECT.name)
}

/// What a call leads to.
#[derive(Debug)]
pub enum Planned {
    /// A turn, with "thinking" as the first response.
    Turn(Box<TurnRequest>),
    /// Work for [`run`].
    Run(Box<Call>),
    /// An option is being typed for which there are no choices.
    NoChoices,
}

/// Why a call leads to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It came from neither a server that we are in nor our direct messages.
    Elsewhere,
    /// An allow or deny list forbids it.
    NotAllowed(Denied),
    /// The server's managers switched the bot off in that channel.
    SwitchedOff,
    /// It is a command from another version.
    Unknown,
    /// It is a button from another version.
    TooOld,
    /// The message asked about was not included.
    NoMessage,
    /// It is for whoever asked, and for moderators.
    NotTheirs,
}

impl Refused {
    /// What the caller is told.
    pub const fn line(self) -> &'static str {
        match self {
            Self::Elsewhere => "I answer in servers I'm in and in direct messages with me.",
            Self::NotAllowed(_) => "I may not answer you here. Ask the operator.",
            Self::SwitchedOff => "I'm switched off in this channel.",
            Self::Unknown => words::GONE,
            Self::TooOld => words::TOO_OLD,
            Self::NoMessage => "I can't read that message.",
            Self::NotTheirs => words::NOT_THEIRS,
        }
    }
}

/// What commands read and change.
#[derive(Clone, Copy)]
pub struct CommandServices<'a> {
    pub memory: &'a Memory,
    /// Where an erasure is noted for the next process.
    pub claims: &'a Claims,
    /// The agents, and where they answer.
    pub agents: &'a Agents,
    /// The agent runs that are under way.
    pub runs: &'a Runs,
    /// The calls of tools that wait for consent.
    pub approvals: &'a Approvals,
    /// How often people are told what they missed.
    pub catch_up_pace: &'a CatchUpPace,
    /// The programs that read as members.
    pub connections: &'a Connections,
    /// Where they do; none if they cannot.
    pub mcp_listen: Option<SocketAddr>,
    /// Who we are there.
    pub us: &'a Us,
    /// Who opted out.
    pub opt_outs: &'a OptOuts,
    /// The model that writes summaries; none if there is no model.
    pub model: Option<&'a llm::ModelServers>,
    /// Servers, channels and roles.
    pub guild_state: &'a GuildState,
    /// Fetches the channels and threads that `guild_state` lacks; no command posts through it.
    pub rest: &'a Rest,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// `LINK_CONTEXT`, `LONE_CONTEXT` and `PLACE_CONTEXT`.
    pub limits: Limits,
    /// Where `/privacy show` looks up what telemetry keeps.
    pub telemetry: &'a Telemetry,
    /// Counts tokens; none if there is no model.
    pub tokens: Option<&'a llm::TokenMeter>,
    /// Why and when the caller was last refused here.
    pub last_refusal: Option<(Refusal, UnixMillis)>,
}

/// Decides on a call. `rules` keep nobody from what is `Command::for_everybody`; `mode`, which the
/// server's managers set for the channel, forbids only what leads to a turn.
///
/// # Errors
/// Why there is nothing to do, to be shown to the caller only.
pub fn plan(
    incoming: IncomingInteraction,
    channel: Option<Channel>,
    rules: &AccessRules,
    mode: ChannelMode,
) -> Result<Planned, Refused> {
    let is_typing = matches!(incoming.data, InteractionData::Autocomplete(_));
    match plan_admitted(incoming, channel, rules, mode) {
        // Discord takes no line as the answer to this.
        Err(_) if is_typing => Ok(Planned::NoChoices),
        planned => planned,
    }
}

fn plan_admitted(
    incoming: IncomingInteraction,
    channel: Option<Channel>,
    rules: &AccessRules,
    mode: ChannelMode,
) -> Result<Planned, Refused> {
    let found = find(&incoming.data);
    let unknown = match incoming.data {
        InteractionData::Command(_) | InteractionData::Autocomplete(_) => Refused::Unknown,
        InteractionData::Button(_) | InteractionData::Other => Refused::TooOld,
    };
    if incoming.interaction.place == InteractionPlace::Elsewhere {
        return Err(Refused::Elsewhere);
    }
    let asked = Admission {
        guild: incoming.interaction.guild,
        channel: incoming.interaction.channel,
        parent: channel.as_ref().and_then(|channel| channel.parent),
        user: incoming.interaction.user,
        roles: Some(&incoming.roles),
    };
    if !found.as_ref().is_some_and(|found| found.for_everybody) {
        admit(rules, asked).map_err(Refused::NotAllowed)?;
    }
    let found = found.ok_or(unknown)?;
    match found.handler {
        Handler::Turn(_) if mode == ChannelMode::Off => Err(Refused::SwitchedOff),
        Handler::Turn(request) => Ok(Planned::Turn(Box::new(request(incoming)?))),
        Handler::Answer(run) => {
            let call = Call::new(incoming, channel, mode, found.called, run);
            Ok(Planned::Run(Box::new(call)))
        }
    }
}

/// Does what a call asks for. Returns the answer, and what else is to be done.
pub async fn run(services: &CommandServices<'_>, call: &Call) -> Done {
    services.agents.refresh(Instant::now()).await;
    let done = (call.run)(services, call).await;
    if let Err(Stop::Store(error)) = &done {
        services.memory.note_failed_request(error);
    }
    finished(call.deferral(), done)
}
