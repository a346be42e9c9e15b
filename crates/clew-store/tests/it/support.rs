//! Helpers that integration tests share.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
