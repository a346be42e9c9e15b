//! What a turn says.

use std::borrow::Cow;

use super::control::Order;
use crate::llm::Completion;
use crate::telemetry::event::Outcome;
use clew_context::discord::error::RestError;

/// The words of a turn, to be delivered.
pub(super) enum TurnAnswer {
    /// One line instead of an answer, and how the turn ends with it.
    Line(Cow<'static, str>, Outcome),
    /// The inspector's answer.
    Inspected(String),
    /// The model's whole answer.
    Whole(Completion),
    /// What the model said before it failed or could not be asked again, and the line that
    /// says so.
    BrokenOff(String, Cow<'static, str>),
    /// What was said when this order ended it.
    Part(String, Order),
    /// Discord refused, for good, what was shown so far.
    Unpostable(RestError),
}
