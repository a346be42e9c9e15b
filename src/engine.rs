//! Pure decisions over the words of `model`.
//!
//! Invariant: `engine` imports `model` alone; it has no clock, no randomness
//! and no IO, and never knows what Discord is.

pub mod access;
