//! The words of commands: what people call, and what they are answered.
//!
//! Invariant: plain data over `clew-context`'s words and those of what is kept.

mod answer;
mod command;

pub use answer::{Answer, AnswerButton, AnswerEmbed, ButtonStyle};
pub use command::{
    Button, CallerRights, Command, Completing, ContextCommand, MemoryCommand, Paged,
    PrivacyCommand, ServerMemoryCommand, SettingsCommand, WrongCall,
};
