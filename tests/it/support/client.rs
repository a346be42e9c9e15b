//! A program of a member's: speaks MCP in both generations, written from the specification.

use std::net::SocketAddr;

use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

pub(crate) const MODERN: &str = "2026-07-28";

pub(crate) struct Client {
    http: reqwest::Client,
    address: SocketAddr,
    token: String,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, token: &str) -> Self {
        // The TLS of requests wants a provider, though nothing is encrypted here.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            address,
            token: token.to_owned(),
        }
    }

    /// Another program, which shares this one's connections.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self {
            http: self.http.clone(),
            address: self.address,
            token: token.to_owned(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// This program as a file of servers names it, for a client that is not ours.
    pub(crate) fn entry(&self) -> Value {
        json!({
            "url": format!("http://{}/mcp", self.address),
            "headers": { "Authorization": format!("Bearer {}", self.token) },
            "private": true,
        })
    }

    /// A request with the token.
    pub(crate) fn post(&self, body: &Value) -> RequestBuilder {
        self.bare(body).bearer_auth(&self.token)
    }

    pub(crate) fn bare(&self, body: &Value) -> RequestBuilder {
        let url = format!("http://{}/mcp", self.address);
        let accepted = "application/json, text/event-stream";
        self.http.post(url).header("accept", accepted).json(body)
    }

    /// A request that stands for itself.
    pub(crate) fn modern(&self, method: &str, mut params: Value) -> RequestBuilder {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let request = self.post(&body);
        let request = request.header("mcp-protocol-version", MODERN);
        let request = request.header("mcp-method", method);
        match params["name"].as_str() {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    /// The same in the older generation, as after `initialize`.
    pub(crate) fn legacy(&self, method: &str, params: &Value) -> RequestBuilder {
        let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
        self.post(&body)
            .header("mcp-protocol-version", "2025-11-25")
    }

    /// What a tool says, or why it says nothing.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<String, String> {
        let params = json!({ "name": tool, "arguments": arguments });
        given(self.modern("tools/call", params).send().await.unwrap()).await
    }

    pub(crate) async fn status(&self) -> StatusCode {
        let sent = self.modern("tools/list", json!({})).send().await;
        sent.unwrap().status()
    }
}

pub(crate) async fn given(response: Response) -> Result<String, String> {
    if response.status() == StatusCode::UNAUTHORIZED {
        return Err("The token has ended.".to_owned());
    }
    said(&response.json().await.unwrap())
}

/// What a tool says in a response, or why it says nothing.
pub(crate) fn said(body: &Value) -> Result<String, String> {
    let result = &body["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{body}")).to_owned();
    if result["isError"] == true {
        Err(text)
    } else {
        Ok(text)
    }
}
