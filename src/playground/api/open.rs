//! An exported channel, opened by its path.

use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use tokio::task::spawn_blocking;

use super::{Answer, Body, SharedState};
use crate::playground::error::ApiError;
use crate::playground::export::{MOST_MESSAGES, OpenedExport};
use crate::telemetry::with_sources;

/// How many exports may be open.
const MOST_OPEN: usize = 10;

#[derive(Debug, Deserialize)]
pub(super) struct Opening {
    path: String,
}

pub(super) async fn open(
    State(shared): SharedState,
    Body(Opening { path }): Body<Opening>,
) -> Answer {
    // One at a time, so that memory is bounded.
    let mut opened = shared.opened.lock().await;
    if *opened >= MOST_OPEN {
        return Err(ApiError::busy(format!(
            "{MOST_OPEN} exports are open: stop the playground and start it again to open others"
        )));
    }
    let path = path.trim().trim_matches(['"', '\'']);
    if path.is_empty() {
        return Err(ApiError::bad("type the path of an exported channel"));
    }
    let path = PathBuf::from(path);
    let read = spawn_blocking(move || OpenedExport::read(path)).await;
    let read = read.map_err(|_| ApiError::bad("the export could not be read"))?;
    let export = read.map_err(|error| ApiError::bad(with_sources(&error)))?;
    let left_out = export.left_out;
    let put = shared.discord.world(|world| export.put_into(world));
    let (guild, channel) = put.ok_or_else(|| ApiError::bad("the export has no channel"))?;
    *opened += 1;
    shared.discord.announce_guild(guild);
    shared.events.state_changed();
    let note = if left_out == 0 {
        String::new()
    } else {
        format!(
            "only the newest {MOST_MESSAGES} messages are opened; {left_out} older ones are not"
        )
    };
    Ok(Json(
        json!({"channel": channel.to_string(), "left_out": left_out, "note": note}),
    ))
}
