//! The crate against the simulator, over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod deploy;
mod discord;
#[path = "../../../clew-simulator/tests/it/openapi.rs"]
mod openapi;
mod readers;
#[expect(dead_code, reason = "the simulator's own tests use all of it")]
#[path = "../../../clew-simulator/tests/it/support.rs"]
mod simulator;
mod specs;
