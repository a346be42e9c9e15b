//! The one integration test binary: a real twilight shard and REST client
//! against fake servers over real sockets, real files, port 0.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod agents;
mod architecture;
mod commands;
mod config;
mod defects;
mod deliver;
mod demo;
mod deploy;
mod discord;
mod faults;
mod llm;
mod mapping;
mod memory;
#[path = "../../crates/clew-simulator/tests/it/openapi.rs"]
mod openapi;
mod readme;
mod replay;
#[expect(dead_code, reason = "the simulator's own tests use all of it")]
#[path = "../../crates/clew-simulator/tests/it/support.rs"]
mod simulator;
mod store_command;
mod support;
mod telemetry;
mod turns;
