//! A model that answers every request with one short streamed text, and reports when each request came.

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
use tokio::time::{sleep, timeout};

/// How long to wait for a request.
const PATIENCE: Duration = Duration::from_secs(20);
/// An answer has that many times [`WORD`]: a sentence or two, word by word.
const WORDS: usize = 24;
const WORD: &str = "word ";

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
    /// Begins its answers after this time.
    pub(crate) async fn start(thinks: Duration) -> Self {
        let (arrived, arrivals) = mpsc::unbounded_channel();
        let app = Router::new()
            .route("/v1/chat/completions", post(answer))
            .with_state(Arc::new((arrived, thinks)));
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

    /// What it answers, as Discord shows it.
    pub(crate) fn text() -> String {
        WORD.repeat(WORDS).trim_end().to_owned()
    }

    /// The next request.
    pub(crate) async fn arrival(&self) -> Arrival {
        let mut arrivals = self.arrivals.lock().await;
        let arrival = timeout(PATIENCE, arrivals.recv()).await;
        arrival.expect("the model is asked").unwrap()
    }
}

async fn answer(
    State(state): State<Arc<(mpsc::UnboundedSender<Arrival>, Duration)>>,
    body: Bytes,
) -> Response {
    let at = Instant::now();
    let bytes = body.len();
    let (arrived, thinks) = &*state;
    let _ = arrived.send(Arrival { at, bytes });
    if !thinks.is_zero() {
        sleep(*thinks).await;
    }
    let delta = format!(
        r#"{{"choices":[{{"index":0,"delta":{{"content":"{WORD}"}},"finish_reason":null}}]}}"#
    );
    let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let mut events = vec![format!("data: {delta}\n\n"); WORDS];
    events.push(format!("data: {end}\n\ndata: [DONE]\n\n"));
    let events = stream::iter(events.into_iter().map(Ok::<_, Infallible>));
    Response::builder()
        .header("content-type", "text/event-stream")
        .body(Body::from_stream(events))
        .unwrap()
}
