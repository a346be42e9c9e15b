//! Servers by HTTP, of both generations.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::post;
use axum::{Json, Router};
use clew_mcp::{CallError, Servers};
use futures_util::{StreamExt as _, stream};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{checked, servers, tool, until};

/// What a server is, and the methods that it was asked for.
#[derive(Clone, Default)]
struct Fake {
    is_new: bool,
    /// What it asks for instead of answering a call (`InputRequests` of 2026-07-28).
    wants: Option<Value>,
    /// The subscriptions to its changes; it may have none (2026-07-28).
    streams: Option<watch::Sender<Streams>>,
    /// For how long its list is fresh, in milliseconds.
    ttl: u64,
    /// The session that it has (older generation); of others it knows nothing.
    session: Arc<AtomicU32>,
    is_down: Arc<AtomicBool>,
    /// What it says that its tool does.
    does: Arc<Mutex<&'static str>>,
    asked: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Streams {
    /// They are not acknowledged yet.
    Held,
    Open,
    /// They say that the tools changed.
    Changed,
    /// They end once they are acknowledged.
    Ended,
}

impl Fake {
    fn does(&self, what: &'static str) {
        *self.does.lock().unwrap() = what;
    }

    /// How often it was asked for a method.
    fn count(&self, method: &str) -> usize {
        self.asked().iter().filter(|asked| *asked == method).count()
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// The stream of a subscription.
fn subscribed(id: &Value, streams: &watch::Sender<Streams>) -> Response {
    let event = |method: &str, more: Value| {
        let mut params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}});
        params["notifications"] = more;
        let event = json!({"jsonrpc": "2.0", "method": method, "params": params});
        format!("data: {event}\n\n")
    };
    let begun = event(
        "notifications/subscriptions/acknowledged",
        json!({"toolsListChanged": true}),
    );
    let changed = event("notifications/tools/list_changed", Value::Null);
    let steps = [
        (Streams::Held, begun),
        (Streams::Open, changed),
        (Streams::Changed, String::new()),
    ];
    let now = streams.subscribe();
    let body = stream::iter(steps).then(move |(state, event)| {
        let mut now = now.clone();
        async move {
            let now = *now.wait_for(|now| *now > state).await.unwrap();
            let is_told = state == Streams::Held || now == Streams::Changed;
            Ok::<_, Infallible>(if is_told { event } else { String::new() })
        }
    });
    let body = Body::from_stream(body);
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn answer(
    State(fake): State<Fake>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    let method = request["method"].as_str().unwrap_or_default().to_owned();
    fake.asked.lock().unwrap().push(method.clone());
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|value| value != "Bearer s3cret-value")
    {
        let challenge = [(
            header::WWW_AUTHENTICATE,
            "Bearer resource_metadata=\"https://example.org\"",
        )];
        return (StatusCode::UNAUTHORIZED, challenge).into_response();
    }
    if let (Some(streams), "subscriptions/listen") = (&fake.streams, method.as_str()) {
        return subscribed(&request["id"], streams);
    }
    let session = fake.session.load(Ordering::Relaxed).to_string();
    if fake.is_down.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let known = headers.get("mcp-session-id");
    if known.is_some_and(|known| *known != *session) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let result = match (method.as_str(), fake.is_new) {
        ("server/discover", true) => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
            "ttlMs": 0, "cacheScope": "private",
        }),
        ("initialize", false) => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }),
        ("tools/list", _) => json!({
            "resultType": "complete", "ttlMs": fake.ttl, "cacheScope": "private",
            "tools": [{"name": "web.search", "description": *fake.does.lock().unwrap(),
                "inputSchema": {"type": "object"}}],
        }),
        ("tools/call", _) if fake.wants.is_some() => {
            json!({"resultType": "input_required", "inputRequests": fake.wants})
        }
        ("tools/call", _) => {
            json!({"resultType": "complete", "content": [{"type": "text", "text": "found"}]})
        }
        _ if request.get("id").is_none() => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return Json(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
                .into_response();
        }
    };
    let session = (method == "initialize").then_some([("mcp-session-id", session)]);
    let result = Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
    (session, result).into_response()
}

/// Serves a fake server on a free port until the test ends; its address.
async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/mcp")
}

async fn fake(is_new: bool) -> (Fake, String) {
    started(Fake {
        is_new,
        ..Fake::default()
    })
    .await
}

async fn started(fake: Fake) -> (Fake, String) {
    let router = Router::new()
        .route("/mcp", post(answer))
        .with_state(fake.clone());
    (fake, serve(router).await)
}

fn file(url: &str, more: &Value) -> Value {
    let mut entry = json!({"url": url, "headers": {"Authorization": "Bearer ${KEY}"},
        "private": true, "allow": ["web.search"]});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    json!({"mcpServers": {"web": entry}})
}

async fn problem(url: &str, more: &Value) -> String {
    checked(&file(url, more)).await.unwrap_err()
}

#[tokio::test]
async fn both_generations_are_spoken() {
    for (is_new, version) in [(false, "2025-11-25"), (true, "2026-07-28")] {
        let (fake, url) = fake(is_new).await;
        let file = file(&url, &json!({}));
        let servers = servers(&file);
        // Models take no dots in names.
        let search = tool(&servers, "web__web_search").await;
        let given = servers
            .call(&search, Map::new(), Duration::from_secs(20), &|_| ())
            .await
            .unwrap();
        assert_eq!(given.text, "found");
        assert_eq!(fake.count("server/discover"), 1);
        assert_eq!(checked(&file).await.unwrap().version, version);
    }
}

#[tokio::test]
async fn a_server_that_wants_to_be_authorised_says_so() {
    let (_fake, url) = fake(false).await;
    let problem = problem(&url, &json!({"headers": {}})).await;
    assert!(problem.contains("OAuth"), "{problem}");
}

#[tokio::test]
async fn private_addresses_are_refused_unless_they_are_meant() {
    let (fake, url) = fake(false).await;
    for url in [
        url.clone(),
        url.replace("127.0.0.1", "localhost"),
        url.replace("127.0.0.1", "[::1]"),
    ] {
        let problem = problem(&url, &json!({"private": false})).await;
        assert!(!problem.contains("s3cret"), "{problem}");
    }
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn redirects_are_refused() {
    let (fake, url) = fake(false).await;
    let away = Router::new().route("/mcp", post(|| async move { Redirect::temporary(&url) }));
    problem(&serve(away).await, &json!({})).await;
    assert!(fake.asked().is_empty());
}

/// Neither a model nor files nor people are asked for a server, however it wants them.
#[tokio::test]
async fn what_a_server_wants_within_its_answer_is_refused() {
    let sampling = json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}});
    let form = json!({"method": "elicitation/create", "params": {"mode": "form", "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {}}}});
    let roots = json!({"method": "roots/list"});
    let ours = "it asks for a model or for files, which it does not get";
    let people = "it asks people for more input, which is declined";
    for (request, told, calls) in [(sampling, ours, 1), (roots, ours, 1), (form, people, 2)] {
        let (fake, url) = started(Fake {
            is_new: true,
            wants: Some(json!({"one": request})),
            ..Fake::default()
        })
        .await;
        let servers = servers(&file(&url, &json!({})));
        let search = tool(&servers, "web__web_search").await;
        let time = Duration::from_secs(20);
        let given = servers.call(&search, Map::new(), time, &|_| ()).await;
        assert_eq!(given, Err(CallError::Refused(told.to_owned())));
        assert_eq!(fake.count("tools/call"), calls, "{told}");
    }
}

/// A server of 2026-07-28 whose subscriptions are in a state, and its only tool offered.
async fn subscribing(streams: Streams) -> (Fake, Servers, watch::Sender<Streams>) {
    let sender = watch::Sender::new(streams);
    let (fake, url) = started(Fake {
        is_new: true,
        streams: Some(sender.clone()),
        ..Fake::default()
    })
    .await;
    let servers = servers(&file(&url, &json!({})));
    tool(&servers, "web__web_search").await;
    (fake, servers, sender)
}

/// Waits until the tool is offered as what does this.
async fn offered(servers: &Servers, does: &str) {
    let is_it = || {
        let tools = servers.tools();
        tools.iter().any(|(tool, _)| tool.description == does)
    };
    until(does, is_it).await;
}

/// Lets time pass at once, and what is due then begin.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[tokio::test]
async fn what_changes_before_a_subscription_stands_is_seen() {
    let (fake, servers, streams) = subscribing(Streams::Held).await;
    until("asked", || fake.count("subscriptions/listen") == 1).await;
    fake.does("Sends it away.");
    streams.send_replace(Streams::Open);
    offered(&servers, "Sends it away.").await;
}

#[tokio::test]
async fn a_subscription_outlives_a_change() {
    let (fake, servers, streams) = subscribing(Streams::Open).await;
    until("listed again", || fake.count("tools/list") == 2).await;
    fake.does("Sends it away.");
    streams.send_replace(Streams::Changed);
    offered(&servers, "Sends it away.").await;
    assert_eq!(fake.count("subscriptions/listen"), 1);
}

#[tokio::test]
async fn what_changes_when_a_subscription_ends_is_seen() {
    let (fake, servers, streams) = subscribing(Streams::Open).await;
    until("listed again", || fake.count("tools/list") == 2).await;
    fake.does("Sends it away.");
    streams.send_replace(Streams::Ended);
    offered(&servers, "Sends it away.").await;
}

#[tokio::test]
async fn a_server_that_ends_subscriptions_at_once_is_asked_ever_more_rarely() {
    let (fake, _servers, _streams) = subscribing(Streams::Ended).await;
    for _ in 0..120 {
        later(Duration::from_secs(1)).await;
    }
    // After 1, 2, 4, 8, 16, 32 and 64 s.
    let asked = fake.count("subscriptions/listen");
    assert!((3..10).contains(&asked), "{asked}");
}

#[tokio::test]
async fn without_subscriptions_a_list_is_read_again_once_it_is_no_longer_fresh() {
    for (ttl, minutes) in [(0, 6), (1_800_000, 34)] {
        let fake = Fake {
            is_new: true,
            ttl,
            ..Fake::default()
        };
        let (fake, url) = started(fake).await;
        let servers = servers(&file(&url, &json!({})));
        tool(&servers, "web__web_search").await;
        until("refused", || fake.count("subscriptions/listen") == 1).await;
        fake.does("Sends it away.");
        later(Duration::from_secs(minutes * 60 * 4 / 5)).await;
        // It would be asked after a pause.
        later(Duration::from_secs(2)).await;
        assert_eq!(fake.count("tools/list"), 1);
        later(Duration::from_mins(minutes)).await;
        offered(&servers, "Sends it away.").await;
    }
}

#[tokio::test]
async fn a_list_of_another_session_is_read() {
    let (fake, url) = fake(false).await;
    let servers = servers(&file(&url, &json!({})));
    tool(&servers, "web__web_search").await;
    fake.session.fetch_add(1, Ordering::Relaxed);
    fake.does("Sends it away.");
    later(Duration::from_mins(6)).await;
    offered(&servers, "Sends it away.").await;
}

#[tokio::test]
async fn what_cannot_be_listed_any_more_is_not_offered() {
    let (fake, url) = fake(false).await;
    let servers = servers(&file(&url, &json!({})));
    tool(&servers, "web__web_search").await;
    fake.is_down.store(true, Ordering::Relaxed);
    later(Duration::from_mins(6)).await;
    until("not offered", || servers.tools().is_empty()).await;
    fake.is_down.store(false, Ordering::Relaxed);
    tool(&servers, "web__web_search").await;
}
