//! Helpers that integration tests share.

pub(crate) mod model;
