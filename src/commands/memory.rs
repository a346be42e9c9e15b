//! `/memory show|remember|forget`: facts about the caller.

use super::Context;
use super::call::Call;
use super::done::{Done, Stop};
use super::facts::{self, About};
use clew_discord::model::{Button, MemoryCommand, Paged};
use clew_store::model::{FactId, Origin};

const OFF: &str = "Remembering things about people is off here (`MAX_USER_MEMORY=0`).";

pub(super) async fn run(
    context: &Context<'_>,
    call: &Call,
    command: &MemoryCommand,
) -> Result<Done, Stop> {
    match command {
        MemoryCommand::Show => show(context, call, 0).await,
        MemoryCommand::Remember { text, everywhere } => {
            let origin = match (everywhere, call.guild()) {
                (true, _) => Origin::Everywhere,
                (false, Some(guild)) => Origin::Guild(guild),
                (false, None) => Origin::Direct,
            };
            facts::remember(context, call, call.about_caller(), text, origin, OFF).await
        }
        MemoryCommand::Forget { fact } => {
            facts::ask_to_forget(context, call, &about(call), fact).await
        }
    }
}

/// A page of what is remembered about the caller, wherever it was learnt.
pub(super) async fn show(context: &Context<'_>, call: &Call, page: u16) -> Result<Done, Stop> {
    facts::list(context, call, &about(call), page).await
}

/// "Forget" was pressed. Only the caller's own facts can be forgotten this way.
pub(super) async fn forget(context: &Context<'_>, call: &Call, fact: FactId) -> Result<Done, Stop> {
    facts::forget(context, call.about_caller(), fact).await
}

const fn about(call: &Call) -> About {
    About {
        subject: call.about_caller(),
        title: "What I remember about you",
        none: "I remember nothing about you. `/memory remember` changes that.",
        page: |page| Button::Page(Paged::Facts, page),
        forget: Button::Forget,
    }
}
