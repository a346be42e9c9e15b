//! The types of commands: what people call, and what we answer.
//!
//! Invariant: plain data, built on the types of `clew-context` and
//! `clew-store`.

mod answer;
mod command;

pub use answer::{Answer, AnswerButton, AnswerEmbed, ButtonStyle};
pub use command::{
    Button, CallerRights, Command, Completing, ContextCommand, MemoryCommand, Paged,
    PrivacyCommand, ServerMemoryCommand, SettingsCommand, WrongCall,
};
