//! The door to Discord against the simulator, over real sockets.

mod calls;
mod rest;
mod send;
