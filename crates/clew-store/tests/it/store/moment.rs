//! What reads everything for a backup sees one moment, whatever is written meanwhile.

use clew_context::model::UnixMillis;
use clew_store::{Backend, Record};

use super::contract::{everything, sorted};
use super::fixture::{Fixture, Sqlite};
use super::world::world;

/// Adds and removes what the reading comes to last.
const CHANGES: [&str; 2] = [
    "INSERT INTO departures (guild_id, at) VALUES (999, '2026-01-02T10:00:00.000Z')",
    "DELETE FROM opt_outs",
];

/// Reads all, and has `change` called once at the first entry.
async fn read_while<F: Fixture>(store: &F::Store, change: impl FnOnce() + Send) -> Vec<Record> {
    let mut change = Some(change);
    let mut read = Vec::new();
    let visit = &mut |record| {
        if let Some(change) = change.take() {
            change();
        }
        read.push(record);
        Ok(())
    };
    store.each_record(visit).await.unwrap();
    sorted(read)
}

async fn check_changed(store: &impl Backend, before: &[Record]) {
    let now = everything(store).await;
    assert_ne!(now, before);
    assert_eq!(store.opt_outs().await.unwrap(), []);
    let is_new = |(guild, at): &(clew_context::model::GuildId, UnixMillis)| {
        guild.get() == 999 && *at == UnixMillis(1_767_348_000_000)
    };
    assert!(store.departures().await.unwrap().iter().any(is_new));
}

#[tokio::test]
async fn what_is_written_to_sqlite_meanwhile_is_not_read() {
    let place = Sqlite::fresh().await;
    let store = place.open().await;
    let world = sorted(world::<Sqlite>(""));
    store.write(&world).await.unwrap();
    let path = place.ground().folder().join("clew.db");
    let change = move || {
        let beside = rusqlite::Connection::open(path).unwrap();
        beside.execute_batch(&CHANGES.join(";")).unwrap();
    };
    let read = read_while::<Sqlite>(&store, change).await;
    assert_eq!(read, world);
    check_changed(&store, &world).await;
    // Appends are confirmed while the copy is read.
    assert_eq!(
        read_while::<Sqlite>(&store, || {}).await,
        everything(&store).await
    );
}

#[tokio::test]
async fn a_damaged_database_is_not_copied() {
    let place = Sqlite::fresh().await;
    let store = place.open().await;
    store.write(&world::<Sqlite>("")).await.unwrap();
    store.close().await.unwrap();
    let path = place.ground().folder().join("clew.db");
    let beside = rusqlite::Connection::open(&path).unwrap();
    let page: u32 = beside
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'message_texts'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    drop(beside);
    let mut bytes = std::fs::read(&path).unwrap();
    let start = usize::try_from((page - 1) * 4096).unwrap();
    bytes[start..start + 64].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let store = place.open().await;
    let read = store.each_record(&mut |_| Ok(())).await;
    let error = read.unwrap_err();
    assert!(
        matches!(error, clew_store::Error::Damaged { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("restore a backup"), "{error}");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn what_is_written_to_postgresql_meanwhile_is_not_read() {
    use super::fixture::Postgres;
    use crate::support::postgres::query_each;
    let place = Postgres::fresh().await;
    let store = place.open().await;
    let world = sorted(world::<Postgres>(""));
    store.write(&world).await.unwrap();
    let url = place.database.admin_url.clone();
    let change = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let changes = CHANGES.map(|sql| {
            sql.replace("INTO ", "INTO clew.")
                .replace("FROM ", "FROM clew.")
        });
        let changes = changes.each_ref().map(String::as_str);
        let changed = async { query_each(&url, &changes).await };
        // The connection of the store belongs to this thread's runtime.
        std::thread::scope(|scope| {
            scope.spawn(|| runtime.unwrap().block_on(changed));
        });
    };
    let read = read_while::<Postgres>(&store, change).await;
    assert_eq!(read, world);
    check_changed(&store, &world).await;
}
