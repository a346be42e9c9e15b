//! Helpers that integration tests share.

pub(crate) mod bot;
pub(crate) mod build;
pub(crate) mod log;
pub(crate) mod model;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod schema;
pub(crate) mod world;
