//! Servers by stdio and by HTTP, with servers written from the specification.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(
    clippy::disallowed_methods,
    reason = "programs are looked for where the tests have theirs"
)]

mod config;
mod http;
mod stdio;

use std::collections::BTreeMap;
use std::time::Duration;

use clew_mcp::{Checked, Config, Servers, Tool};
use tokio::sync::watch;

/// A file, by an environment of `PATH` and `KEY`.
fn config(file: &serde_json::Value) -> Config {
    let variable = |name: &str| match name {
        "KEY" => Some("s3cret-value".to_owned()),
        "PATH" => std::env::var(name).ok(),
        _ => None,
    };
    Config::parse(&file.to_string(), &variable).unwrap()
}

/// Its servers.
fn servers(file: &serde_json::Value) -> Servers {
    Servers::start(&config(file), &BTreeMap::new(), &watch::Sender::default())
}

/// What a look at the file's only server finds.
async fn checked(file: &serde_json::Value) -> Result<Checked, String> {
    let config = config(file);
    let (name, server) = config.servers.first_key_value().unwrap();
    clew_mcp::check(name, server).await
}

/// Waits until a condition holds, 20 s at most.
async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never: {what}");
}

/// The tools, once there are any.
async fn tools(servers: &Servers) -> Vec<Tool> {
    until("tools", || !servers.tools().is_empty()).await;
    servers.tools().into_iter().map(|(tool, _)| tool).collect()
}

/// The one tool of a name.
async fn tool(servers: &Servers, name: &str) -> Tool {
    let all = tools(servers).await;
    all.into_iter().find(|tool| *tool.name == *name).unwrap()
}
