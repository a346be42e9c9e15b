//! Clew answers people on Discord with the right context. This is the bot;
//! what other bots can use of it are the crates `clew-context` and
//! `clew-simulator`.
//!
//! The map, see ARCHITECTURE.md for who may import whom:
//!
//! - `cli`, `demo`, `playground`, `doctor`, `tune`: the command line and what it shows.
//! - `sandbox`: a bot on a simulated Discord; `app`: the wiring and its loop.
//! - `turn`, `commands`, `replay`, `report`: the use cases.
//! - `tools`: what a model may call.
//! - `memory`: what is remembered.
//! - `runs`: agent runs that are under way.
//! - `llm`, `archive`, `agents`, `telemetry`: doors; those to Discord and to the
//!   stores are the crates `clew-discord` and `clew-store`.
//! - `config`: settings; `engine`: pure decisions; `plot`: pages and plots; `model`: words.

#![cfg_attr(
    not(feature = "test-util"),
    expect(unreachable_pub, reason = "`pub` in the bot is for its tests alone")
)]
#![cfg_attr(
    feature = "test-util",
    expect(
        missing_docs,
        reason = "what only the bot's own tests see says by its name what it is"
    )
)]

cfg_if::cfg_if! {
    // Tests and benches reach everything. Otherwise only `main` is public,
    // so that the compiler tells what the bot does not use.
    if #[cfg(feature = "test-util")] {
        pub mod agents;
        pub mod app;
        pub mod archive;
        pub mod cli;
        pub mod commands;
        pub mod config;
        pub mod demo;
        pub mod doctor;
        pub mod engine;
        pub mod http;
        pub mod llm;
        pub mod memory;
        pub mod model;
        pub mod playground;
        pub mod plot;
        pub mod replay;
        pub mod report;
        pub mod runs;
        pub mod sandbox;
        pub mod telemetry;
        pub mod tools;
        pub mod tune;
        pub mod turn;
    } else {
        mod agents;
        mod app;
        mod archive;
        mod cli;
        mod commands;
        mod config;
        mod demo;
        mod doctor;
        mod engine;
        mod http;
        mod llm;
        mod memory;
        mod model;
        mod playground;
        mod plot;
        mod replay;
        mod report;
        mod runs;
        mod sandbox;
        mod telemetry;
        mod tools;
        mod tune;
        mod turn;
    }
}

pub use cli::main;
