//! Helpers shared by the integration tests.

pub(crate) mod build;
pub(crate) mod world;
