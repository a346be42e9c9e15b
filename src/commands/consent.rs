//! The buttons of a message that asks whether a tool of another's server may be called.

use super::CommandServices;
use super::call::{Call, run};
use super::definition::Button;
use super::done::{Done, Stop};
use crate::model::{ALLOW_CALL, DENY_CALL};
use crate::runs::Undecided;

/// The turn that waits changes the message.
pub(super) const ALLOW: Button = Button {
    keeps_message: true,
    ..Button::new(ALLOW_CALL, run!(decide, true))
};
pub(super) const DENY: Button = Button {
    keeps_message: true,
    ..Button::new(DENY_CALL, run!(decide, false))
};

async fn decide(
    services: &CommandServices<'_>,
    call: &Call,
    is_allowed: bool,
) -> Result<Done, Stop> {
    let (id, approvals) = (call.argument()?, services.approvals);
    match approvals.decide(id, call.caller(), &call.roles, is_allowed) {
        Ok(()) if is_allowed => Ok(Done::say("Allowed, once.")),
        Ok(()) => Ok(Done::say("Denied.")),
        Err(Undecided::NotYours) => Err(Stop::refused("You may not decide on this.")),
        Err(Undecided::Over) => Err(Stop::refused(
            "This is over: nothing waits for it any more.",
        )),
    }
}
