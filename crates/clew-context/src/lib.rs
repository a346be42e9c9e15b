//! The right context for a bot's answer: the messages that belong to the
//! conversation, bounded, in order, explained, and nobody else's.
//!
//! The map, from the words up; arrows go downwards only:
//!
//! - [`model`]: the words everything else speaks.
//! - [`engine`]: pure decisions: route, window, select, render, assemble.
//! - [`collect`]: gathers messages for one turn through a [`collect::Source`].
//! - `discord`, with the feature `twilight`: Discord's messages read into those
//!   words, and a source that asks Discord's REST API.

pub mod collect;
#[cfg(feature = "twilight")]
pub mod discord;
pub mod engine;
pub mod model;

/// Compiles the README's first use.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
