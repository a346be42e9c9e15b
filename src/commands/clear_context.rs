//! `/clear-context`: deletes a conversation, after asking for confirmation.

use super::call::{Call, run};
use super::context::whose;
use super::definition::{Action, Button, Command, Section};
use super::done::{Done, Stop};
use super::{CommandServices, confirm, words};
use crate::memory::Place;
use clew_store::model::{AgentName, Scope};

pub(super) const CLEAR_CONTEXT: Command = Command {
    buttons: &[DELETE],
    help: Some((Section::Conversation, "`/clear-context` deletes it here")),
    ..Command::action(Action::new(
        "clear-context",
        "Delete our conversation here",
        run!(ask),
    ))
};

const DELETE: Button = Button::new("clear-context", run!(delete));

/// Asks whether to delete it.
async fn ask(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let place = allowed(services, call)?;
    let question = format!(
        "Delete our conversation ({})? This can't be undone. What you saved and what I remember \
         about you stay; `/privacy erase` deletes those too.",
        whose(place.scope)
    );
    Ok(confirm::ask(question, "Delete", DELETE.id))
}

async fn delete(services: &CommandServices<'_>, call: &Call) -> Result<Done, Stop> {
    let place = allowed(services, call)?;
    let gone = services.memory.delete_conversation(&place).await?;
    Ok(Done::say(if gone == 0 {
        "There was nothing to delete.".to_owned()
    } else {
        format!(
            "Deleted: {} of our conversation.",
            words::count(gone, "message")
        )
    }))
}

/// The conversation, if the caller may delete it. A shared one may be deleted by
/// those who moderate the thread or opened it. No agent is needed, since the
/// conversations with all agents are deleted.
fn allowed(services: &CommandServices<'_>, call: &Call) -> Result<Place, Stop> {
    let agent = services.agents.pick(call.channel_id(), call.parent());
    let settings = services.memory.settings();
    let kind = agent
        .and_then(|agent| agent.scope)
        .unwrap_or(settings.scope);
    let (guild, channel) = (call.guild(), call.channel_id());
    let scope = Scope::of(kind, guild, channel, call.is_thread(), call.caller());
    let is_shared = scope.owner().is_none();
    if is_shared && !call.rights.manage_messages && !call.owns_thread() {
        return Err(Stop::refused(
            "This conversation is everybody's in this thread. Only who opened the thread, or has \
             Manage Messages, can delete it; `/context clear` starts fresh for you alone.",
        ));
    }
    Ok(Place {
        scope,
        agent: AgentName::default_agent(),
        guild,
        channel,
        asker: call.caller(),
        rolling_window: settings.rolling_window,
    })
}
