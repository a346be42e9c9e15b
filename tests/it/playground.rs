//! `clew playground`: the page's server over real sockets, with the real bot behind it.

mod bounds;
mod browser;
mod calling;
mod changing;
mod client;
mod guarded;
mod preview;
mod talking;

use std::net::{Ipv4Addr, SocketAddr};

use clew::playground::{Playground, PlaygroundOptions};

use client::Page;

/// A playground, and a page that is open there.
async fn opened(settings: &[(&str, &str)]) -> (Playground, Page) {
    let playground = Playground::start(PlaygroundOptions {
        settings: pairs(settings),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
    });
    let playground = playground.await.unwrap();
    let page = Page::open(playground.link()).await;
    (playground, page)
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}
