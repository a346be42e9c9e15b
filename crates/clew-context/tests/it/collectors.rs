//! The collectors with a world in memory: tests for every sentence of the
//! design's "Target", "Collectors", "Always" and "Fetching least" that engine and
//! collect decide.

mod asker;
mod bounds;
mod chain;
mod files;
mod fruitless;
mod held;
mod husks;
mod opt_out;
mod ours;
mod routing;
mod shown;
mod spared;
mod starter;
mod tail;
mod target;
mod thread;
mod window;
