//! The bot's own words: its personas.
//!
//! Those of messages and turns are `clew-context`'s, those of commands
//! `clew-discord`'s, those of what is kept `clew-store`'s.
//!
//! Invariant: `model` imports no other module of the bot; its values are plain
//! data.

mod agent;

pub use agent::{Agent, AgentChannels};
