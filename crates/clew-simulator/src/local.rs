//! The server without sockets: calls and gateway connections within this process, for
//! bots whose time and network a test holds in its hands.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, Response};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::cuttable::CutSwitch;
use super::gateway::{self, Outgoing};
use super::rest;
use super::state::Shared;

/// The way into a simulator without sockets; clones lead to the same one.
#[derive(Clone, Debug)]
pub struct Local(pub(super) Arc<Shared>);

/// A gateway connection without compression. Dropping it hangs up.
#[derive(Debug)]
pub struct LocalConnection {
    shared: Arc<Shared>,
    link: u64,
    outgoing: UnboundedReceiver<Outgoing>,
}

/// What a gateway connection receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// An envelope.
    Text(Arc<str>),
    /// The server closes, with this code.
    Close(u16),
    /// The connection broke off.
    Dropped,
}

impl Local {
    /// One call to REST; `None` if the connection broke off before the answer. A body that
    /// a fault breaks off ends with an error.
    pub async fn call(&self, request: Request<impl Into<Body>>) -> Option<Response<Body>> {
        let connection = CutSwitch::default();
        let request = request.map(Into::into);
        let response = rest::answer(Arc::clone(&self.0), request, &connection).await;
        (!connection.is_cut()).then_some(response)
    }

    /// Connects to the gateway, which greets at once; `None` if the server is stopped.
    pub fn connect(&self) -> Option<LocalConnection> {
        let (queue, outgoing) = unbounded_channel();
        let link = self
            .0
            .with(|state| (!state.stopped).then(|| gateway::open(state, queue, false)))?;
        Some(LocalConnection {
            shared: Arc::clone(&self.0),
            link,
            outgoing,
        })
    }
}

impl LocalConnection {
    /// Waits for what comes next. Cancel safe.
    pub async fn next(&mut self) -> Received {
        match self.outgoing.recv().await {
            Some(Outgoing::Text(text)) => Received::Text(text),
            Some(Outgoing::Close(code, _)) => Received::Close(code),
            Some(Outgoing::Drop) | None => Received::Dropped,
        }
    }

    /// Sends a frame.
    pub fn send(&self, text: &str) {
        self.shared.with(|state| state.on_frame(self.link, text));
    }

    /// Closes with a code.
    pub fn close(&self, code: u16) {
        gateway::closed_by_client(&self.shared, self.link, Some(code));
    }
}

impl Drop for LocalConnection {
    fn drop(&mut self) {
        self.shared.with(|state| state.hub.close(self.link, false));
    }
}
