//! The command line: one file a command, each from flags to a typed value and
//! from a result to an exit code.
//!
//! Invariant: only `cli` reads flags, writes to the terminal and chooses exit
//! codes.

pub mod replay;
