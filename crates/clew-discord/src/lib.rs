//! The bot's side of Discord: gateway events, commands, posting, and what the
//! gateway told us. `clew-context` reads the messages.
//!
//! Invariant: this is the only place where the bot names twilight. What leaves
//! it uses the types of `model` and `clew-context`.

pub mod commands;
pub mod event;
pub mod gateway;
pub mod guild_state;
mod invite;
mod lenient;
pub mod model;
pub mod rest;
pub mod send;
pub mod session;

pub use invite::invite;

/// Compiles the README's first example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
