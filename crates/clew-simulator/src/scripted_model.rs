//! A model server without a model: it answers chat completions from a script.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Json, State};
use axum::http::Response;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The most requests that are remembered.
const MOST_REQUESTS: usize = 100;

/// An OpenAI-compatible server on a free loopback port. Stops when dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

/// What the script answers to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelReply {
    /// A text.
    Text(String),
    /// Tools to be called: their names, and their arguments as JSON.
    ToolCalls(Vec<(String, String)>),
}

type Script = Box<dyn Fn(&Value) -> ModelReply + Send + Sync>;

struct Shared {
    script: Script,
    /// Between two words.
    pause: Duration,
    requests: Mutex<Vec<Value>>,
}

impl Shared {
    fn remember(&self, request: Value) {
        let requests = self.requests.lock();
        let mut requests = requests.unwrap_or_else(PoisonError::into_inner);
        if requests.len() == MOST_REQUESTS {
            requests.remove(0);
        }
        requests.push(request);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl ScriptedModel {
    /// Serves a script, which is given the body of each request.
    ///
    /// # Errors
    ///
    /// No port was available.
    pub async fn start(
        script: impl Fn(&Value) -> ModelReply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_at_pace(Duration::ZERO, script).await
    }

    /// The same, with texts in words and a pause between them.
    ///
    /// # Errors
    ///
    /// No port was available.
    pub async fn start_at_pace(
        pause: Duration,
        script: impl Fn(&Value) -> ModelReply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            pause,
            requests: Mutex::default(),
        });
        let models = json!({"object": "list", "data": [{"id": "script", "object": "model"}]});
        let router = Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/v1/models", get(|| async { Json(models) }))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(async move {
            // It only ends when stopped; errors while accepting are retried.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            shared,
            server,
        })
    }

    /// The base URL, which ends in `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the last 100 requests, oldest first.
    pub fn requests(&self) -> Vec<Value> {
        let requests = self.shared.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Streams the reply, one chunk for the text, or for each of its words, or for each call, and
/// the end.
async fn complete(State(shared): State<Arc<Shared>>, Json(body): Json<Value>) -> Response<Body> {
    let reply = (shared.script)(&body);
    shared.remember(body);
    let pause = shared.pause;
    let mut chunks: Vec<Value> = deltas(&reply, !pause.is_zero())
        .into_iter()
        .map(|one| chunk(&one, None))
        .collect();
    let finish = match reply {
        ModelReply::Text(_) => "stop",
        ModelReply::ToolCalls(_) => "tool_calls",
    };
    chunks.push(chunk(&json!({}), Some(finish)));
    let lines = chunks.into_iter().map(|chunk| format!("data: {chunk}\n\n"));
    let lines = lines.chain(["data: [DONE]\n\n".to_owned()]);
    let lines = stream::iter(lines.collect::<Vec<_>>()).then(move |line| async move {
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        Ok::<_, Infallible>(line)
    });
    let mut response = Response::new(Body::from_stream(lines));
    let kind = axum::http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn deltas(reply: &ModelReply, in_words: bool) -> Vec<Value> {
    match reply {
        ModelReply::Text(text) if in_words => {
            let words = text.split_inclusive(char::is_whitespace);
            words.map(|word| json!({"content": word})).collect()
        }
        ModelReply::Text(text) => vec![json!({"role": "assistant", "content": text})],
        ModelReply::ToolCalls(calls) => {
            let calls = calls.iter().enumerate().map(|(index, (name, arguments))| {
                let function = json!({"name": name, "arguments": arguments});
                let id = format!("call_{index}");
                let call =
                    json!({"index": index, "id": id, "type": "function", "function": function});
                json!({"tool_calls": [call]})
            });
            calls.collect()
        }
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"object": "chat.completion.chunk", "choices": [choice]})
}
