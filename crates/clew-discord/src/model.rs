//! The types of commands: how they are defined, what people call, and what we answer.
//!
//! Invariant: plain data, built on the types of `clew-context`.

mod answer;
mod command;

pub use answer::{Answer, AnswerButton, AnswerEmbed, ButtonStyle};
pub use command::{
    CallerRights, CommandData, CommandKind, CommandSpec, InteractionData, OptionKind, OptionSpec,
    OptionValue,
};
