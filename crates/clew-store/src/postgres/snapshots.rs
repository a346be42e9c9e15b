//! Saved windows: a row about each, the ids in it, and a file with its rows.
//!
//! To save one, its row is written first, marked as not ready, then the file,
//! then the mark is cleared: after a kill in between, the row tells which file
//! to remove. Removals change the file before they are committed: after a kill
//! in between, a file holds less than its row says, never more.

use super::super::{Error, SnapshotFiles, with_edit};
use super::session::{Call, Failure, Outcome, Parameters, rows, see, see_all, touched};
use super::tables::SNAPSHOT;
use super::values::{Moment, PostgresRow, SourceIds, limit, maybe_text, text};
use crate::columns;
use crate::model::{
    AgentName, ContextSnapshot, ContextSnapshotInfo, SnapshotId, StoredMessage, Subject,
};
use crate::snapshots::{held_messages, held_sources};
use clew_context::model::{ChannelId, GuildId, MessageId, UserId};

const PUT: &str = "
INSERT INTO clew.snapshots (ready, snapshot_id, agent_name, owner_id, guild_id, timestamp, description,
    summary, message_count, window_start, window_end, oldest, text_bytes)
VALUES (false, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (snapshot_id) DO UPDATE SET
    agent_name = excluded.agent_name, owner_id = excluded.owner_id,
    guild_id = excluded.guild_id, timestamp = excluded.timestamp,
    description = excluded.description, summary = excluded.summary,
    message_count = excluded.message_count, window_start = excluded.window_start,
    window_end = excluded.window_end, oldest = excluded.oldest,
    text_bytes = excluded.text_bytes";

const PUT_MESSAGES: &str = "
INSERT INTO clew.snapshot_messages (snapshot_id, guild_id, channel_id, message_id)
SELECT $1, held.* FROM unnest($2::bigint[], $3::bigint[], $4::bigint[]) AS held
ON CONFLICT DO NOTHING";

const PUT_SOURCES: &str = "
INSERT INTO clew.snapshot_sources
    (snapshot_id, position, guild_id, channel_id, message_id, author_id)
SELECT $1, source.position, source.guild, source.channel, source.message, source.author
FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
    WITH ORDINALITY AS source (guild, channel, message, author, position)";

const LIST: &str = "
WHERE ready AND owner_id = $1 AND guild_id IS NOT DISTINCT FROM $2 AND ($3::text IS NULL OR agent_name = $3)
ORDER BY timestamp DESC, seq DESC LIMIT $4";

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
    parameters: Parameters<'_>,
) -> Outcome<Vec<ContextSnapshotInfo>> {
    let sql = format!("SELECT {SNAPSHOT} FROM clew.snapshots {which}");
    let found = rows(call, &sql, parameters).await?;
    let found = found.iter().map(|row| PostgresRow::of("snapshots", row));
    found.map(|row| columns::snapshot(&row)).collect()
}

/// Announces snapshots: writes their rows as not ready, and removes old ones
/// with the same ids.
pub(super) async fn announce(call: &Call<'_>, snapshots: &[&ContextSnapshot]) -> Outcome<()> {
    see_all(call).await?;
    for snapshot in snapshots {
        let sql = "WHERE snapshot_id = $1 FOR UPDATE";
        for old in select(call, sql, &[&snapshot.info.id.as_str()]).await? {
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
    let sql = "UPDATE clew.snapshots SET ready = true WHERE snapshot_id = $1";
    match touched(call, sql, &[&id.as_str()]).await? {
        0 => Err(Failure::Refused("it was purged meanwhile")),
        _ => Ok(()),
    }
}

/// Removes announced snapshots: these, or all that a kill left behind.
pub(super) async fn take_back(
    call: &Call<'_>,
    snapshots: Option<&[&ContextSnapshot]>,
) -> Outcome<()> {
    see_all(call).await?;
    let sql = "WHERE NOT ready FOR UPDATE";
    for info in select(call, sql, &[]).await? {
        let is_ours = |ours: &[&ContextSnapshot]| ours.iter().any(|one| one.info.id == info.id);
        if snapshots.is_none_or(is_ours) {
            remove(call, info).await?;
        }
    }
    // A purge may have removed the row already.
    for snapshot in snapshots.unwrap_or_default() {
        let sql = "SELECT FROM clew.snapshots WHERE snapshot_id = $1";
        let id = snapshot.info.id.as_str();
        if rows(call, sql, &[&id]).await?.is_empty() {
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
    let info = &snapshot.info;
    let (id, owner) = (info.id.as_str(), info.owner.get().cast_signed());
    let guild = info.guild.map(|guild| guild.get().cast_signed());
    let count = limit(info.message_count);
    let bytes = snapshot.messages.iter().map(text_bytes).sum::<usize>();
    let parameters: Parameters<'_> = &[
        &id,
        &info.agent.as_str(),
        &owner,
        &guild,
        &Moment(info.timestamp),
        &maybe_text(info.description.as_ref()),
        &text(&info.summary),
        &count,
        &Moment(info.window_start),
        &Moment(info.window_end),
        &snapshot.oldest().map(Moment),
        &limit(bytes),
    ];
    touched(call, PUT, parameters).await?;
    for table in ["snapshot_messages", "snapshot_sources"] {
        let forget = format!("DELETE FROM clew.{table} WHERE snapshot_id = $1");
        touched(call, &forget, &[&id]).await?;
    }
    put_messages(call, id, &snapshot.messages).await?;
    let sources = SourceIds::of(&held_sources(&snapshot.messages));
    touched(call, PUT_SOURCES, &sources.after(&id)).await?;
    Ok(())
}

async fn put_messages(call: &Call<'_>, id: &str, messages: &[StoredMessage]) -> Outcome<()> {
    let held = held_messages(messages);
    let channels: Vec<i64> = held.iter().map(|(channel, _, _)| *channel).collect();
    let ids: Vec<i64> = held.iter().map(|(_, id, _)| *id).collect();
    let guilds: Vec<Option<i64>> = held.iter().map(|(_, _, guild)| *guild).collect();
    let parameters: Parameters<'_> = &[&id, &guilds, &channels, &ids];
    touched(call, PUT_MESSAGES, parameters).await?;
    Ok(())
}

fn text_bytes(row: &StoredMessage) -> usize {
    row.content.len() + row.tool_calls.as_ref().map_or(0, String::len)
}

/// Removes a snapshot's row, then its file.
pub(super) async fn remove(call: &Call<'_>, info: ContextSnapshotInfo) -> Outcome<()> {
    let sql = "DELETE FROM clew.snapshots WHERE snapshot_id = $1";
    touched(call, sql, &[&info.id.as_str()]).await?;
    at_files(call.files, move |files| files.remove(&info)).await?;
    Ok(())
}

/// See [`super::super::Backend::snapshots`].
pub(super) async fn snapshots(
    call: &Call<'_>,
    owner: UserId,
    guild: Option<GuildId>,
    agent: Option<&AgentName>,
    most: usize,
) -> Outcome<Vec<ContextSnapshotInfo>> {
    see(call, Subject::User(owner)).await?;
    let owner = owner.get().cast_signed();
    let guild = guild.map(|guild| guild.get().cast_signed());
    let agent = agent.map(AgentName::as_str);
    let parameters: Parameters<'_> = &[&owner, &guild, &agent, &limit(most)];
    select(call, LIST, parameters).await
}

/// See [`super::super::Backend::snapshot`].
pub(super) async fn snapshot(
    call: &Call<'_>,
    owner: UserId,
    id: &SnapshotId,
) -> Outcome<Option<ContextSnapshot>> {
    see(call, Subject::User(owner)).await?;
    // Locks the row, so that the file is not removed before it is read.
    let sql = "WHERE snapshot_id = $1 AND owner_id = $2 AND ready FOR SHARE";
    let parameters: Parameters<'_> = &[&id.as_str(), &owner.get().cast_signed()];
    match select(call, sql, parameters).await?.pop() {
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

/// The same for a list of everything, without its rows if the file is missing.
pub(super) async fn what_is_left(
    call: &Call<'_>,
    info: ContextSnapshotInfo,
) -> Outcome<ContextSnapshot> {
    at_files(call.files, move |files| files.read_what_is_left(&info)).await
}

/// Gives an edited message its new text in all snapshots.
pub(super) async fn edit(
    call: &Call<'_>,
    channel: ChannelId,
    message: MessageId,
    new_text: &str,
) -> Outcome<()> {
    let sql = "WHERE snapshot_id IN (SELECT snapshot_id \
               FROM clew.snapshot_messages WHERE channel_id = $1 AND message_id = $2) FOR UPDATE";
    let ids: Parameters<'_> = &[&channel.get().cast_signed(), &message.get().cast_signed()];
    for info in select(call, sql, ids).await? {
        let snapshot = read(call, info).await??;
        if let Some(edited) = with_edit(&snapshot, channel, message, new_text) {
            rewrite(call, &edited).await?;
        }
    }
    Ok(())
}
