//! `/memory show|remember|forget`: facts about the caller.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::{Action, Button, Command, Section};
use super::done::{Done, Stop};
use super::facts::{self, About, FACT, TEXT};
use clew_discord::model::OptionSpec;
use clew_store::model::Origin;

pub(super) const MEMORY: Command = Command {
    buttons: &[PAGE, FORGET],
    help: Some((
        Section::Caller,
        "`/memory show` · `/memory remember` · `/memory forget`",
    )),
    ..Command::subs(
        "memory",
        "What I remember about you",
        &[
            Action::new("show", "Show what I remember about you", run!(show)),
            Action::new("remember", "Remember something about you", run!(remember))
                .options(&[TEXT, EVERYWHERE]),
            Action::new("forget", "Forget something about you", run!(ask_to_forget))
                .options(&[FACT])
                .complete(run!(propose)),
        ],
    )
};

const EVERYWHERE: OptionSpec =
    OptionSpec::flag("everywhere", "Use it in every server, not only here");

const PAGE: Button = Button::new("page:facts:", run!(show));
/// Only the caller's own facts can be forgotten this way.
pub(super) const FORGET: Button = Button {
    for_everybody: true,
    ..Button::new("forget:", run!(forget))
};

/// A page of what is remembered about the caller, wherever it was learnt.
async fn show(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::list(services, call, about(call)).await
}

async fn remember(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let origin = match (call.data.flag(&EVERYWHERE), call.guild()) {
        (true, _) => Origin::Everywhere,
        (false, Some(guild)) => Origin::Guild(guild),
        (false, None) => Origin::Direct,
    };
    facts::remember(services, call, about(call), origin).await
}

async fn ask_to_forget(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::ask_to_forget(services, call, about(call)).await
}

async fn propose(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::propose(services, call, call.about_caller()).await
}

async fn forget(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    facts::forget(services, call, call.about_caller()).await
}

const fn about(call: &Call) -> About {
    About {
        subject: call.about_caller(),
        title: "What I remember about you",
        none: "I remember nothing about you yet. Use `/memory remember`.",
        off: "Memory about people is off here (`MAX_USER_MEMORY=0`).",
        page: &PAGE,
        forget: &FORGET,
    }
}
