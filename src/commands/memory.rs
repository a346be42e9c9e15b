//! `/memory show|remember|forget`: facts about the caller.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::{Action, Button, Command, Section};
use super::done::{Done, Stop};
use super::facts::{self, About, AboutOf, FACT, TEXT};
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
            Action::new(
                "show",
                "Show what I remember about you",
                run!(facts::list, ABOUT),
            ),
            Action::new("remember", "Remember something about you", run!(remember))
                .options(&[TEXT, EVERYWHERE]),
            Action::new(
                "forget",
                "Forget something about you",
                run!(facts::ask_to_forget, ABOUT),
            )
            .options(&[FACT])
            .complete(run!(facts::propose, ABOUT)),
        ],
    )
};

const EVERYWHERE: OptionSpec =
    OptionSpec::flag("everywhere", "Use it in every server, not only here");

const PAGE: Button = Button::new("page:facts:", run!(facts::list, ABOUT));
/// Only the caller's own facts can be forgotten this way.
pub(super) const FORGET: Button = Button {
    for_everybody: true,
    ..Button::new("forget:", run!(facts::forget, ABOUT))
};

async fn remember(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let origin = match (call.data.flag(&EVERYWHERE), call.guild()) {
        (true, _) => Origin::Everywhere,
        (false, Some(guild)) => Origin::Guild(guild),
        (false, None) => Origin::Direct,
    };
    facts::remember(services, call, ABOUT, origin).await
}

/// The caller, wherever it was learnt.
const ABOUT: AboutOf = |call| {
    Ok(About {
        subject: call.about_caller(),
        title: "What I remember about you",
        none: "I remember nothing about you yet. Use `/memory remember`.",
        off: "Memory about people is off here (`MAX_USER_MEMORY=0`).",
        page: &PAGE,
        forget: &FORGET,
    })
};
