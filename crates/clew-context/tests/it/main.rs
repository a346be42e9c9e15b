//! The collectors with a world in memory, and the live source over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod collectors;
mod conversations;
mod defects;
mod discord;
mod hostile;
mod prompts;
#[expect(dead_code, reason = "the simulator's own tests use all of it")]
#[path = "../../../clew-simulator/tests/it/support.rs"]
mod simulator;
mod support;
