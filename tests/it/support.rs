//! Helpers that integration tests share.

pub(crate) mod schema;
