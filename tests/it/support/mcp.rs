//! An MCP server of the generation of 2026-07-28, by HTTP, written from the specification.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// A server on a free port until the test ends.
pub(crate) struct McpServer {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// What calls of a tool give, by its name.
    results: Mutex<BTreeMap<String, Value>>,
    /// Every request, in order.
    requests: watch::Sender<Vec<Value>>,
}

impl Shared {
    fn hangs(&self, params: &Value) -> bool {
        let name = params["name"].as_str().unwrap_or_default();
        self.results.lock().unwrap().get(name) == Some(&Value::Null)
    }
}

impl McpServer {
    /// With these tools, each of which gives a text.
    pub(crate) async fn start(tools: &[(&str, &str)]) -> Self {
        let results = tools.iter().map(|(name, text)| {
            let result = json!({"content": [{"type": "text", "text": text}]});
            ((*name).to_owned(), result)
        });
        let shared = Arc::new(Shared {
            results: Mutex::new(results.collect()),
            ..Shared::default()
        });
        let router = Router::new()
            .route("/mcp", post(answer))
            .with_state(Arc::clone(&shared));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, shared }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What calls of a tool give from now on; with null they hang.
    pub(crate) fn gives(&self, tool: &str, result: Value) {
        let mut results = self.shared.results.lock().unwrap();
        results.insert(tool.to_owned(), result);
    }

    /// The calls so far: tool and arguments.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        let requests = self.shared.requests.borrow();
        let calls = requests.iter().filter(|one| one["method"] == "tools/call");
        let call = |one: &Value| {
            let params = &one["params"];
            (
                params["name"].as_str().unwrap().to_owned(),
                params["arguments"].clone(),
            )
        };
        calls.map(call).collect()
    }

    /// Waits until a tool is called.
    pub(crate) async fn called(&self) {
        let is_called =
            |requests: &Vec<Value>| requests.iter().any(|one| one["method"] == "tools/call");
        let mut requests = self.shared.requests.subscribe();
        requests.wait_for(is_called).await.unwrap();
    }

    /// Waits until the bot has its tools: then it asks to be told of changes.
    pub(crate) async fn listed(&self, times: usize) {
        let is_listed = |requests: &Vec<Value>| {
            let asked = requests
                .iter()
                .filter(|one| one["method"] == "subscriptions/listen");
            asked.count() >= times
        };
        self.shared
            .requests
            .subscribe()
            .wait_for(is_listed)
            .await
            .unwrap();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, Json(request): Json<Value>) -> Response {
    let params = &request["params"];
    let result = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => Some(json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "test", "version": "1"},
            "ttlMs": 0, "cacheScope": "private",
        })),
        "tools/list" => {
            let results = shared.results.lock().unwrap();
            let tools = results.keys().map(|name| {
                json!({"name": name, "description": format!("Does {name}."),
                    "inputSchema": {"type": "object", "properties": {"words": {"type": "string"}}}})
            });
            Some(json!({"ttlMs": 0, "cacheScope": "private", "tools": tools.collect::<Vec<_>>()}))
        }
        "tools/call" if shared.hangs(params) => {
            shared
                .requests
                .send_modify(|requests| requests.push(request));
            return pending().await;
        }
        "tools/call" => {
            let results = shared.results.lock().unwrap();
            results
                .get(params["name"].as_str().unwrap_or_default())
                .cloned()
        }
        _ => None,
    };
    let has_id = request.get("id").is_some();
    let id = request["id"].clone();
    shared
        .requests
        .send_modify(|requests| requests.push(request));
    match result {
        Some(mut result) => {
            result["resultType"] = "complete".into();
            Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
        }
        None if !has_id => StatusCode::ACCEPTED.into_response(),
        None => {
            let error = json!({"code": -32601, "message": "Method not found"});
            Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
        }
    }
}
