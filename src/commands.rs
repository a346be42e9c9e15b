//! Commands: what calling one leads to. Those that ask a question start a turn by
//! a [`TurnRequest`]; all others are a [`Call`] for [`run`].
//!
//! Invariant: `commands` decides and sends nothing itself; `app` carries it out.

mod ask;
mod call;
mod clear_context;
mod complete;
mod context;
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
mod words;

use tokio::time::Instant;

use crate::agents::Agents;
use crate::llm;
use crate::memory::Memory;
use crate::telemetry::Telemetry;
use clew_context::engine::admission::{Admission, Denied, admit};
use clew_context::model::{
    AccessRules, Channel, ChannelMode, InteractionKind, ReplyTarget, TurnRequest,
};
use clew_discord::event::Called;
use clew_discord::guild_state::GuildState;
use clew_discord::model::{Button, Command};
use clew_discord::rest::Rest;

pub use call::{Call, Deferral};
pub use done::{Done, Effect, Reply};

use done::{Stop, finished};

/// What a call leads to.
#[derive(Debug)]
pub enum Planned {
    /// A turn, with "thinking" as the first response.
    Turn(Box<TurnRequest>),
    /// Work for [`run`].
    Run(Box<Call>),
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
    /// The message asked about was not included.
    NoMessage,
}

/// What commands read and change.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// What is remembered.
    pub memory: &'a Memory,
    /// The agents, and where they answer.
    pub agents: &'a Agents,
    /// The model that writes summaries; none if there is no model.
    pub model: Option<&'a llm::Client>,
    /// Servers, channels and roles.
    pub guild_state: &'a GuildState,
    /// For reading only: channels and threads missing from `guild_state`.
    pub rest: &'a Rest,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// To tell callers what telemetry keeps about them.
    pub telemetry: &'a Telemetry,
}

/// Decides on a call. The lists keep nobody from commands about their own data,
/// nor from help. `mode` is the server's setting for the channel and only affects
/// questions.
///
/// # Errors
/// Why there is nothing to do, to be shown to the caller only.
pub fn plan(
    called: Called,
    channel: Option<Channel>,
    rules: &AccessRules,
    mode: ChannelMode,
) -> Result<Planned, Refused> {
    if called.interaction.kind == InteractionKind::Elsewhere {
        return Err(Refused::Elsewhere);
    }
    let asked = Admission {
        guild: called.interaction.guild,
        channel: called.interaction.channel,
        parent: channel.as_ref().and_then(|channel| channel.parent),
        user: called.interaction.user,
        roles: Some(&called.roles),
    };
    if !is_for_everybody(&called.command) {
        admit(rules, asked).map_err(Refused::NotAllowed)?;
    }
    match called.command {
        Command::Ask { .. } | Command::AskAbout { .. } if mode == ChannelMode::Off => {
            Err(Refused::SwitchedOff)
        }
        Command::Ask { .. } | Command::AskAbout { .. } => {
            ask::request(called).map(|request| Planned::Turn(Box::new(request)))
        }
        Command::Unknown(_) => Err(Refused::Unknown),
        _ => Ok(Planned::Run(Box::new(Call::new(called, channel)))),
    }
}

/// Whether a command is exempt from the lists: seeing, exporting and erasing one's
/// own data, and help.
const fn is_for_everybody(command: &Command) -> bool {
    matches!(
        command,
        Command::Privacy(_)
            | Command::Help
            | Command::Button(
                Button::Erase
                    | Button::OptOut
                    | Button::Forget(_)
                    | Button::ShowNoted(_)
                    | Button::Cancel
            )
    )
}

/// Does what a call asks for. Returns the answer, and what else is to be done.
pub async fn run(context: &Context<'_>, call: &Call) -> Done {
    context.agents.refresh(Instant::now()).await;
    let done = match &call.command {
        Command::Context(command) => context::run(context, call, command).await,
        Command::ClearContext => clear_context::ask(context, call),
        Command::Settings(command) => settings::run(context, call, command).await,
        Command::Memory(command) => memory::run(context, call, command).await,
        Command::ServerMemory(command) => server_memory::run(context, call, command).await,
        Command::Privacy(command) => privacy::run(context, call, *command).await,
        Command::Help => Ok(help::help(context)),
        Command::Button(button) => pressed(context, call, button).await,
        Command::Complete(completing) => {
            return complete::choices(context, call, completing).await;
        }
        Command::Wrong(wrong) => Err(Stop::Refused(wrong.to_string())),
        // These never become a call.
        Command::Ask { .. } | Command::AskAbout { .. } | Command::Unknown(_) => {
            Err(Stop::refused(words::GONE))
        }
    };
    finished(call, done)
}

async fn pressed(context: &Context<'_>, call: &Call, button: &Button) -> Result<Done, Stop> {
    match button {
        Button::Page(list, page) => pages::turned(context, call, *list, *page).await,
        Button::SnapshotsOf(agent, page) => {
            context::history(context, call, Some(agent), *page).await
        }
        Button::ClearContext => clear_context::delete(context, call).await,
        Button::Forget(fact) => memory::forget(context, call, *fact).await,
        Button::ForgetOfServer(fact) => server_memory::forget(context, call, *fact).await,
        Button::Erase => privacy::erase(context, call).await,
        Button::OptOut => privacy::opt_out(context, call).await,
        Button::ShowNoted(facts) => noted::show(context, call, facts).await,
        Button::Cancel => Ok(Done::say(words::UNCHANGED)),
    }
}
