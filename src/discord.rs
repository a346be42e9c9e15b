//! The door to Discord: its events, its commands, what is posted, and what the
//! gateway told. Messages are read by `clew-context`.
//!
//! Invariant: `twilight_*` is named only in discord/, and what leaves it are
//! the words of `model` and of `clew-context`.

pub mod commands;
pub mod event;
pub mod facts;
pub mod gateway;
pub mod rest;
pub mod send;
pub mod session;
