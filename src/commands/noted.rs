//! The button under "Noted 1 thing": shows what was learnt to the person it is
//! about, and to nobody else.

use super::call::Call;
use super::done::{Done, Stop};
use super::{Context, facts};
use clew_discord::model::{Answer, Button, ButtonStyle};
use clew_store::model::{Fact, FactId, Subject};

/// Shows the facts that are still remembered, each with a button to forget it. Facts
/// about a server are shown only to those who said them and have Manage Server.
pub(super) async fn show(
    context: &Context<'_>,
    call: &Call,
    noted: &[FactId],
) -> Result<Done, Stop> {
    let mut shown = context.memory.facts_of(call.about_caller()).await?;
    if let Some(guild) = call.guild() {
        let of_server = context.memory.facts_of(Subject::Server(guild)).await?;
        let caller = call.caller();
        let may = |fact: &Fact| call.rights.manage_server && fact.by == caller;
        shown.extend(of_server.into_iter().filter(may));
    }
    shown.retain(|fact| noted.contains(&fact.id));
    if shown.is_empty() {
        return Err(Stop::refused(
            "That is for the person it is about; or I have forgotten it since.",
        ));
    }
    let mut answer = Answer::for_caller("I noted:");
    for (number, fact) in (1..).zip(&shown) {
        let text = facts::described(context, call, fact);
        answer.content.push_str(&format!("\n{number}. {text}"));
        let button = match fact.subject {
            Subject::User(_) => Button::Forget(fact.id),
            Subject::Server(_) => Button::ForgetOfServer(fact.id),
        };
        answer = answer.with_button(format!("Forget {number}"), ButtonStyle::Danger, button);
    }
    Ok(Done::answer(answer))
}
