//! Hands on what happens to the open pages: Discord's events, and the news of turns.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::UnboundedReceiver;

use super::Shared;
use super::shown;
use crate::telemetry::TappedLine;
use crate::turn::TurnNews;
use clew_context::model::MessageId;

/// Hands on the gateway's events as a client with all intents gets them. Messages get their
/// text as HTML.
pub(super) async fn events(shared: Arc<Shared>) {
    let mut dispatches = shared.discord.subscribe();
    while let Some(next) = shared.shutdown.run_until_cancelled(dispatches.recv()).await {
        match next {
            Ok(dispatch) => {
                let mut data = Value::clone(&dispatch.data);
                if dispatch.name.starts_with("MESSAGE_") {
                    shown::for_page(&shared.discord, &mut data);
                }
                let event = json!({"t": &*dispatch.name, "d": data});
                shared.events.send("dispatch", &event);
            }
            Err(RecvError::Lagged(_)) => shared.events.missed(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Keeps the news of turns and their telemetry, and tells the pages when one begins, when its
/// context is there, and when it is over.
pub(super) async fn turns(
    shared: Arc<Shared>,
    mut news: UnboundedReceiver<(MessageId, TurnNews)>,
    mut lines: UnboundedReceiver<TappedLine>,
) {
    loop {
        tokio::select! {
            () = shared.shutdown.cancelled() => return,
            next = news.recv() => {
                let Some((trigger, news)) = next else { return };
                if let Some(summary) = shared.turns.take_news(trigger, news) {
                    shared.events.send("turn", &summary);
                }
            }
            Some(line) = lines.recv() => shared.turns.take_line(line),
        }
    }
}
