//! Clew answers people on Discord with the right context. This is the bot;
//! what other bots can use of it are the crates `clew-context` and
//! `clew-simulator`.
//!
//! The map, see ARCHITECTURE.md for who may import whom:
//!
//! - [`cli`], [`demo`], [`app`]: command line, demo, the wiring and its loop.
//! - [`turn`], [`commands`], [`replay`]: the use cases.
//! - [`memory`]: what is remembered.
//! - [`discord`], [`llm`], [`archive`], [`agents`], [`telemetry`]: doors.
//! - [`config`]: settings; [`engine`]: pure decisions; [`model`]: words.

pub mod agents;
pub mod app;
pub mod archive;
pub mod cli;
pub mod commands;
pub mod config;
pub mod demo;
pub mod discord;
pub mod engine;
pub mod llm;
pub mod memory;
pub mod model;
pub mod replay;
pub mod telemetry;
pub mod turn;
