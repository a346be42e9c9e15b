//! Tests of the fake Discord over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod openapi;
mod scripted_model;
mod simulator;
mod simulator_schema;
mod support;
