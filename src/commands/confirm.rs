//! Asking before something that cannot be taken back.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::Button;
use super::done::{Done, Stop};
use clew_discord::model::{Answer, ButtonStyle};

pub(super) const CANCEL: Button = Button {
    for_everybody: true,
    ..Button::new("cancel", run!(cancel))
};

async fn cancel(_: &CommandServices<'_>, _: &Call) -> Result<Done, Stop> {
    Ok(Done::say("Nothing changed."))
}

/// A question, the button that says yes, and one that cancels.
pub(super) fn ask(question: impl Into<String>, label: &str, custom_id: impl Into<String>) -> Done {
    let answer = Answer::for_caller(question)
        .with_button(label, ButtonStyle::Danger, custom_id)
        .with_button("Cancel", ButtonStyle::Secondary, CANCEL.id);
    Done::answer(answer)
}
