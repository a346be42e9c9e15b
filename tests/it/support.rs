//! Helpers that integration tests share.

pub(crate) mod bot;
pub(crate) mod client;
pub(crate) mod log;
pub(crate) mod mcp;
pub(crate) mod model;
#[cfg(feature = "postgres")]
#[expect(dead_code, reason = "the store's own tests use all of it")]
#[path = "../../crates/clew-store/tests/it/support/postgres.rs"]
pub(crate) mod postgres;
pub(crate) mod receipt;
pub(crate) mod schema;
#[cfg(feature = "postgres")]
pub(crate) mod statements;

use clew_context::model::UnixMillis;

/// 2026-01-02 10:00 UTC.
pub(crate) const START: UnixMillis = UnixMillis(1_767_348_000_000);
