//! The button under "Noted 1 thing": shows what was learnt to the person it is
//! about, and to nobody else.

use super::call::{Call, run};
use super::definition::Button;
use super::done::{Done, Stop};
use super::{CommandServices, facts, memory, server_memory};
use crate::model::Noted;
use clew_discord::model::{Answer, ButtonStyle};
use clew_store::model::{Fact, Subject};

/// The note stays: everyone sees it.
pub(super) const SHOW: Button = Button {
    for_everybody: true,
    keeps_message: true,
    ..Button::new(Noted::ID, run!(show))
};

/// Shows the facts that are still remembered, each with a button to forget it. Facts
/// about a server are shown only to those who said them and have Manage Server.
async fn show(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let Noted(noted) = call.argument()?;
    let of_caller = services.memory.listed_facts(call.about_caller()).await?;
    let mut shown = of_caller.shown;
    if let Some(guild) = call.guild() {
        let of_server = services.memory.listed_facts(Subject::Server(guild)).await?;
        let caller = call.caller();
        let may = |fact: &Fact| call.rights.manage_server && fact.by == caller;
        shown.extend(of_server.shown.into_iter().filter(may));
    }
    shown.retain(|fact| noted.contains(&fact.id));
    if shown.is_empty() {
        return Err(Stop::refused(
            "That's for the person it's about, or already forgotten.",
        ));
    }
    let mut answer = Answer::for_caller("I noted:");
    for (number, fact) in (1..).zip(&shown) {
        let text = facts::described(services, call, fact);
        answer.content.push_str(&format!("\n{number}. {text}"));
        let button = match fact.subject {
            Subject::User(_) => memory::FORGET,
            Subject::Server(_) => server_memory::FORGET,
        };
        let label = format!("Forget {number}");
        answer = answer.with_button(label, ButtonStyle::Danger, button.with(fact.id));
    }
    Ok(Done::answer(answer))
}
