//! Commands: what a call of one leads to. Those that ask start a turn by a
//! [`TurnRequest`]; all others are a [`Call`], which [`run`] does.
//!
//! Invariant: `commands` decides and sends nothing itself; `app` carries out.

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
use clew_discord::facts::Facts;
use clew_discord::model::{Button, Command};
use clew_discord::rest::Rest;

pub use call::{Call, Deferral};
pub use done::{Done, Effect, Reply};

use done::{Stop, finished};

/// What a call leads to.
#[derive(Debug)]
pub enum Planned {
    /// A turn, to which "thinking" is the first answer.
    Turn(Box<TurnRequest>),
    /// Work for [`run`].
    Run(Box<Call>),
}

/// Why a call leads to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Not in a server we are in and not in our direct messages.
    Elsewhere,
    /// An allow or deny list says no.
    NotAllowed(Denied),
    /// The people of the server switched the bot off in that channel.
    SwitchedOff,
    /// A command of another version.
    Unknown,
    /// The message asked about did not come along.
    NoMessage,
}

/// What commands look at and change.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// What is remembered.
    pub memory: &'a Memory,
    /// Who answers where.
    pub agents: &'a Agents,
    /// Writes summaries.
    pub model: Option<&'a llm::Client>,
    /// Servers, channels and roles.
    pub facts: &'a Facts,
    /// Read from only: channels and threads that the facts do not know.
    pub rest: &'a Rest,
    /// `THREAD_REPLY_TARGET`.
    pub reply_target: ReplyTarget,
    /// What it keeps of callers is told to them.
    pub telemetry: &'a Telemetry,
}

/// Decides on a call. The lists do not keep anybody from what concerns their
/// own data, nor from help; `mode` is what the people of the server set for
/// the channel, and concerns questions alone.
///
/// # Errors
/// Why there is nothing to do, for the caller alone.
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

/// What the lists do not concern: seeing, exporting and erasing one's own
/// data, and help.
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

/// Does what a call asks for. Says what to answer, and what else there is to
/// do.
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
