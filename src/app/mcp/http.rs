//! Programs come over HTTP (`MCP_LISTEN`), each with a token of `/connect`.
//!
//! Invariant: without a token that holds now, nothing is read, not even the request; of one member
//! only so many requests are read. No web page gets anything: there is no CORS here.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use clew_mcp::{Reply, Step};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::{Caller, Door};
use crate::app;
use crate::config::McpListen;
use crate::http::{self, Bounds};
use crate::telemetry::event::ServedBy;

/// What programs may take. A call takes twenty seconds at most.
const BOUNDS: Bounds = Bounds {
    connections: 128,
    head: Duration::from_secs(5),
    connection: Some(Duration::from_mins(1)),
};
/// The most bytes of a request, and how long they may take.
const MAX_BYTES: usize = 64 << 10;
const BODY: Duration = Duration::from_secs(5);

/// Takes the address, if there is one.
///
/// # Errors
/// If another program has it, or it is none of this machine's.
pub(in crate::app) async fn listen(
    listen: Option<McpListen>,
) -> Result<Option<TcpListener>, app::Error> {
    let Some(address) = listen.and_then(McpListen::address) else {
        return Ok(None);
    };
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|source| app::Error::Address {
        setting: "MCP_LISTEN",
        address,
        source,
    });
    listener.map(Some)
}

/// Answers until dropped.
pub(super) async fn serve(listener: TcpListener, door: Arc<Door>) {
    let router = Router::new().route("/mcp", post(answer)).with_state(door);
    http::serve(listener, router, BOUNDS).await;
}

async fn answer(State(door): State<Arc<Door>>, request: Request<Body>) -> Response {
    let (head, body) = request.into_parts();
    let headers = head.headers;
    if !is_local(&headers) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let Some(caller) = caller(&door, &headers) else {
        return unauthorized(&headers);
    };
    let Some(_request) = door.enters(caller.user) else {
        return (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "60")]).into_response();
    };
    let body = match timeout(BODY, to_bytes(body, MAX_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let header = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let reply = match door.step(&body, Some(&header)) {
        Step::Answer(reply) => reply,
        Step::Call(asked) => {
            let asked_in = caller.of(&asked.arguments).map(|who| who.guild);
            let reply = door.answer(&caller, asked).await;
            // It may have been taken back meanwhile, or for that server.
            let caller = self::caller(&door, &headers);
            let stands = |now: Caller| asked_in.is_none_or(|guild| now.guilds.contains(&guild));
            if !caller.is_some_and(stands) {
                return unauthorized(&headers);
            }
            reply
        }
        // Who goes drops the call with its connection.
        Step::Cancel(_) => Reply::ACCEPTED,
    };
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    match reply.body {
        Some(body) => {
            let json = [(CONTENT_TYPE, "application/json")];
            (status, json, body.to_string()).into_response()
        }
        None => status.into_response(),
    }
}

fn unauthorized(headers: &HeaderMap) -> Response {
    // RFC 6750, 3: no code where nothing was sent.
    let challenge = if headers.contains_key(AUTHORIZATION) {
        "Bearer error=\"invalid_token\""
    } else {
        "Bearer"
    };
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response()
}

/// Whether no web page asks, or one of this machine.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return true;
    };
    let url = origin.to_str().ok();
    let url = url.and_then(|origin| reqwest::Url::parse(origin).ok());
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    host.is_some_and(|host| matches!(host, "localhost" | "127.0.0.1" | "[::1]"))
}

/// Whose token came with the request.
fn caller(door: &Door, headers: &HeaderMap) -> Option<Caller> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let services = &door.services;
    let token = Some(token.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
    let found = services
        .connections
        .by_token(token, services.memory.now())?;
    Some(Caller {
        user: found.user,
        guilds: found.guilds,
        by: ServedBy::Token,
    })
}
