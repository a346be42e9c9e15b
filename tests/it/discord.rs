//! The door to Discord against the simulator, over real sockets.

mod rest;
mod send;
