//! Saved windows: a row about each, the ids in it, and a file with its rows.
//!
//! To save one, its row is written first, marked as not ready, then the file,
//! then the mark is cleared: after a kill in between, the row tells which file
//! to remove. Removals change the file before they are committed: after a kill
//! in between, a file holds less than its row says, never more.

use super::super::{Error, SnapshotFiles, with_edit};
use super::messages::put_sources;
use super::session::{Call, Failure, Outcome, see};
use super::tables::SNAPSHOT;
use super::values::PostgresRow;
use crate::columns::{self, Cell};
use crate::model::{ContextSnapshot, ContextSnapshotInfo, SnapshotId, StoredMessage, Subject};
use crate::snapshots::{held_messages, held_sources};
use crate::sql::{Database as _, See};
use clew_context::model::{ChannelId, MessageId, UserId};

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

/// What is known of snapshots; `which` starts with the condition.
pub(super) async fn select(
    call: &Call<'_>,
    which: &str,
    values: &[Cell<'_>],
) -> Outcome<Vec<ContextSnapshotInfo>> {
    let sql = format!("SELECT {SNAPSHOT} FROM snapshots {which}");
    let read = |row: &PostgresRow<'_>| columns::snapshot(row);
    call.all(See::Lists, "snapshots", &sql, values, read).await
}

/// Announces snapshots: writes their rows as not ready, and removes old ones
/// with the same ids.
pub(super) async fn announce(call: &Call<'_>, snapshots: &[&ContextSnapshot]) -> Outcome<()> {
    see(call, See::All).await?;
    for snapshot in snapshots {
        let sql = "WHERE snapshot_id = ?1 FOR UPDATE";
        for old in select(call, sql, &[id_of(&snapshot.info)]).await? {
            remove(call, old).await?;
        }
        put_row(call, snapshot).await?;
    }
    Ok(())
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

/// Makes a snapshot visible once its file is written.
pub(super) async fn ready(call: &Call<'_>, id: &SnapshotId) -> Outcome<()> {
    let sql = "UPDATE snapshots SET ready = true WHERE snapshot_id = ?1";
    match call.run(sql, &[Cell::text(id.as_str())]).await? {
        0 => Err(Failure::Refused("it was purged meanwhile")),
        _ => Ok(()),
    }
}

/// Removes announced snapshots: these, or all that a kill left behind.
pub(super) async fn take_back(
    call: &Call<'_>,
    snapshots: Option<&[&ContextSnapshot]>,
) -> Outcome<()> {
    see(call, See::All).await?;
    let sql = "WHERE NOT ready FOR UPDATE";
    for info in select(call, sql, &[]).await? {
        let is_ours = |ours: &[&ContextSnapshot]| ours.iter().any(|one| one.info.id == info.id);
        if snapshots.is_none_or(is_ours) {
            remove(call, info).await?;
        }
    }
    // A purge may have removed the row already.
    for snapshot in snapshots.unwrap_or_default() {
        let sql = "WHERE snapshot_id = ?1";
        if select(call, sql, &[id_of(&snapshot.info)])
            .await?
            .is_empty()
        {
            let info = snapshot.info.clone();
            at_files(call.files, move |files| files.remove(&info)).await?;
        }
    }
    Ok(())
}

/// Rewrites a snapshot that lost rows or changed: its row, then its file.
pub(super) async fn rewrite(call: &Call<'_>, snapshot: &ContextSnapshot) -> Outcome<()> {
    put_row(call, snapshot).await?;
    write_files(call.files, &[snapshot]).await
}

async fn put_row(call: &Call<'_>, snapshot: &ContextSnapshot) -> Outcome<()> {
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

/// Removes a snapshot's row, then its file.
pub(super) async fn remove(call: &Call<'_>, info: ContextSnapshotInfo) -> Outcome<()> {
    let sql = "DELETE FROM snapshots WHERE snapshot_id = ?1";
    call.run(sql, &[id_of(&info)]).await?;
    at_files(call.files, move |files| files.remove(&info)).await?;
    Ok(())
}

/// See [`super::super::Backend::snapshot`].
pub(super) async fn snapshot(
    call: &Call<'_>,
    owner: UserId,
    id: &SnapshotId,
) -> Outcome<Option<ContextSnapshot>> {
    see(call, See::About(Subject::User(owner))).await?;
    // Locks the row, so that the file is not removed before it is read.
    let sql = "WHERE snapshot_id = ?1 AND owner_id = ?2 AND ready FOR SHARE";
    let values = [Cell::text(id.as_str()), Cell::id(owner.get())];
    match select(call, sql, &values).await?.pop() {
        Some(info) => Ok(Some(read(call, info).await??)),
        None => Ok(None),
    }
}

/// A snapshot with its file's rows, or why that cannot be read.
pub(super) async fn read(
    call: &Call<'_>,
    info: ContextSnapshotInfo,
) -> Outcome<Result<ContextSnapshot, Error>> {
    at_files(call.files, move |files| Ok(files.read(&info))).await
}

/// Gives an edited message its new text in all snapshots.
pub(super) async fn edit(
    call: &Call<'_>,
    channel: ChannelId,
    message: MessageId,
    new_text: &str,
) -> Outcome<()> {
    let sql = "WHERE snapshot_id IN (SELECT snapshot_id \
               FROM snapshot_messages WHERE channel_id = ?1 AND message_id = ?2) FOR UPDATE";
    let ids = [channel.get(), message.get()].map(Cell::id);
    for info in select(call, sql, &ids).await? {
        let snapshot = read(call, info).await??;
        if let Some(edited) = with_edit(&snapshot, channel, message, new_text) {
            rewrite(call, &edited).await?;
        }
    }
    Ok(())
}
