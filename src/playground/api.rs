//! The page's server: its routes, and what they may be sent.

mod changes;
mod commands;
mod faults;
mod messages;
mod open;
mod preview;
mod state;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post, put};
use axum::{Json, Router};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;

use super::error::{Answer, ApiError};
use super::page::PageFile;
use super::{Shared, guard};
use crate::http::{self, Bounds};
use clew_context::model::MessageId;
use clew_simulator::Id;

/// The largest body that is read, in bytes.
const MOST_BODY_BYTES: usize = 4 << 20;

/// What browsers may take: each has some connections, and one for its stream of events.
const BOUNDS: Bounds = Bounds {
    connections: 128,
    head: Duration::from_mins(1),
    connection: None,
};

/// What every handler takes.
type SharedState = State<Arc<Shared>>;

/// A JSON body; what is wrong with it is told like any error.
struct Body<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Answer<Self> {
        match Json::<T>::from_request(request, state).await {
            Ok(Json(body)) => Ok(Self(body)),
            Err(refused) => Err(ApiError::new(refused.status(), refused.body_text())),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Caller {
    author: String,
}

/// Serves the page.
pub(super) async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let router = routes()
        .with_state(Arc::clone(&shared))
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(middleware::from_fn_with_state(shared, guarded));
    http::serve(listener, router, BOUNDS).await;
}

fn routes() -> Router<Arc<Shared>> {
    let messages = get(messages::page).post(messages::post);
    let message = patch(changes::edit).delete(changes::delete);
    let reactions = put(changes::react).delete(changes::unreact);
    let calls = get(commands::offered).post(commands::call);
    Router::new()
        .route("/api/events", get(events))
        .route("/api/state", get(state::state))
        .route("/api/channels/{channel}/messages", messages)
        .route("/api/channels/{channel}/messages/{message}", message)
        .route(
            "/api/channels/{channel}/messages/{message}/reactions",
            reactions,
        )
        .route(
            "/api/channels/{channel}/messages/{message}/press",
            post(commands::press),
        )
        .route("/api/channels/{channel}/webhook", post(changes::webhook))
        .route("/api/channels/{channel}/commands", calls)
        .route("/api/channels/{channel}/choices", post(commands::choices))
        .route("/api/channels/{channel}/threads", post(threads::open))
        .route("/api/dms", post(threads::direct))
        .route("/api/turns/{trigger}", get(turn))
        .route("/api/turns/{trigger}/preview", post(preview::preview))
        .route("/api/faults", put(faults::put))
        .route("/api/open", post(open::open))
        .route("/api/faults/disconnect", post(faults::disconnect))
        .fallback(file)
}

/// Checks every request, and adds to every answer what it says to the browser.
async fn guarded(State(shared): SharedState, request: Request, next: Next) -> Response {
    let response = match shared.token.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    (guard::HEADERS, response).into_response()
}

/// One of the page's files.
async fn file(uri: Uri) -> Answer<Response> {
    let path = uri.path();
    let file = PageFile::find(path);
    let file = file.ok_or_else(|| ApiError::missing(format!("there is nothing at {path}")))?;
    Ok(([(CONTENT_TYPE, file.content_type())], file.text).into_response())
}

async fn events(State(shared): SharedState) -> Answer<Response> {
    shared.events.listen(shared.shutdown.clone())
}

async fn turn(State(shared): SharedState, Path(trigger): Path<String>) -> Answer {
    let turn = shared.turns.turn(trigger_id(&trigger)?).await;
    turn.map(Json).ok_or_else(not_kept)
}

fn trigger_id(text: &str) -> Answer<MessageId> {
    text.parse()
        .map_err(|_| ApiError::bad(format!("`{text}` is no message's id")))
}

fn not_kept() -> ApiError {
    ApiError::missing("nothing is known of this question: only the newest are kept, ask again")
}

/// An id in a path or a body.
fn id(text: &str) -> Answer<Id> {
    let id = text.parse::<u64>().ok().filter(|id| *id > 0).map(Id);
    id.ok_or_else(|| ApiError::bad(format!("`{text}` is no id")))
}
