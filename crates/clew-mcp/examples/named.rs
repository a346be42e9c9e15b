//! Tries servers of other people's, by name: `.ci/mcp` installs them and says where in
//! `NAMED_SERVERS`, a list as PATH is. Pages and the search's engine are on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a trial that cannot go on has failed"
)]
#![expect(
    clippy::disallowed_methods,
    reason = "where the servers are comes from .ci/mcp"
)]
#![expect(clippy::print_stdout, reason = "whoever runs it reads what was tried")]

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use axum::extract::Query;
use axum::response::Html;
use axum::routing::get;
use axum::{Json, Router};
use clew_mcp::{Config, Given, Servers, Tool};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

const TIME: Duration = Duration::from_mins(1);

/// A server of its SDK for Python, in a line: it adds, and draws a dot.
const PYTHON: &str = r#"
import sys
from mcp.server import MCPServer
server = MCPServer("sums")

@server.tool()
def add(a: int, b: int) -> dict:
    "Adds two numbers."
    return {"sum": a + b}

server.run(transport=sys.argv[1], **({} if sys.argv[1] == "stdio" else {"port": int(sys.argv[2])}))
"#;

/// A page, and an engine that finds it.
async fn web() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let page = format!("{address}/page");
    let found = move |Query(asked): Query<BTreeMap<String, String>>| async move {
        let title = format!("About {}", asked["q"]);
        let result = json!({"title": title, "url": page, "content": "Pumps and valves.",
            "engine": "test", "score": 1.0, "category": "general"});
        Json(
            json!({"query": asked["q"], "number_of_results": 1, "results": [result],
            "answers": [], "corrections": [], "infoboxes": [], "suggestions": [],
            "unresponsive_engines": []}),
        )
    };
    let body = "<html><head><title>Pumps</title></head><body><article><h1>Pumps</h1>\
        <p>Boiler pump number seven needs a new seal, says the manual.</p></article></body></html>";
    let router = Router::new()
        .route("/page", get(move || async move { Html(body) }))
        .route("/search", get(found));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn servers(entries: &Value) -> Servers {
    let named = env::var("NAMED_SERVERS").expect("run .ci/mcp");
    let path = format!("{named}:{}", env::var("PATH").unwrap_or_default());
    let variable = |name: &str| match name {
        "PATH" => Some(path.clone()),
        "HOME" => env::var(name).ok(),
        _ => None,
    };
    let file = json!({ "mcpServers": entries }).to_string();
    let config = Config::parse(&file, &variable).unwrap();
    let servers = Servers::start(&config, &BTreeMap::new(), &watch::Sender::default());
    for _ in 0..1_200 {
        let tools = servers.tools();
        let has_tools = |name: &String| tools.iter().any(|(tool, _)| *tool.server == **name);
        if config.servers.keys().all(has_tools) {
            return servers;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not all servers have tools");
}

async fn call(servers: &Servers, name: &str, arguments: Value) -> Given {
    let tools = servers.tools();
    let (tool, _): &(Tool, _) = tools.iter().find(|(tool, _)| *tool.name == *name).unwrap();
    let arguments = arguments.as_object().unwrap().clone();
    servers.call(tool, arguments, TIME, &|_| ()).await.unwrap()
}

/// As in docs/mcp.md: a search by `SearXNG`, and pages.
async fn the_web_is_searched_and_read() {
    let web = web().await;
    let servers = servers(&json!({
        "search": {"command": "mcp-searxng", "env": {"SEARXNG_URL": web},
            "allow": ["searxng_web_search"]},
        "pages": {"command": "mcp-server-fetch", "args": ["--allow-private-ips", "--ignore-robots-txt"], "allow": ["fetch"]},
    }))
    .await;
    let found = call(
        &servers,
        "search__searxng_web_search",
        json!({"query": "pumps"}),
    )
    .await;
    assert!(found.text.contains("About pumps"), "{found:?}");
    let page = format!("{web}/page");
    assert!(found.text.contains(&page), "{found:?}");
    let read = call(&servers, "pages__fetch", json!({ "url": page })).await;
    assert!(read.text.contains("needs a new seal"), "{read:?}");
}

/// Texts, images and what is neither, of the reference server.
async fn the_reference_server_is_understood() {
    let servers = servers(&json!({"all": {
        "command": "mcp-server-everything", "args": ["stdio"],
        "allow": ["echo", "get-tiny-image", "get-structured-content", "get-resource-links",
            "get-env"],
    }}))
    .await;
    let echo = call(&servers, "all__echo", json!({"message": "hello"})).await;
    assert!(echo.text.contains("hello") && !echo.is_error, "{echo:?}");
    let image = call(&servers, "all__get-tiny-image", json!({})).await;
    assert_eq!(image.images.len(), 1);
    let links = call(&servers, "all__get-resource-links", json!({"count": 2})).await;
    assert!(links.text.contains("://"), "{links:?}");
    let variables = call(&servers, "all__get-env", json!({})).await;
    assert!(!variables.text.contains("CARGO"), "{variables:?}");
}

/// The Python SDK by both transports.
async fn the_python_sdk_is_understood() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let run = |args: &[&str]| {
        let mut all = vec!["-c", PYTHON];
        all.extend(args);
        all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>()
    };
    let http = run(&["streamable-http", &port.to_string()]);
    // Of the folders in NAMED_SERVERS, one is the virtual environment's.
    let named = env::var("NAMED_SERVERS").expect("run .ci/mcp");
    let python = env::split_paths(&named)
        .map(|one| one.join("python3"))
        .find(|one| one.exists());
    let mut server = std::process::Command::new(python.unwrap())
        .args(&http)
        .spawn()
        .unwrap();
    let servers = servers(&json!({
        "stdio": {"command": "python3", "args": run(&["stdio"]), "allow": ["add"]},
        "http": {"url": format!("http://127.0.0.1:{port}/mcp"), "private": true, "allow": ["add"]},
    }))
    .await;
    for name in ["stdio__add", "http__add"] {
        let sum = call(&servers, name, json!({"a": 2, "b": 3})).await;
        assert!(sum.text.contains('5'), "{name}: {sum:?}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::main]
async fn main() {
    the_web_is_searched_and_read().await;
    println!("the web is searched and read: ok");
    the_reference_server_is_understood().await;
    println!("the reference server is understood: ok");
    the_python_sdk_is_understood().await;
    println!("the Python SDK is understood: ok");
}
