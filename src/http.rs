//! Serving HTTP to whoever connects.
//!
//! Invariant: however many connect and whatever they send or withhold, their number, the heads
//! of their requests and the time for these are bounded.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// The pause after a connection that could not be accepted, for lack of files for instance.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// What whoever connects may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most connections at once; others wait until one of these has ended.
    pub(crate) connections: usize,
    /// How long the head of a request may take to arrive; a connection that is kept open ends
    /// when none has come for so long.
    pub(crate) head: Duration,
    /// How long a connection may take, with its one request; none if it may bring many, one
    /// after the other.
    pub(crate) connection: Option<Duration>,
}

/// Serves until dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, bounds: Bounds) {
    let room = Arc::new(Semaphore::new(bounds.connections));
    let mut connections = JoinSet::new();
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, router.clone(), bounds, place));
            }
            Err(error) => not_accepted(&error).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn not_accepted(error: &io::Error) {
    tracing::warn!(%error, "an HTTP connection could not be accepted");
    sleep(ACCEPT_PAUSE).await;
}

async fn connection(
    stream: TcpStream,
    router: Router,
    bounds: Bounds,
    _place: OwnedSemaphorePermit,
) {
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(bounds.connection.is_none())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // Whoever asked has gone, or sent no request: nobody is there to be told.
    match bounds.connection {
        Some(most) => drop(timeout(most, serving).await),
        None => drop(serving.await),
    }
}
