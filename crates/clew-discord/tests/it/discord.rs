//! The crate against the simulator, over real sockets.

mod calls;
mod rest;
mod send;
