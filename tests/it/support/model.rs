//! A scripted model server: an OpenAI-compatible endpoint on its own port, with
//! one behaviour per request.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long to wait for what a test expects.
const DEADLINE: Duration = Duration::from_secs(20);

/// The server. Stops accepting connections when dropped.
pub(crate) struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// How the next request is answered.
pub(crate) enum Behaviour {
    /// These pieces as a stream, then finish reason, usage and `[DONE]`.
    Text(Vec<String>),
    /// The same, but each piece (and the end) waits for a step of the gate.
    Gated(Vec<String>, Gate),
    /// The text as a single JSON document, as sent by servers without streaming.
    Json(String),
    /// A status with a body and headers.
    Status(u16, String, Vec<(&'static str, String)>),
    /// Those of these words that the request has, as a model says what it was told.
    Repeat(Vec<String>),
    /// The request is read but never answered.
    Hang,
    /// These pieces, then silence while the connection stays open.
    Stall(Vec<String>),
    /// These pieces, then the connection is cut.
    Drop(Vec<String>),
    /// These pieces, then the body ends properly, but without the end of the answer.
    Cut(Vec<String>),
    /// These bytes with this content type and status 200.
    Raw(&'static str, Vec<u8>),
    /// Any of these, once the gate opens.
    Held(Box<Behaviour>, Gate),
}

/// Lets a [`Behaviour::Gated`] stream continue, piece by piece.
#[derive(Clone)]
pub(crate) struct Gate(Arc<Semaphore>);

/// One received request.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) body: Value,
    pub(crate) authorization: Option<String>,
    pub(crate) peer: SocketAddr,
}

#[derive(Default)]
struct Shared {
    scripted: Mutex<VecDeque<Behaviour>>,
    log: Mutex<Log>,
    changed: Notify,
}

#[derive(Default)]
struct Log {
    requests: Vec<Recorded>,
    /// Streams that have ended, whichever side ended them.
    ended: usize,
}

impl FakeModel {
    /// A server that answers every request with "ok" until told otherwise.
    pub(crate) async fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let app = Router::new()
            .route("/v1/chat/completions", post(chat_completions))
            .route("/v1/models", get(models))
            .with_state(Arc::clone(&shared))
            .into_make_service_with_connect_info::<SocketAddr>();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            shared,
            server,
        }
    }

    /// The base URL; ends with `/v1`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Queues a behaviour for the next request without one.
    pub(crate) fn script(&self, behaviour: Behaviour) {
        self.shared.scripted.lock().unwrap().push_back(behaviour);
    }

    /// The bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.recorded().into_iter().map(|r| r.body).collect()
    }

    /// All requests so far.
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        self.shared.log.lock().unwrap().requests.clone()
    }

    /// The bodies of all requests once there are at least `count`.
    pub(crate) async fn wait_requests(&self, count: usize) -> Vec<Value> {
        self.wait(|log| log.requests.len() >= count).await;
        self.requests()
    }

    /// Waits until `count` streams have ended, including cancelled ones.
    pub(crate) async fn wait_ended(&self, count: usize) {
        self.wait(|log| log.ended >= count).await;
    }

    async fn wait(&self, reached: impl Fn(&Log) -> bool) {
        let wait = async {
            loop {
                let changed = self.shared.changed.notified();
                if reached(&self.shared.log.lock().unwrap()) {
                    return;
                }
                changed.await;
            }
        };
        timeout(DEADLINE, wait)
            .await
            .expect("the model server saw too little within the deadline");
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Behaviour {
    /// A stream of these pieces.
    pub(crate) fn text(pieces: &[&str]) -> Self {
        Self::Text(owned(pieces))
    }

    /// A stream of these pieces, and the gate that lets it continue.
    pub(crate) fn gated(pieces: &[&str]) -> (Self, Gate) {
        let gate = Gate(Arc::new(Semaphore::new(0)));
        (Self::Gated(owned(pieces), gate.clone()), gate)
    }

    /// The same behaviour, and the gate that it waits for.
    pub(crate) fn held(self) -> (Self, Gate) {
        let gate = Gate(Arc::new(Semaphore::new(0)));
        (Self::Held(Box::new(self), gate.clone()), gate)
    }

    /// These pieces, then silence.
    pub(crate) fn stall(pieces: &[&str]) -> Self {
        Self::Stall(owned(pieces))
    }

    /// These pieces, then the connection is cut.
    pub(crate) fn drop(pieces: &[&str]) -> Self {
        Self::Drop(owned(pieces))
    }

    /// These pieces, then the body ends without a finish reason.
    pub(crate) fn cut(pieces: &[&str]) -> Self {
        Self::Cut(owned(pieces))
    }

    /// Calls of tools, each with its arguments, after these words; all servers give the
    /// same ids in each round.
    pub(crate) fn calls(words: &str, calls: &[(&str, &str)]) -> Self {
        let calls = calls.iter().enumerate().map(|(at, (name, arguments))| {
            let function = json!({"name": name, "arguments": arguments});
            json!({"index": at, "id": format!("call_{at}"), "type": "function", "function": function})
        });
        let calls: Vec<Value> = calls.collect();
        let delta = json!({"content": words, "tool_calls": calls});
        let chunk =
            json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]});
        let events = event(&chunk) + "data: [DONE]\n\n";
        Self::Raw("text/event-stream", events.into_bytes())
    }

    /// Those of these words that the request has, after "I say".
    pub(crate) fn repeat(words: &[&str]) -> Self {
        Self::Repeat(owned(words))
    }

    fn facing(self, request: &Value) -> Self {
        let Self::Repeat(words) = self else {
            return self;
        };
        let request = request.to_string();
        let mut said = vec!["I say".to_owned()];
        said.extend(words.into_iter().filter(|word| request.contains(word)));
        Self::Text(vec![said.join(" ")])
    }

    /// A proper answer without any text.
    pub(crate) fn empty() -> Self {
        Self::Text(Vec::new())
    }

    /// A stream with an event that is not valid JSON.
    pub(crate) fn malformed() -> Self {
        Self::Raw("text/event-stream", b"data: {\"choices\": [\n\n".to_vec())
    }

    /// A status with a matching error.
    pub(crate) fn status(status: u16, message: &str) -> Self {
        let body = json!({"error": {"message": message, "type": "error", "code": null}});
        Self::Status(status, body.to_string(), Vec::new())
    }

    /// A 429 with a wait in seconds.
    pub(crate) fn rate_limited(retry_after: &str) -> Self {
        let header = ("retry-after", retry_after.to_owned());
        Self::Status(429, String::new(), vec![header])
    }

    /// The refusal of a prompt that is too long.
    pub(crate) fn context_too_long() -> Self {
        let body = json!({"error": {
            "message": "This model's maximum context length is 8192 tokens.",
            "type": "invalid_request_error",
            "code": "context_length_exceeded",
        }});
        Self::Status(400, body.to_string(), Vec::new())
    }
}

impl Gate {
    /// Lets this many more pieces through.
    pub(crate) fn step(&self, pieces: usize) {
        self.0.add_permits(pieces);
    }

    /// Lets everything through.
    pub(crate) fn open(&self) {
        self.0.close();
    }

    async fn pass(&self) {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
    }
}

/// An event with a piece of text.
pub(crate) fn text_event(text: &str) -> String {
    event(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}))
}

/// The events after the last piece: finish reason, usage without choices, `[DONE]`.
pub(crate) fn end_events() -> String {
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "model": "fake-1", "usage": {
        "prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5},
        "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 2}}});
    event(&finish) + &event(&usage) + "data: [DONE]\n\n"
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn owned(pieces: &[&str]) -> Vec<String> {
    pieces.iter().map(|piece| (*piece).to_owned()).collect()
}

/// Requested by the bot at every start; not logged as a request.
async fn models() -> Json<Value> {
    Json(json!({"object": "list", "data": [{"id": "fake", "object": "model"}]}))
}

async fn chat_completions(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> Response<Body> {
    // Taken before the request is logged: a test waiting for it may trigger the next one.
    let scripted = shared.scripted.lock().unwrap().pop_front();
    let scripted = scripted.map(|behaviour| behaviour.facing(&body));
    let authorization = headers.get("authorization");
    shared.log.lock().unwrap().requests.push(Recorded {
        body,
        authorization: authorization.map(|value| value.to_str().unwrap().to_owned()),
        peer,
    });
    shared.changed.notify_waiters();
    respond(
        scripted.unwrap_or_else(|| Behaviour::text(&["ok"])),
        Ended(shared),
    )
    .await
}

async fn respond(behaviour: Behaviour, ended: Ended) -> Response<Body> {
    match behaviour {
        Behaviour::Text(pieces) => streamed(steps(pieces, Some(end_events())), None, ended),
        Behaviour::Gated(pieces, gate) => {
            streamed(steps(pieces, Some(end_events())), Some(gate), ended)
        }
        Behaviour::Cut(pieces) => streamed(steps(pieces, None), None, ended),
        Behaviour::Stall(pieces) => {
            let silence = stream::pending();
            body(events(steps(pieces, None), None).chain(silence), ended)
        }
        Behaviour::Drop(pieces) => {
            // Without this pause the server cuts the connection before it flushes.
            let cut = stream::once(async {
                tokio::task::yield_now().await;
                Err(std::io::Error::other("cut"))
            });
            let events = events(steps(pieces, None), None).map(|event| Ok(event.unwrap()));
            body(events.chain(cut), ended)
        }
        Behaviour::Json(text) => raw(200, "application/json", document(&text).into(), &[]),
        Behaviour::Status(status, body, headers) => {
            raw(status, "application/json", body.into(), &headers)
        }
        Behaviour::Raw(content_type, bytes) => raw(200, content_type, bytes, &[]),
        Behaviour::Hang => std::future::pending().await,
        Behaviour::Held(behaviour, gate) => {
            gate.pass().await;
            Box::pin(respond(*behaviour, ended)).await
        }
        Behaviour::Repeat(_) => unreachable!("it became a text when the request came"),
    }
}

fn document(text: &str) -> String {
    let message = json!({"role": "assistant", "content": text});
    json!({
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    })
    .to_string()
}

fn raw(
    status: u16,
    content_type: &str,
    bytes: Vec<u8>,
    headers: &[(&'static str, String)],
) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let all = response.headers_mut();
    all.insert("content-type", content_type.parse().unwrap());
    for (name, value) in headers {
        all.insert(*name, value.parse().unwrap());
    }
    response
}

fn steps(pieces: Vec<String>, end: Option<String>) -> Vec<String> {
    let pieces = pieces.into_iter().map(|piece| text_event(&piece));
    pieces.chain(end).collect()
}

fn streamed(steps: Vec<String>, gate: Option<Gate>, ended: Ended) -> Response<Body> {
    body(events(steps, gate), ended)
}

fn events(
    steps: Vec<String>,
    gate: Option<Gate>,
) -> impl Stream<Item = Result<String, Infallible>> + Send {
    stream::iter(steps).then(move |step| {
        let gate = gate.clone();
        async move {
            if let Some(gate) = gate {
                gate.pass().await;
            }
            Ok(step)
        }
    })
}

fn body<E: std::error::Error + Send + Sync + 'static>(
    events: impl Stream<Item = Result<String, E>> + Send + 'static,
    ended: Ended,
) -> Response<Body> {
    let events = events.map(move |event| {
        let _until_the_stream_is_dropped = &ended;
        event
    });
    let mut response = Response::new(Body::from_stream(events));
    let content_type = "text/event-stream".parse().unwrap();
    response.headers_mut().insert("content-type", content_type);
    response
}

/// Lives as long as a stream, and counts its end.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.log.lock().unwrap().ended += 1;
        self.0.changed.notify_waiters();
    }
}
