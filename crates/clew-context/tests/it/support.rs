//! Helpers that integration tests share.

pub(crate) mod build;
pub(crate) mod world;
