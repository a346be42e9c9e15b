//! A model server without a model: it answers chat completions from a script.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Json, State};
use axum::http::Response;
use axum::http::header::CONTENT_TYPE;
use axum::routing::{get, post};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

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
    requests: Mutex<Vec<Value>>,
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
        let shared = Arc::new(Shared {
            script: Box::new(script),
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

    /// The bodies of all requests so far.
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

/// Streams the reply, one chunk for the text or for each call, and the end.
async fn complete(State(shared): State<Arc<Shared>>, Json(body): Json<Value>) -> Response<Body> {
    let reply = (shared.script)(&body);
    let requests = shared.requests.lock();
    requests.unwrap_or_else(PoisonError::into_inner).push(body);
    let mut chunks: Vec<Value> = deltas(&reply)
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
    let mut response = Response::new(Body::from_stream(stream::iter(
        lines.map(Ok::<_, Infallible>).collect::<Vec<_>>(),
    )));
    let kind = axum::http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn deltas(reply: &ModelReply) -> Vec<Value> {
    match reply {
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
