//! Serving HTTP to whoever connects.
//!
//! Invariant: however many connect and whatever they send or withhold, their number, the heads
//! of their requests and the time for these are bounded, and who is slow gives way to who comes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// The most bytes of a request's head.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// The pause after a connection that could not be accepted, for lack of files for instance.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// What whoever connects may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The most connections at once. With one more, the oldest that has sent no whole head ends;
    /// if all have, the new one waits until one of them is answered.
    pub(crate) connections: usize,
    /// How long the head of a request may take to arrive; a connection that is kept open ends
    /// when none has come for so long.
    pub(crate) head: Duration,
    /// How long a connection may take, with its one request; none if it may bring many, one
    /// after the other.
    pub(crate) connection: Option<Duration>,
}

/// A connection being served.
struct Opened {
    task: AbortHandle,
    /// Whether the head of a request has arrived.
    has_asked: Arc<AtomicBool>,
}

/// Serves until dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, bounds: Bounds) {
    let mut connections = JoinSet::new();
    let mut open = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                make_room(&mut open, &mut connections, bounds.connections).await;
                let has_asked = Arc::<AtomicBool>::default();
                let serving = connection(stream, router.clone(), bounds, Arc::clone(&has_asked));
                let task = connections.spawn(serving);
                open.push_back(Opened { task, has_asked });
            }
            Err(error) => not_accepted(&error).await,
        }
    }
}

async fn make_room(open: &mut VecDeque<Opened>, connections: &mut JoinSet<()>, most: usize) {
    loop {
        while connections.try_join_next().is_some() {}
        open.retain(|one| !one.task.is_finished());
        if open.len() < most {
            return;
        }
        let slow = |one: &Opened| !one.has_asked.load(Ordering::Relaxed);
        if let Some(slowest) = open.iter().position(slow).and_then(|at| open.remove(at)) {
            slowest.task.abort();
        } else {
            connections.join_next().await;
        }
    }
}

async fn not_accepted(error: &io::Error) {
    tracing::warn!(%error, "an HTTP connection could not be accepted");
    sleep(ACCEPT_PAUSE).await;
}

async fn connection(stream: TcpStream, router: Router, bounds: Bounds, has_asked: Arc<AtomicBool>) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        has_asked.store(true, Ordering::Relaxed);
        router.call(request)
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(bounds.connection.is_none())
        .serve_connection(TokioIo::new(stream), service);
    // Whoever asked has gone, or sent no request: nobody is there to be told.
    match bounds.connection {
        Some(most) => drop(timeout(most, serving).await),
        None => drop(serving.await),
    }
}
