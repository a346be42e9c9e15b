//! The bot's own domain types: its personas, and what the button under a note shows.
//!
//! Those of messages and turns are in `clew-context`, those of commands in
//! `clew-discord`, those of stored data in `clew-store`.
//!
//! Invariant: `model` imports no other module of the bot; its values are plain
//! data.

mod agent;
mod noted;

pub use agent::{Agent, AgentChannels};
pub use noted::Noted;
