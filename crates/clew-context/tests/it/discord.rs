//! The live source against the simulator, over real sockets.

mod cache;
mod rest;
