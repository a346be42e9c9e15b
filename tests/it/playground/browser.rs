//! The playground's page in a real browser.

mod accessible;
mod chrome;
mod hostile;
mod keyboard;
mod talk;
mod visit;

use std::net::{Ipv4Addr, SocketAddr};

use clew::playground::{Playground, PlaygroundOptions};

/// A playground as `clew playground` starts it.
async fn playground() -> Playground {
    let options = PlaygroundOptions {
        settings: Vec::new(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        page: None,
    };
    Box::pin(Playground::start(options)).await.unwrap()
}
