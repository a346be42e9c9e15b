//! A model that answers every request at once with one short streamed text, and reports when each request came.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::post;
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// How long to wait for a request.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pieces of an answer: a sentence or two, word by word.
const WORDS: usize = 24;

/// The server.
pub(crate) struct Model {
    address: SocketAddr,
    arrivals: Mutex<mpsc::UnboundedReceiver<Arrival>>,
}

/// A request.
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) bytes: usize,
}

impl Model {
    pub(crate) async fn start() -> Self {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let app = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::new(arrived));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            arrivals: Mutex::new(arrivals),
        }
    }

    /// Ends in `/v1`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next request.
    pub(crate) async fn arrival(&self) -> Arrival {
        let mut arrivals = self.arrivals.lock().await;
        let arrival = timeout(PATIENCE, arrivals.recv()).await;
        arrival.expect("the model is asked").unwrap()
    }
}

async fn answer(
    State(arrived): State<Arc<mpsc::UnboundedSender<Arrival>>>,
    body: Bytes,
) -> Response {
    let at = Instant::now();
    let bytes = body.len();
    let _ = arrived.send(Arrival { at, bytes });
    let delta = r#"{"choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}"#;
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let mut events = vec![format!("data: {delta}\n\n"); WORDS];
    events.push(format!("data: {end}\n\ndata: [DONE]\n\n"));
    let events = stream::iter(events.into_iter().map(Ok::<_, Infallible>));
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(events))
        .unwrap()
}
