//! Purges, and snapshots, in both databases.
//!
//! To save a snapshot, its row is written first, marked as not ready, then the file, then the
//! mark is cleared: after a kill in between, the row tells which file to remove. Changes reach the
//! file before they are committed: after a kill in between, a file holds less than its row says,
//! never more, and the change is made again from the file.

use super::{Database, Outcome, See};
use crate::columns::{self, Cell};
use crate::model::{ContextSnapshot, ContextSnapshotInfo, SnapshotId, Subject};
use crate::snapshots::{SnapshotRest, unless_unreadable, with_edit};
use crate::{Error, Kind, Purge, Purged, RecordKey};
use clew_context::model::{ChannelId, MessageId, UserId};

/// Purges all kinds. Rewritten snapshots count as removed.
pub(crate) async fn purge<D: Database>(db: &D, purge: &Purge) -> Outcome<Purged, D> {
    let values = purge.cells();
    let mut purged = Purged::default();
    purged.add(Kind::Snapshots, purge_snapshots(db, purge).await?);
    for kind in Kind::ALL {
        let table = D::table(kind).filter(|_| kind != Kind::Snapshots);
        let Some(table) = table else { continue };
        for which in table.purged(kind, purge) {
            purged.add(kind, db.remove_where(&table, &which, &values).await?);
        }
    }
    if let Some(which) = D::COUNTERS.reached(purge) {
        db.run(&D::COUNTERS.delete(&which), &values).await?;
    }
    Ok(purged)
}

/// Returns how many snapshots were removed or rewritten.
async fn purge_snapshots<D: Database>(db: &D, purge: &Purge) -> Outcome<u64, D> {
    let which = D::table(Kind::Snapshots).and_then(|table| table.concerned(purge));
    let Some(which) = which else { return Ok(0) };
    let which = format!("({which}){}", D::FOR_UPDATE);
    let mut gone = 0;
    for info in select(db, See::Lists, &which, &purge.cells()).await? {
        let rest = if purge.takes_whole(&info) {
            SnapshotRest::Gone
        } else {
            SnapshotRest::after(purge, &info, read(db, info.clone()).await?)?
        };
        match rest {
            SnapshotRest::Same => continue,
            SnapshotRest::Less(rest) => rewrite(db, rest).await?,
            SnapshotRest::Gone => remove_snapshot(db, info).await?,
        }
        gone += 1;
    }
    Ok(gone)
}

/// See [`Backend::remove`](crate::Backend::remove).
pub(crate) async fn remove<D: Database>(db: &D, keys: &[RecordKey]) -> Outcome<u64, D> {
    if keys.iter().any(|key| matches!(key, RecordKey::Fact(_))) {
        db.see(See::All).await?;
    }
    let mut gone = 0;
    for key in keys {
        // Both kinds of facts are in one table.
        let table = key.kinds().first().and_then(|kind| D::table(*kind));
        let Some(table) = table else { continue };
        gone += db
            .remove_where(&table, &table.of_key(), &key.cells())
            .await?;
    }
    Ok(gone)
}

/// What is known of snapshots, ready or not, that fulfil a condition.
async fn select<D: Database>(
    db: &D,
    see: See,
    which: &str,
    values: &[Cell<'_>],
) -> Outcome<Vec<ContextSnapshotInfo>, D> {
    let columns = D::SNAPSHOTS.columns;
    let sql = format!("SELECT {columns} FROM snapshots WHERE {which}");
    let read = |row: &D::Row<'_>| columns::snapshot(row);
    db.all(see, "snapshots", &sql, values, read).await
}

/// A snapshot with its file's rows, or why that cannot be read.
async fn read<D: Database>(
    db: &D,
    info: ContextSnapshotInfo,
) -> Outcome<Result<ContextSnapshot, Error>, D> {
    db.at_files(move |files| Ok(files.read(&info))).await
}

/// Rewrites a snapshot that lost rows or changed: its row, then its file.
async fn rewrite<D: Database>(db: &D, snapshot: ContextSnapshot) -> Outcome<(), D> {
    db.put_snapshot(&snapshot).await?;
    db.at_files(move |files| files.write(&snapshot)).await
}

/// Removes a snapshot's row, then its file.
async fn remove_snapshot<D: Database>(db: &D, info: ContextSnapshotInfo) -> Outcome<(), D> {
    let which = of_id::<D>();
    db.remove_where(&D::SNAPSHOTS, &which, &[Cell::text(info.id.as_str())])
        .await?;
    db.at_files(move |files| files.remove(&info)).await?;
    Ok(())
}

/// The snapshot with the id ?1.
fn of_id<D: Database>() -> String {
    format!("{} = ?1", D::SNAPSHOT_ID)
}

/// Announces snapshots: writes their rows as not ready, and removes old ones with the same ids.
pub(crate) async fn announce<D: Database>(
    db: &D,
    snapshots: &[&ContextSnapshot],
) -> Outcome<(), D> {
    db.see(See::All).await?;
    for snapshot in snapshots {
        let which = format!("{}{}", of_id::<D>(), D::FOR_UPDATE);
        let id = [Cell::text(snapshot.info.id.as_str())];
        for old in select(db, See::Lists, &which, &id).await? {
            remove_snapshot(db, old).await?;
        }
        db.put_snapshot(snapshot).await?;
    }
    Ok(())
}

/// Makes a snapshot visible once its file is written.
pub(crate) async fn ready<D: Database>(db: &D, id: &SnapshotId) -> Outcome<(), D> {
    match db.run(D::READY, &[Cell::text(id.as_str())]).await? {
        0 => Err("it was purged or edited meanwhile".into()),
        _ => Ok(()),
    }
}

/// Removes announced snapshots: these, or all that a kill left behind.
pub(crate) async fn take_back<D: Database>(
    db: &D,
    snapshots: Option<&[&ContextSnapshot]>,
) -> Outcome<(), D> {
    db.see(See::All).await?;
    let which = format!("NOT ready{}", D::FOR_UPDATE);
    for info in select(db, See::Lists, &which, &[]).await? {
        let is_ours = |ours: &[&ContextSnapshot]| ours.iter().any(|one| one.info.id == info.id);
        if snapshots.is_none_or(is_ours) {
            remove_snapshot(db, info).await?;
        }
    }
    // A purge may have removed the row already.
    for snapshot in snapshots.unwrap_or_default() {
        let info = snapshot.info.clone();
        let id = [Cell::text(info.id.as_str())];
        let found = select(db, See::Lists, &of_id::<D>(), &id).await?;
        if found.is_empty() {
            db.at_files(move |files| files.remove(&info)).await?;
        }
    }
    Ok(())
}

/// See [`Backend::snapshot`](crate::Backend::snapshot).
pub(crate) async fn snapshot<D: Database>(
    db: &D,
    owner: UserId,
    id: &SnapshotId,
) -> Outcome<Option<ContextSnapshot>, D> {
    let (of_id, for_share) = (of_id::<D>(), D::FOR_SHARE);
    let which = format!("ready AND {of_id} AND owner_id = ?2{for_share}");
    let values = [Cell::text(id.as_str()), Cell::id(owner.get())];
    let see = See::About(Subject::User(owner));
    let Some(info) = select(db, see, &which, &values).await?.pop() else {
        return Ok(None);
    };
    match read(db, info).await? {
        Ok(snapshot) => Ok(Some(snapshot)),
        // Unless its row is locked, it may be removed after that was found.
        Err(_) if select(db, see, &which, &values).await?.is_empty() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Gives an edited message its new text in all snapshots. An unreadable one goes: it may hold the
/// former words, or is about to, if its file is still being written, which [`ready`] then refuses.
pub(crate) async fn edit_snapshots<D: Database>(
    db: &D,
    channel: ChannelId,
    message: MessageId,
    text: &str,
) -> Outcome<(), D> {
    let ids = vec![message];
    let of_message = Purge::Messages { channel, ids };
    let which = D::table(Kind::Snapshots).and_then(|table| table.reached(&of_message));
    let which = format!("{}{}", which.unwrap_or_default(), D::FOR_UPDATE);
    for info in select(db, See::Lists, &which, &of_message.cells()).await? {
        let Some(snapshot) = unless_unreadable(read(db, info.clone()).await?)? else {
            remove_snapshot(db, info).await?;
            continue;
        };
        let edited = with_edit(&snapshot, channel, message, text);
        let differs = |edited: &ContextSnapshot| *edited != snapshot || edited.info != info;
        if let Some(edited) = edited.filter(differs) {
            rewrite(db, edited).await?;
        }
    }
    Ok(())
}
