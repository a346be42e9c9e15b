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
//! - `discord`, with the feature `json`: converts Discord's JSON into those types;
//!   with `twilight` it is also a source that asks Discord's REST API.

pub mod collect;
#[cfg(feature = "json")]
pub mod discord;
pub mod engine;
pub mod model;
pub mod outside;

/// Compiles the code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
