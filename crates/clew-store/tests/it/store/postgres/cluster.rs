//! Several processes with one database: one lease, and nothing of who had it before.

use std::sync::Arc;
use std::time::Duration;

use clew_store::model::StoreAddress;
use clew_store::{Asked, Cluster, Folders, KeptClaim, Purge, Store, Tenure, cluster};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// A database, and processes that share it.
struct Shared {
    database: server::Database,
    folder: TempDir,
}

impl Shared {
    async fn new() -> Self {
        Self {
            database: server::Postgres::shared().fresh_database().await,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn node(&self, name: &str) -> Arc<dyn Cluster> {
        let address = StoreAddress::Postgres(Secret::new(&self.database.url));
        cluster(&address, name, "1.2.3").unwrap()
    }

    async fn store(&self, tenure: &dyn Tenure) -> Result<Store, Error> {
        let path = self.folder.path().to_owned();
        let folders = Folders {
            agents: path.clone(),
            users: path.clone(),
            servers: path,
        };
        tenure.open_store(&folders).await
    }

    async fn admin(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        server::query(&self.database.admin_url, sql).await
    }

    /// Has a process take the lease as if nobody had renewed it for its term.
    async fn taken_by(&self, node: &Arc<dyn Cluster>) -> Arc<dyn Tenure> {
        loop {
            self.admin("UPDATE clew.leases SET until = '-infinity'")
                .await;
            // It may just have been renewed.
            if let Some(tenure) = ours(node.ask().await.unwrap()) {
                return tenure;
            }
        }
    }
}

fn ours(asked: Asked) -> Option<Arc<dyn Tenure>> {
    match asked {
        Asked::Ours(tenure) => Some(tenure),
        Asked::Others(_) => None,
    }
}

async fn lease_of(node: &Arc<dyn Cluster>) -> Arc<dyn Tenure> {
    ours(node.ask().await.unwrap()).expect("the lease is free")
}

fn claim(claim: u64, at: UnixMillis, line: &str) -> KeptClaim {
    let line = line.to_owned();
    KeptClaim { claim, at, line }
}

fn files(shared: &Shared) -> SnapshotFiles {
    SnapshotFiles::new(shared.folder.path().to_owned())
}

#[tokio::test]
async fn one_process_at_a_time_has_the_lease() {
    let shared = Shared::new().await;
    let nodes: Vec<_> = (0..8)
        .map(|number| shared.node(&format!("n{number}")))
        .collect();
    let asked = join_all(nodes.iter().map(|node| node.ask())).await;
    let mut held: Vec<_> = asked
        .into_iter()
        .filter_map(|asked| ours(asked.unwrap()))
        .collect();
    let [first] = held.as_slice() else {
        panic!("{} have it", held.len());
    };
    assert_eq!(first.epoch(), 1);
    let status = nodes[0].status().await.unwrap();
    assert_eq!((status.epoch, status.nodes.len()), (1, 8));
    assert!(status.holder.is_some_and(|name| name.starts_with('n')));
    first.end().await;
    assert!(first.lease().is_over());
    held.clear();
    let second = lease_of(&nodes[3]).await;
    assert_eq!(second.epoch(), 2);
    assert!(ours(nodes[4].ask().await.unwrap()).is_none());
    nodes[4].leave().await;
    let status = nodes[3].status().await.unwrap();
    assert_eq!(status.holder.as_deref(), Some("n3"));
    let names: Vec<_> = status.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["n0", "n1", "n2", "n3", "n5", "n6", "n7"]);
    assert_eq!(status.nodes[0].version, "1.2.3");
}

/// Whoever is drained has the lease only while no other process can.
#[tokio::test]
async fn a_drained_process_leaves_the_lease_to_others() {
    let shared = Shared::new().await;
    let (a, b) = (shared.node("a"), shared.node("b"));
    let tenure = lease_of(&a).await;
    assert!(ours(b.ask().await.unwrap()).is_none());
    let (mut drains, mut shards) = (tenure.drains(), tenure.shards());
    assert_eq!((*drains.borrow(), *shards.borrow()), (false, 0));
    assert!(!b.drain("c").await.unwrap(), "there is none");
    assert!(b.drain("a").await.unwrap());
    b.reshard(3).await.unwrap();
    shards.changed().await.unwrap();
    assert_eq!((*drains.borrow(), *shards.borrow()), (true, 3));
    tenure.tell(3, 2);
    tenure.end().await;
    assert!(ours(a.ask().await.unwrap()).is_none(), "b is there");
    let next = lease_of(&b).await;
    assert_eq!(*next.shards().borrow(), 3, "before its first renewal");
    // With nobody else who can, it is the bot again, until somebody can.
    next.end().await;
    b.leave().await;
    let again = lease_of(&a).await;
    again.tell(3, 2);
    drains = again.drains();
    let c = shared.node("c");
    let told = async {
        loop {
            let status = c.status().await.unwrap();
            let [node] = &*status.nodes else {
                panic!("{status:?}")
            };
            assert!(node.drains && status.shards == 3, "{status:?}");
            if (node.shards, node.connected) == (3, 2) {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, told).await.unwrap();
    assert!(!*drains.borrow());
    assert!(ours(c.ask().await.unwrap()).is_none());
    drains.changed().await.unwrap();
    assert!(*drains.borrow_and_update());
    c.note_unable().await.unwrap();
    let stands_by = async {
        loop {
            assert!(ours(c.ask().await.unwrap()).is_none());
            sleep(Duration::from_millis(500)).await;
        }
    };
    let relieved_no_more = tokio::time::timeout(PATIENCE, drains.wait_for(|drains| !drains));
    tokio::select! {
        () = stands_by => {}
        found = relieved_no_more => drop(found.expect("nobody can be the bot in its place").unwrap()),
    }
}

/// Its database says so, or nobody answers it.
#[tokio::test]
async fn who_lost_the_lease_learns_it() {
    let shared = Shared::new().await;
    let (a, b) = (shared.node("a"), shared.node("b"));
    let old = lease_of(&a).await;
    let new = shared.taken_by(&b).await;
    old.lease().over().await;
    assert!(!new.lease().is_over());
    assert!(ours(a.ask().await.unwrap()).is_none());
}

#[tokio::test]
async fn nothing_of_an_earlier_tenure_is_written() {
    let shared = Shared::new().await;
    let (a, b) = (shared.node("a"), shared.node("b"));
    let old = lease_of(&a).await;
    let store = shared.store(old.as_ref()).await.unwrap();
    let scope = direct(1);
    store
        .append(&[row(scope, 1, StoredRole::User, "before")])
        .await
        .unwrap();
    let new = shared.taken_by(&b).await;
    let refused = async || {
        store
            .append(&[row(scope, 2, StoredRole::User, "after")])
            .await
    };
    // What it had in hand breaks off; what it tries then is refused.
    let mut failed = refused().await.unwrap_err();
    if !matches!(failed, Error::Held { .. }) {
        failed = refused().await.unwrap_err();
    }
    assert!(
        matches!(&failed, Error::Held { holder, .. } if holder == "b"),
        "{failed:?}"
    );
    assert!(old.keep_files(&[("session.json", b"old")]).await.is_err());
    assert!(old.keep_claims(&[claim(1, NOW, "old")]).await.is_err());
    let texts = shared.store(new.as_ref()).await.unwrap();
    let texts = texts.window(&all_of(scope)).await.unwrap();
    let texts: Vec<_> = texts.iter().map(|row| row.content.as_str()).collect();
    assert_eq!(texts, ["before"]);
    assert!(new.files().await.unwrap().is_empty());
    assert!(new.claims(UnixMillis(0)).await.unwrap().is_empty());
}

/// Also while nobody else has it: that an answer could not be posted any more is not for the next one.
#[tokio::test]
async fn nothing_is_kept_once_the_lease_is_over() {
    let shared = Shared::new().await;
    let old = lease_of(&shared.node("a")).await;
    old.keep_claims(&[claim(1, NOW, "asked")]).await.unwrap();
    old.lease().give_up();
    let refused = [
        old.keep_claims(&[claim(1, NOW, "over")]).await,
        old.keep_files(&[("session.json", b"late")]).await,
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Held { .. })), "{refused:?}");
    }
    old.end().await;
    let new = lease_of(&shared.node("b")).await;
    assert_eq!(new.claims(NOW).await.unwrap(), ["asked"]);
    assert!(new.files().await.unwrap().is_empty());
}

/// A transaction that has begun is rolled back before the next tenure begins.
#[tokio::test]
async fn what_was_being_written_is_not() {
    let shared = Shared::new().await;
    let (a, b) = (shared.node("a"), shared.node("b"));
    let old = lease_of(&a).await;
    let store = Arc::new(shared.store(old.as_ref()).await.unwrap());
    let lock = "BEGIN; LOCK TABLE clew.messages IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4)";
    let url = shared.database.admin_url.clone();
    let holding = tokio::spawn(async move { server::query(&url, lock).await });
    let waits = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                 WHERE d.datname = current_database() AND NOT l.granted";
    let writing = {
        let store = Arc::clone(&store);
        let rows = [row(direct(1), 1, StoredRole::User, "late")];
        // The lock may come after it.
        tokio::spawn(async move {
            sleep(Duration::from_millis(500)).await;
            store.append(&rows).await
        })
    };
    let deadline = Instant::now() + PATIENCE;
    while shared.admin(waits).await == [[Some("0".to_owned())]] {
        assert!(Instant::now() < deadline, "it waits for the table");
        sleep(Duration::from_millis(20)).await;
    }
    let new = shared.taken_by(&b).await;
    writing.await.unwrap().unwrap_err();
    holding.await.unwrap();
    let store = shared.store(new.as_ref()).await.unwrap();
    assert!(store.window(&all_of(direct(1))).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_process_of_no_cluster_and_a_cluster_exclude_each_other() {
    let shared = Shared::new().await;
    let alone = open(&shared.database.url, &shared.folder).await.unwrap();
    let node = shared.node("a");
    let refused = node.ask().await.map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Held { .. }), "{refused:?}");
    assert_eq!(node.status().await.unwrap().epoch, 0, "it took nothing");
    alone.close().await.unwrap();
    let tenure = lease_of(&node).await;
    let store = shared.store(tenure.as_ref()).await.unwrap();
    assert!(store.window(&all_of(direct(1))).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_next_tenure_finds_what_was_kept() {
    let shared = Shared::new().await;
    let (a, b) = (shared.node("a"), shared.node("b"));
    let old = lease_of(&a).await;
    let later = UnixMillis(NOW.0 + 1);
    for content in [b"first".as_slice(), b"second", &[0, 255]] {
        let files = [("runs.json", content), ("gone.json", content)];
        old.keep_files(&files).await.unwrap();
    }
    old.forget_files(&["gone.json"]).await.unwrap();
    old.keep_claims(&[claim(u64::MAX, NOW, "x")]).await.unwrap();
    let both = [claim(7, later, "y"), claim(u64::MAX, NOW, "z")];
    old.keep_claims(&both).await.unwrap();
    old.end().await;
    let new = lease_of(&b).await;
    let kept = vec![("runs.json".to_owned(), vec![0, 255])];
    assert_eq!(new.files().await.unwrap(), kept);
    assert_eq!(new.claims(NOW).await.unwrap(), ["z", "y"]);
    assert_eq!(new.claims(later).await.unwrap(), ["y"]);
    new.forget_claims(later).await.unwrap();
    assert_eq!(new.claims(NOW).await.unwrap(), ["y"]);
    new.end().await;
    b.forget_file("runs.json").await.unwrap();
    assert!(lease_of(&a).await.files().await.unwrap().is_empty());
}

/// Saved conversations are rows, too: no file of them stays behind on the machine of a process.
#[tokio::test]
async fn the_next_tenure_restores_what_was_saved() {
    let shared = Shared::new().await;
    let old = lease_of(&shared.node("a")).await;
    let store = shared.store(old.as_ref()).await.unwrap();
    let rows = vec![row(direct(1), 1, StoredRole::User, "saved")];
    let snapshot = content::snapshot(rows);
    let (id, owner) = (snapshot.info.id.clone(), snapshot.info.owner);
    store.save_snapshot(&snapshot).await.unwrap();
    drop(store);
    old.end().await;
    let new = lease_of(&shared.node("b")).await;
    let store = shared.store(new.as_ref()).await.unwrap();
    let found = store.snapshot(owner, &id).await.unwrap().unwrap();
    assert_eq!(found, snapshot);
    assert!(
        std::fs::read_dir(shared.folder.path())
            .unwrap()
            .next()
            .is_none()
    );
    store.purge(&Purge::User(owner)).await.unwrap();
    let left = "SELECT count(*) FROM clew.snapshot_texts";
    assert_eq!(shared.admin(left).await, [[Some("0".to_owned())]]);
}

/// What is edited while it is saved is not saved with its former words.
#[tokio::test]
async fn an_edit_ends_a_saving_under_way() {
    let shared = Shared::new().await;
    let tenure = lease_of(&shared.node("a")).await;
    let store = Arc::new(shared.store(tenure.as_ref()).await.unwrap());
    let rows = turn(direct(1), 1, "before");
    store.append(&rows).await.unwrap();
    let connecting = tokio_postgres::connect(&shared.database.admin_url, tokio_postgres::NoTls);
    let (client, connection) = connecting.await.unwrap();
    tokio::spawn(connection);
    let lock = "BEGIN; LOCK TABLE clew.snapshot_texts IN SHARE MODE";
    client.batch_execute(lock).await.unwrap();
    let waiting = async |count: &str| {
        let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted \
                   AND relation = 'clew.snapshot_texts'::regclass";
        let deadline = Instant::now() + PATIENCE;
        while shared.admin(sql).await != [[Some(count.to_owned())]] {
            assert!(Instant::now() < deadline, "not {count} wait");
            sleep(Duration::from_millis(5)).await;
        }
    };
    let (saves, edits) = (Arc::clone(&store), Arc::clone(&store));
    let saving = tokio::spawn(async move { saves.save_snapshot(&content::snapshot(rows)).await });
    waiting("1").await;
    let (channel, message) = (ChannelId::new(7), MessageId::new(10));
    let editing = tokio::spawn(async move { edits.edit_message(channel, message, "after").await });
    waiting("2").await;
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(editing.await.unwrap().unwrap(), 1);
    let refused = saving.await.unwrap().unwrap_err();
    let why = format!("{refused:?}");
    assert!(why.contains("edited meanwhile"), "{why}");
    let left = "SELECT snapshot_id FROM clew.snapshots UNION SELECT name FROM clew.snapshot_texts";
    assert!(shared.admin(left).await.is_empty());
}

/// Those of a process that had the database alone become rows, those that were erased elsewhere go;
/// commands read and erase rows, too.
#[tokio::test]
async fn files_become_rows() {
    let shared = Shared::new().await;
    let alone = open(&shared.database.url, &shared.folder).await.unwrap();
    let snapshot = content::snapshot(vec![row(direct(1), 1, StoredRole::User, "saved")]);
    let (id, owner) = (snapshot.info.id.clone(), snapshot.info.owner);
    alone.save_snapshot(&snapshot).await.unwrap();
    alone.close().await.unwrap();
    let file = files(&shared).path(&snapshot.info);
    let copy = std::fs::read(&file).unwrap();
    let tenure = lease_of(&shared.node("a")).await;
    let store = shared.store(tenure.as_ref()).await.unwrap();
    assert!(!file.exists());
    assert_eq!(store.snapshot(owner, &id).await.unwrap(), Some(snapshot));
    store.close().await.unwrap();
    tenure.end().await;
    // A command beside no process.
    let alone = open(&shared.database.url, &shared.folder).await.unwrap();
    let found = alone.snapshot(owner, &id).await.unwrap().unwrap();
    assert_eq!(found.messages.len(), 1);
    alone.purge(&Purge::User(owner)).await.unwrap();
    alone.close().await.unwrap();
    let left = "SELECT count(*) FROM clew.snapshot_texts";
    assert_eq!(shared.admin(left).await, [[Some("0".to_owned())]]);
    // Another machine still has its file.
    std::fs::write(&file, copy).unwrap();
    let tenure = lease_of(&shared.node("b")).await;
    drop(shared.store(tenure.as_ref()).await.unwrap());
    assert!(!file.exists());
    assert_eq!(shared.admin(left).await, [[Some("0".to_owned())]]);
}

/// While its server starts a cluster holds no lock, but its lease.
#[tokio::test]
async fn a_lease_that_runs_keeps_others_out() {
    let shared = Shared::new().await;
    let tenure = lease_of(&shared.node("a")).await;
    let ends = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' \
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    shared.admin(ends).await;
    let refused = open(&shared.database.url, &shared.folder).await.map(drop);
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, Error::Held { holder, .. } if holder == "a"),
        "{refused:?}"
    );
    drop(tenure);
}

/// A server that takes no writes may be promoted: nobody gives up.
#[tokio::test]
async fn a_standby_is_waited_for() {
    let mut primary = server::Postgres::own();
    // The standby has it from its beginning.
    let database = primary.fresh_database().await;
    let mut standby = primary.standby().await;
    let only = |port: u16| {
        let (start, name) = database.url.rsplit_once('/').unwrap();
        let (login, _) = start.rsplit_once(':').unwrap();
        StoreAddress::Postgres(Secret::new(format!("{login}:{port}/{name}")))
    };
    let on_primary = cluster(&only(primary.port()), "a", "1").unwrap();
    let on_standby = cluster(&only(standby.port()), "b", "1").unwrap();
    let both = Secret::new(database.url_of_both(&primary, &standby));
    let on_both = cluster(&StoreAddress::Postgres(both), "c", "1").unwrap();
    let old = lease_of(&on_primary).await;
    old.end().await;
    let refused = on_standby.ask().await.map(drop).unwrap_err();
    assert!(refused.is_passing(), "{refused:?}");
    primary.kill();
    standby.promote();
    let new = lease_of(&on_standby).await;
    assert_eq!(new.epoch(), old.epoch() + 1);
    assert!(ours(on_both.ask().await.unwrap()).is_none());
}

#[test]
fn only_postgresql_is_shared() {
    for address in ["sqlite:x.db", "files:x"] {
        let address: StoreAddress = address.parse().unwrap();
        let refused = cluster(&address, "a", "1").map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains("CLUSTER=off"), "{refused}");
    }
}
