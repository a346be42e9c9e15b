//! The playground's page in a real browser.

mod accessible;
mod chrome;
mod commands;
mod hostile;
mod keyboard;
mod layout;
mod talk;
mod visit;

use std::net::{Ipv4Addr, SocketAddr};

use clew::playground::{Playground, PlaygroundOptions};

/// A playground as `clew playground` starts it.
async fn playground() -> Playground {
    let options = PlaygroundOptions {
        settings: Vec::new(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    };
    Box::pin(Playground::start(options)).await.unwrap()
}
