//! Clew answers people on Discord with the right context: the messages that
//! belong to the conversation, bounded, in order, explained, and nobody
//! else's.
//!
//! The map, from the words up (arrows go downwards only, see ARCHITECTURE.md):
//!
//! - [`model`]: the words everything else speaks.
//! - [`engine`]: pure decisions: route, plan, window, select, render, assemble.
//! - [`collect`]: gathers messages for one turn through a [`collect::Source`].
//! - [`discord`]: the door to Discord; the only place that names twilight.
//!
//! With the default feature `bot` also the settings, the model client, the
//! telemetry, the simulator and the command line. Without it, the four above
//! (of `discord` only the conversion) serve other people's bots.

pub mod collect;
pub mod discord;
pub mod engine;
pub mod model;

#[cfg(feature = "bot")]
pub mod app;
#[cfg(feature = "bot")]
pub mod archive;
#[cfg(feature = "bot")]
pub mod cli;
#[cfg(feature = "bot")]
pub mod commands;
#[cfg(feature = "bot")]
pub mod config;
#[cfg(feature = "bot")]
pub mod demo;
#[cfg(feature = "bot")]
pub mod llm;
#[cfg(feature = "bot")]
pub mod replay;
#[cfg(feature = "bot")]
pub mod simulator;
#[cfg(feature = "bot")]
pub mod telemetry;
#[cfg(feature = "bot")]
pub mod turn;
