//! Tools of other people's servers, by the Model Context Protocol (modelcontextprotocol.io):
//! which servers there are ([`config`]), a connection to each that is kept ([`Servers`]),
//! the tools that they have and what a call of one gave; and what Clew answers as a server
//! ([`Served`]).
//!
//! Invariant: whatever a server sends is bounded here: the size of a message, the number of
//! tools, the length of what is told of one, what one call gives. A server sees nothing of
//! this process' environment but what its entry names.

#[cfg(feature = "client")]
mod check;
#[cfg(feature = "client")]
mod child;
#[cfg(feature = "client")]
mod client;
pub mod config;
#[cfg(feature = "client")]
mod connection;
#[cfg(feature = "client")]
mod content;
#[cfg(feature = "client")]
mod list;
mod model;
#[cfg(not(feature = "client"))]
mod none;
#[cfg(feature = "client")]
mod server;
mod serving;
#[cfg(feature = "client")]
mod words;

#[cfg(feature = "client")]
pub use check::check;
pub use config::{Config, Error, Rules, Secrets, ServerConfig, Transport};
pub use model::{CallError, Checked, Given, Image, Tool, fingerprint};
#[cfg(not(feature = "client"))]
pub use none::{Servers, check};
#[cfg(feature = "client")]
pub use server::Servers;
pub use serving::{Asked, Header, Reply, Served, ServedTool, Step};
