//! One gateway connection: the socket loop and its compression.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use serde_json::json;
use tokio::sync::mpsc::{self, UnboundedSender};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, InBuffer, OutBuffer};

use super::Outgoing;
use crate::log::GatewayEvent;
use crate::state::{Shared, State};

/// How long a closed connection waits for the client's close frame, so that a
/// reset does not discard ours.
const FAREWELL: Duration = Duration::from_secs(2);

/// Most bytes written by one step of the compressor.
const CHUNK_BYTES: usize = 16 * 1024;

/// Serves one connection until either side ends it.
pub(crate) async fn serve(mut socket: WebSocket, shared: Arc<Shared>, compressed: bool) {
    let (queue, mut outgoing) = mpsc::unbounded_channel();
    let mut encoder = Encoder::new(compressed);
    let link = shared.with(|state| open(state, queue, compressed));
    loop {
        tokio::select! {
            next = outgoing.recv() => {
                if !send(&mut socket, &mut encoder, next).await {
                    break;
                }
            }
            frame = socket.recv() => {
                if !receive(&shared, link, frame) {
                    say_goodbye(&mut socket).await;
                    break;
                }
            }
        }
    }
    shared.with(|state| state.hub.close(link, false));
}

/// Registers a connection and greets it.
pub(crate) fn open(state: &mut State, queue: UnboundedSender<Outgoing>, compressed: bool) -> u64 {
    let link = state.hub.open(queue);
    let interval = state.world.settings.heartbeat_interval_ms;
    let hello = json!({"heartbeat_interval": interval});
    state.hub.send_op(link, 10, &hello);
    state.note(link, GatewayEvent::Opened { compressed });
    link
}

/// The client has closed the connection, or it broke off.
pub(crate) fn closed_by_client(shared: &Shared, link: u64, code: Option<u16>) {
    shared.with(|state| {
        state.hub.close(link, matches!(code, Some(1000 | 1001)));
        state.note(link, GatewayEvent::ClosedByClient { code });
    });
}

/// Sends one item; returns false when the connection is over.
async fn send(socket: &mut WebSocket, encoder: &mut Encoder, next: Option<Outgoing>) -> bool {
    match next {
        Some(Outgoing::Text(text)) => match encoder.encode(&text) {
            Some(frame) => socket.send(frame).await.is_ok(),
            None => false,
        },
        Some(Outgoing::Close(code, reason)) => {
            let reason = reason.into();
            let close = Message::Close(Some(CloseFrame { code, reason }));
            if socket.send(close).await.is_ok() {
                say_goodbye(socket).await;
            }
            false
        }
        Some(Outgoing::Drop) | None => false,
    }
}

/// Keeps reading until the closing handshake is complete: the reply to a client's
/// close frame is only sent while reading.
async fn say_goodbye(socket: &mut WebSocket) {
    let rest = async { while let Some(Ok(_)) = socket.recv().await {} };
    // Whether it timed out or completed, the connection ends.
    let _ = tokio::time::timeout(FAREWELL, rest).await;
}

/// Handles one frame; returns false when the connection is over.
fn receive(shared: &Shared, link: u64, frame: Option<Result<Message, axum::Error>>) -> bool {
    let closed = |code: Option<u16>| {
        closed_by_client(shared, link, code);
        false
    };
    match frame {
        Some(Ok(Message::Text(text))) => {
            shared.with(|state| state.on_frame(link, &text));
            true
        }
        Some(Ok(Message::Binary(bytes))) => {
            let text = String::from_utf8_lossy(&bytes);
            shared.with(|state| state.on_frame(link, &text));
            true
        }
        Some(Ok(Message::Close(close))) => closed(close.map(|close| close.code)),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => true,
        Some(Err(_)) | None => closed(None),
    }
}

/// Plain text frames, or one zstd stream for the whole connection that is flushed
/// after each message.
enum Encoder {
    Plain,
    Zstd(Box<CCtx<'static>>),
}

impl Encoder {
    fn new(compressed: bool) -> Self {
        if compressed {
            Self::Zstd(Box::new(CCtx::create()))
        } else {
            Self::Plain
        }
    }

    /// The frame for a message; `None` if the compressor fails.
    fn encode(&mut self, text: &str) -> Option<Message> {
        let Self::Zstd(context) = self else {
            return Some(Message::Text(text.into()));
        };
        let mut bytes = Vec::new();
        let mut input = InBuffer::around(text.as_bytes());
        loop {
            let mut chunk = [0; CHUNK_BYTES];
            let mut output = OutBuffer::around(&mut chunk[..]);
            let flush = ZSTD_EndDirective::ZSTD_e_flush;
            let left = context.compress_stream2(&mut output, &mut input, flush);
            let left = left.ok()?;
            bytes.extend_from_slice(output.as_slice());
            if left == 0 && input.pos() == text.len() {
                return Some(Message::Binary(bytes.into()));
            }
        }
    }
}
