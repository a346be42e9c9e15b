//! The bot's own words: its personas, its commands and what they answer.
//!
//! Those of messages and turns are `clew-context`'s, those of what is kept are
//! `clew-store`'s.
//!
//! Invariant: `model` imports no other module of the bot; its values are plain
//! data.

mod agent;
mod answer;
mod command;

pub use agent::{Agent, AgentChannels};
pub use answer::{Answer, AnswerButton, AnswerEmbed, ButtonStyle};
pub use command::{
    Button, CallerRights, Command, Completing, ContextCommand, MemoryCommand, Paged,
    PrivacyCommand, ServerMemoryCommand, SettingsCommand, WrongCall,
};
