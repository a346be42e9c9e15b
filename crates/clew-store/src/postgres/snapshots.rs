//! The rows and files of saved windows.

use super::super::{Error, SnapshotFiles};
use super::messages::put_sources;
use super::session::{Call, Failure, Outcome};
use crate::columns::{self, Cell};
use crate::model::{ContextSnapshot, ContextSnapshotInfo, StoredMessage};
use crate::snapshots::{held_messages, held_sources};
use crate::sql::Database as _;

const PUT: &str = "
INSERT INTO snapshots (ready, snapshot_id, agent_name, owner_id, guild_id, timestamp,
    message_count, window_start, window_end, oldest, description, summary, text_bytes)
VALUES (false, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (snapshot_id) DO UPDATE SET
    agent_name = excluded.agent_name, owner_id = excluded.owner_id,
    guild_id = excluded.guild_id, timestamp = excluded.timestamp,
    description = excluded.description, summary = excluded.summary,
    message_count = excluded.message_count, window_start = excluded.window_start,
    window_end = excluded.window_end, oldest = excluded.oldest,
    text_bytes = excluded.text_bytes";

const PUT_MESSAGES: &str = "
INSERT INTO snapshot_messages (snapshot_id, guild_id, channel_id, message_id)
SELECT ?1, (held->>2)::bigint, (held->>0)::bigint, (held->>1)::bigint
FROM jsonb_array_elements(?2::text::jsonb) AS each (held)
ON CONFLICT DO NOTHING";

/// Runs work with files off the async threads.
pub(super) async fn at_files<T: Send + 'static>(
    files: &SnapshotFiles,
    work: impl FnOnce(&SnapshotFiles) -> Result<T, Error> + Send + 'static,
) -> Outcome<T> {
    let files = files.clone();
    let done = tokio::task::spawn_blocking(move || work(&files)).await;
    Ok(done.map_err(|_| Failure::Refused("the work at the files broke off"))??)
}

/// Writes the files of announced snapshots.
pub(super) async fn write_files(
    files: &SnapshotFiles,
    snapshots: &[&ContextSnapshot],
) -> Outcome<()> {
    for snapshot in snapshots {
        let copy = (*snapshot).clone();
        at_files(files, move |files| files.write(&copy)).await?;
    }
    Ok(())
}

/// Writes a snapshot's row, a new one as not ready.
pub(super) async fn put_row(call: &Call<'_>, snapshot: &ContextSnapshot) -> Outcome<()> {
    let ContextSnapshot { info, messages } = snapshot;
    let bytes = messages.iter().map(text_bytes).sum::<usize>();
    let mut values = columns::snapshot_cells(snapshot).to_vec();
    values.extend([
        Cell::maybe(info.description.as_deref()),
        Cell::text(&info.summary),
        Cell::limit(bytes),
    ]);
    call.run(PUT, &values).await?;
    for table in ["snapshot_messages", "snapshot_sources"] {
        let forget = format!("DELETE FROM {table} WHERE snapshot_id = ?1");
        call.run(&forget, &[id_of(info)]).await?;
    }
    let held = Cell::json(&held_messages(messages));
    call.run(PUT_MESSAGES, &[id_of(info), held]).await?;
    let sources = held_sources(messages);
    put_sources(
        call,
        "snapshot_sources",
        "snapshot_id",
        id_of(info),
        &sources,
    )
    .await
}

fn id_of(info: &ContextSnapshotInfo) -> Cell<'_> {
    Cell::text(info.id.as_str())
}

fn text_bytes(row: &StoredMessage) -> usize {
    row.content.len() + row.tool_calls.as_ref().map_or(0, String::len)
}
