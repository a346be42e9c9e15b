//! The right context for a bot's answer: exactly the messages that belong to the
//! conversation, in order, within bounds, and with a reason for everything left
//! out.
//!
//! Modules, from the bottom layer up; each one uses only those listed before it:
//!
//! - [`outside`]: what a process has around it, for simulations to replace.
//! - [`model`]: the plain data types that everything else uses.
//! - [`engine`]: pure decisions: route, window, select, render, assemble.
//! - [`collect`]: gathers messages for one turn through a [`collect::Source`].
//! - `discord`, with the feature `twilight`: converts Discord's messages into
//!   those types, and is a source that asks Discord's REST API.

pub mod collect;
#[cfg(feature = "twilight")]
pub mod discord;
pub mod engine;
pub mod model;
pub mod outside;

/// Compiles the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
