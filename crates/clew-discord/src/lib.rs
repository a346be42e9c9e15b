//! The bot's door to Discord: its events, its commands, what is posted, and
//! what the gateway told. Messages are read by `clew-context`.
//!
//! Invariant: the bot names twilight here only, and what leaves are the words
//! of `model`, of `clew-context` and of what `clew-store` keeps.

pub mod commands;
pub mod event;
pub mod facts;
pub mod gateway;
mod invite;
pub mod model;
pub mod rest;
pub mod send;
pub mod session;

pub use invite::invite;

/// Compiles the README's first use.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
