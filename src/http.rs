//! Serving HTTP to whoever connects.
//!
//! Invariant: however many connect and whatever they send or withhold, their number, the heads
//! of their requests and the time for these are bounded, and who is slow gives way to who comes.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
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
    /// The most connections at once. With one more, the oldest that has sent no whole head ends,
    /// or else the oldest that has not taken its answer; if all are being answered, the new one
    /// waits for one of them.
    pub(crate) connections: usize,
    /// How long the head of a request may take to arrive; a connection that is kept open ends
    /// when none has come for so long.
    pub(crate) head: Duration,
    /// How long a connection may take, with its one request; none if it may bring many, one
    /// after the other.
    pub(crate) connection: Option<Duration>,
}

/// The head of a request has not arrived.
const ASKING: u8 = 0;
/// The answer is being made.
const ANSWERING: u8 = 1;
/// The answer is there, and may not have been read.
const TAKING: u8 = 2;

/// A connection being served.
struct Opened {
    task: AbortHandle,
    /// How far it is.
    stage: Arc<AtomicU8>,
}

/// Serves until dropped.
pub(crate) async fn serve(listener: TcpListener, router: Router, bounds: Bounds) {
    let mut connections = JoinSet::new();
    let mut open = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                make_room(&mut open, &mut connections, bounds.connections).await;
                let stage = Arc::new(AtomicU8::new(ASKING));
                let serving = connection(stream, router.clone(), bounds, Arc::clone(&stage));
                let task = connections.spawn(serving);
                open.push_back(Opened { task, stage });
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
        let oldest = |stage| {
            let mut open = open.iter();
            open.position(|one| one.stage.load(Ordering::Relaxed) == stage)
        };
        let slowest = oldest(ASKING).or_else(|| oldest(TAKING));
        if let Some(slowest) = slowest.and_then(|at| open.remove(at)) {
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

async fn connection(stream: TcpStream, router: Router, bounds: Bounds, stage: Arc<AtomicU8>) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request| {
        stage.store(ANSWERING, Ordering::Relaxed);
        let (answering, stage) = (router.call(request), Arc::clone(&stage));
        async move {
            let answer = answering.await;
            stage.store(TAKING, Ordering::Relaxed);
            answer
        }
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

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn ask(address: std::net::SocketAddr, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: here\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    #[tokio::test]
    async fn who_does_not_take_an_answer_gives_way() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // More than sockets hold.
        let router = Router::new()
            .route("/large", get(async || vec![b'x'; 64 << 20]))
            .route("/small", get(async || "small"));
        let bounds = Bounds {
            connections: 2,
            head: Duration::from_mins(1),
            connection: Some(Duration::from_mins(10)),
        };
        let server = tokio::spawn(serve(listener, router, bounds));
        let mut slow = Vec::new();
        for _ in 0..bounds.connections {
            let mut stream = ask(address, "/large").await;
            assert_eq!(stream.read_u8().await.unwrap(), b'H');
            slow.push(stream);
        }
        let mut said = String::new();
        let mut quick = ask(address, "/small").await;
        let reading = timeout(Duration::from_mins(1), quick.read_to_string(&mut said));
        reading.await.expect("it is not kept waiting").unwrap();
        assert!(said.ends_with("small"), "{said}");
        // The oldest went, the other stays.
        let mut rest = slow.into_iter().map(async |mut stream| {
            let mut all = Vec::new();
            let read = stream.read_to_end(&mut all).await;
            read.is_ok() && all.len() > 64 << 20
        });
        assert!(!rest.next().unwrap().await);
        assert!(rest.next().unwrap().await);
        server.abort();
    }
}
