//! The bot's integration tests: a real twilight shard and REST client against fake servers, over real sockets
//! on port 0, with real files.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod agents;
mod architecture;
#[cfg(feature = "postgres")]
mod cluster;
mod commands;
mod config;
mod counts;
mod defects;
mod deliver;
mod demo;
mod doctor;
mod faults;
mod init;
mod llm;
mod mapping;
mod memory;
mod monitor;
mod packaging;
mod playground;
mod program;
mod readme;
mod replay;
mod report;
mod runs;
mod store_command;
mod support;
mod telemetry;
#[cfg(feature = "otel")]
mod traces;
mod tune;
mod turns;
