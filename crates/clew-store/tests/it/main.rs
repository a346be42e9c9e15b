//! The stores, with real files and databases.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, its helpers too"
)]

#[cfg(feature = "postgres")]
mod postgres_server;
mod store;
mod support;
