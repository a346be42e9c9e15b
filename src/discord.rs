//! The door to Discord: gateway, REST, and the conversion of its messages
//! into the words of `model`.
//!
//! Invariant: twilight and Discord's JSON are named in here and nowhere else.

#[cfg(feature = "bot")]
pub mod commands;
#[cfg(feature = "bot")]
pub mod event;
#[cfg(feature = "bot")]
pub mod facts;
#[cfg(feature = "bot")]
pub mod gateway;
#[cfg(feature = "bot")]
pub mod session;
