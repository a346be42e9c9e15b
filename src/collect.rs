//! Gathers the messages for one turn: bounded, under one deadline and one
//! fetch budget, with what arrived when something failed.
//!
//! Invariant: `collect` knows [`Source`] and the core, never Discord's wire,
//! a file or the clock.

mod source;

pub use source::{Anchor, FetchError, PAGE_LIMIT, Page, Source};
