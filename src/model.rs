//! The bot's own domain types: its personas.
//!
//! Those of messages and turns are in `clew-context`, those of commands in
//! `clew-discord`, those of stored data in `clew-store`.
//!
//! Invariant: `model` imports no other module of the bot; its values are plain
//! data.

mod agent;

pub use agent::{Agent, AgentChannels};
