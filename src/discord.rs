//! The door to Discord: its messages read leniently into our words, its REST
//! API and its gateway.
//!
//! Invariant: `twilight_*` is named only in discord/, and what leaves it are
//! the words of `model`.

pub mod convert;

#[cfg(feature = "bot")]
pub mod commands;
#[cfg(feature = "bot")]
pub mod error;
#[cfg(feature = "bot")]
pub mod event;
#[cfg(feature = "bot")]
pub mod facts;
#[cfg(feature = "bot")]
pub mod gateway;
#[cfg(feature = "bot")]
pub mod rest;
#[cfg(feature = "bot")]
pub mod send;
#[cfg(feature = "bot")]
pub mod session;
