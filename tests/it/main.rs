//! The one integration test binary: a real twilight shard and REST client
//! against fake servers over real sockets, real files, port 0.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod agents;
mod architecture;
mod collectors;
mod commands;
mod config;
mod conversations;
mod defects;
mod deliver;
mod demo;
mod deploy;
mod discord;
mod faults;
mod hostile;
mod llm;
mod mapping;
mod memory;
#[cfg(feature = "postgres")]
mod postgres_server;
mod prompts;
mod readme;
mod replay;
mod simulator;
mod simulator_schema;
mod store;
mod store_command;
mod support;
mod telemetry;
mod turns;
