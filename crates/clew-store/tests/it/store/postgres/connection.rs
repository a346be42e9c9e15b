//! Opening, migrating, and a server that goes away and comes back.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;
use std::time::Duration;

use clew_context::model::{Secret, UserId, fixed_clock};
use clew_store::model::StoreAddress;
use clew_store::{Backend, Error, Folders, Postgres, Purge, SnapshotFiles, Store};
use tokio::runtime::Runtime;
use tokio::time::sleep;

use super::{Fresh, direct, open, server, turn};

/// The pause between two looks at the server.
const LOOK: Duration = Duration::from_millis(20);

/// An error with all its causes, as the log prints it.
fn chain(error: &Error) -> String {
    let mut said = format!("{error:?} {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        said.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    said
}

#[track_caller]
fn check_unavailable<T: std::fmt::Debug>(result: Result<T, Error>) {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
}

#[tokio::test]
async fn of_two_simultaneous_starts_one_is_refused() {
    let database = server::Postgres::shared().fresh_database().await;
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = tokio::join!(open(&database.url, &folder), open(&database.url, &folder));
    let (store, error) = match (one, other) {
        (Ok(store), Err(error)) | (Err(error), Ok(store)) => (store, error),
        (one, other) => panic!("{:?} {:?}", one.err(), other.err()),
    };
    assert!(matches!(error, Error::Held { .. }), "{error:?}");
    assert!(error.to_string().contains("server process"), "{error}");
    let appended = store.append(&turn(direct(1), 1, "one")).await;
    assert_eq!(appended.unwrap(), 1);
    let found = server::query(&database.admin_url, "SELECT version FROM clew.clew_schema").await;
    assert_eq!(found, [[Some("8".to_owned())]]);
}

/// The connections of the process that holds the database.
const HOLDERS: &str = "SELECT pid FROM pg_locks
     WHERE locktype = 'advisory' AND classid = 1668048247 AND objsubid = 2
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Like a broken network: until the next call nobody holds the database.
async fn broken(fresh: &Fresh) {
    let cut = HOLDERS.replace("SELECT pid", "SELECT pg_terminate_backend(pid)");
    assert!(!fresh.admin(&cut).await.is_empty());
    while !fresh.admin(HOLDERS).await.is_empty() {
        tokio::task::yield_now().await;
    }
}

/// Nor does it migrate what it reads.
#[tokio::test]
async fn reading_after_a_break_does_not_take_the_database() {
    let fresh = Fresh::new().await;
    let scope = direct(1);
    let look = async || {
        let files = SnapshotFiles::new(fresh.folder.path().to_owned());
        Postgres::look(&Secret::new(&*fresh.database.url), files).await
    };
    broken(&fresh).await;
    let looking = look().await.unwrap();
    assert_eq!(looking.opt_outs().await.unwrap(), []);
    // The first call may find its connection broken.
    let _ = fresh.store.window(&super::all_of(scope)).await;
    fresh.store.append(&turn(scope, 1, "one")).await.unwrap();
    assert_eq!(
        looking.window(&super::all_of(scope)).await.unwrap().len(),
        2
    );
    looking.close().await.unwrap();
    fresh.store.close().await.unwrap();
    fresh.admin("UPDATE clew.clew_schema SET version = 7").await;
    let error = look().await.map(drop).unwrap_err().to_string();
    assert!(error.contains("clew store migrate"), "{error}");
    fresh.admin("DROP SCHEMA clew CASCADE").await;
    let error = look().await.map(drop).unwrap_err().to_string();
    assert!(error.contains("it is not there"), "{error}");
    let made = "SELECT to_regnamespace('clew')::text";
    assert_eq!(fresh.admin(made).await, [[None]]);
}

/// Its server process would notice only at the end of the statement.
#[tokio::test]
async fn a_process_that_ends_within_a_statement_lets_go_of_the_database() {
    let fresh = Fresh::new().await;
    fresh
        .store
        .append(&turn(direct(1), 1, "one"))
        .await
        .unwrap();
    fresh.store.close().await.unwrap();
    let slow = "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$; \
         CREATE TRIGGER slow BEFORE DELETE ON clew.messages FOR EACH STATEMENT \
         EXECUTE FUNCTION public.slow()";
    fresh.admin(slow).await;
    let (url, folder) = (fresh.database.url.clone(), fresh.folder.path().to_owned());
    // The process: with it its connections end.
    let process = Runtime::new().unwrap();
    process.spawn(async move {
        let files = SnapshotFiles::new(folder);
        let store = Postgres::open(&Secret::new(url), files).await.unwrap();
        store.purge(&Purge::User(UserId::new(1))).await
    });
    let sleeps = "SELECT 1 FROM pg_stat_activity \
         WHERE wait_event = 'PgSleep' AND datname = current_database()";
    while fresh.admin(sleeps).await.is_empty() {
        sleep(LOOK).await;
    }
    process.shutdown_background();
    let folders = Folders {
        agents: fresh.folder.path().to_owned(),
        users: fresh.folder.path().join("users"),
        servers: fresh.folder.path().join("servers"),
    };
    let address = StoreAddress::Postgres(Secret::new(&*fresh.database.url));
    let next = Store::open_patiently(&address, &folders, fixed_clock(super::NOW)).await;
    assert_eq!(next.unwrap().opt_outs().await.unwrap(), []);
}

#[tokio::test]
async fn after_a_break_a_process_gets_the_database_back_unless_another_has_it() {
    let fresh = Fresh::new().await;
    let reopen = || open(&fresh.database.url, &fresh.folder);
    let scope = direct(1);
    broken(&fresh).await;
    // The first call may find its connection broken.
    let _ = fresh.store.window(&super::all_of(scope)).await;
    fresh.store.append(&turn(scope, 1, "one")).await.unwrap();
    let error = reopen().await.err().unwrap();
    assert!(matches!(error, Error::Held { .. }), "{error:?}");
    let cut = HOLDERS.replace("SELECT pid", "SELECT pg_terminate_backend(pid)");
    fresh.admin(&cut).await;
    let other = reopen().await.unwrap();
    let _ = fresh.store.window(&super::all_of(scope)).await;
    let second = fresh.store.append(&turn(scope, 2, "two")).await;
    let error = second.unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error:?}");
    other.append(&turn(scope, 3, "three")).await.unwrap();
    other.close().await.unwrap();
    let left = fresh.admin(HOLDERS).await;
    assert_eq!(left, [[None; 0]; 0], "closing releases the lock at once");
    fresh.store.append(&turn(scope, 4, "four")).await.unwrap();
    assert_eq!(fresh.texts(scope).await.len(), 6);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_unchanged() {
    let fresh = Fresh::new().await;
    fresh
        .admin("UPDATE clew.clew_schema SET version = 99, serves = 99")
        .await;
    fresh.store.close().await.unwrap();
    let error = open(&fresh.database.url, &fresh.folder)
        .await
        .err()
        .unwrap();
    let Error::Newer { found, known, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!((found, known), (99, Postgres::NEWEST_VERSION));
    let found = fresh.admin("SELECT version FROM clew.clew_schema").await;
    assert_eq!(found, [[Some("99".to_owned())]]);
}

/// While machines are updated one after the other, the older programs go on.
#[tokio::test]
async fn a_newer_schema_is_used_if_it_serves_this_program() {
    let fresh = Fresh::new().await;
    fresh.store.close().await.unwrap();
    let newer = Postgres::NEWEST_VERSION + 1;
    for (serves, is_used) in [(newer - 1, true), (newer, false)] {
        let sql = format!("UPDATE clew.clew_schema SET version = {newer}, serves = {serves}");
        fresh.admin(&sql).await;
        let opened = open(&fresh.database.url, &fresh.folder).await;
        match opened {
            Ok(store) if is_used => {
                let appended = store.append(&turn(direct(1), 1, "one")).await;
                assert_eq!(appended.unwrap(), 1);
                store.close().await.unwrap();
            }
            Err(Error::Newer { found, .. }) if !is_used => assert_eq!(found, newer),
            opened => panic!("{serves}: {:?}", opened.err()),
        }
        let found = fresh.admin("SELECT version FROM clew.clew_schema").await;
        assert_eq!(found, [[Some(newer.to_string())]]);
    }
}

#[tokio::test]
async fn a_role_without_the_right_uses_a_schema_made_for_it() {
    let database = server::Postgres::shared().fresh_database().await;
    let (name, admin) = (&database.name, &database.admin_url);
    let owner = format!("ALTER DATABASE {name} OWNER TO admin");
    server::query(admin, &owner).await;
    server::query(
        admin,
        &format!("GRANT CONNECT ON DATABASE {name} TO {name}"),
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    let error = open(&database.url, &folder).await.err().unwrap();
    assert!(error.to_string().contains("a schema `clew`"), "{error}");

    server::query(admin, &format!("CREATE SCHEMA clew AUTHORIZATION {name}")).await;
    open(&database.url, &folder).await.unwrap();
}

#[tokio::test]
async fn an_error_on_opening_names_the_server_but_not_the_password() {
    let database = server::Postgres::shared().fresh_database().await;
    let (start, _) = database.url.split_once('@').unwrap();
    let (_, password) = start.rsplit_once(':').unwrap();
    let folder = tempfile::tempdir().unwrap();
    let other_password = database.url.replace(password, "hunter2");
    let other_database = database
        .url
        .replace(&format!("/{}", database.name), "/nowhere");
    let with_tls = format!("{}?sslmode=require", database.url);
    let verified = format!("{}?sslmode=verify-full", database.url);
    for (url, expected) in [
        (other_password, "check user and password"),
        (other_database, "/nowhere: "),
        (with_tls, "TLS"),
        (verified, "disable, prefer or require"),
    ] {
        let error = open(&url, &folder).await.err().unwrap();
        let said = chain(&error);
        assert!(matches!(error, Error::Open { .. }), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
        assert!(!said.contains(password), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut postgres = server::Postgres::own();
    let database = postgres.fresh_database().await;
    let folder = tempfile::tempdir().unwrap();
    let store = open(&database.url, &folder).await.unwrap();
    let scope = direct(1);
    store.append(&turn(scope, 1, "before")).await.unwrap();
    postgres.stop();
    check_unavailable(store.append(&turn(scope, 2, "while")).await);
    check_unavailable(store.window(&super::all_of(scope)).await);
    postgres.start();
    assert_eq!(store.append(&turn(scope, 3, "after")).await.unwrap(), 2);
    let rows = store.window(&super::all_of(scope)).await.unwrap();
    let texts: Vec<_> = rows.iter().map(|row| row.content.as_str()).collect();
    assert_eq!(texts, ["before", "re: before", "after", "re: after"]);
}

#[tokio::test]
async fn a_closed_store_is_not_available() {
    let fresh = Fresh::new().await;
    fresh.store.close().await.unwrap();
    check_unavailable(fresh.store.opt_outs().await);
}

#[tokio::test]
async fn simultaneous_turns_get_an_ordinal_each() {
    let fresh = Fresh::new().await;
    let appended = (1..=40).map(|at| {
        let store = &fresh.store;
        async move { store.append(&turn(direct(1), at, "text")).await.unwrap() }
    });
    let mut ordinals = futures_util::future::join_all(appended).await;
    ordinals.sort_unstable();
    assert_eq!(ordinals, (1..=40).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_locked_table_and_a_dropped_call_delay_nobody_for_long() {
    let fresh = Fresh::new().await;
    let scope = direct(1);
    let connected = tokio_postgres::connect(&fresh.database.url, tokio_postgres::NoTls).await;
    let (client, connection) = connected.unwrap();
    tokio::spawn(connection);
    let lock = "BEGIN; LOCK TABLE clew.conversations IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(lock).await.unwrap();
    check_unavailable(fresh.store.append(&turn(scope, 1, "locked")).await);
    for at in 0..8 {
        // Polled until it waits for the lock, then dropped.
        let dropped = turn(scope, at, "dropped");
        let append = fresh.store.append(&dropped);
        let look = fresh.store.opt_outs();
        let first = futures_util::future::select(Box::pin(append), Box::pin(look)).await;
        drop(first);
    }
    client.batch_execute("ROLLBACK").await.unwrap();
    let appended = fresh.store.append(&turn(scope, 9, "free")).await;
    assert_eq!(appended.unwrap(), 1);
    assert_eq!(fresh.texts(scope).await, ["free", "re: free"]);
}

/// Makes a server encrypt, with an untrusted certificate.
async fn encrypt(postgres: &server::Postgres) {
    let data = postgres.folder().join("data");
    let (certificate, key) = (data.join("server.crt"), data.join("server.key"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args(["-nodes", "-days", "2", "-subj", "/CN=clew test"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let server = fs::metadata(&data).unwrap();
    for file in [&certificate, &key] {
        chown(file, Some(server.uid()), Some(server.gid())).unwrap();
    }
    let admin = postgres.admin_url("postgres");
    server::query(&admin, "ALTER SYSTEM SET ssl = on").await;
    server::query(&admin, "SELECT pg_reload_conf()").await;
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused_where_it_is_checked() {
    let postgres = server::Postgres::own();
    let database = postgres.fresh_database().await;
    encrypt(&postgres).await;
    let folder = tempfile::tempdir().unwrap();
    let mode = |mode: &str| format!("{}?sslmode={mode}", database.url);
    let error = open(&mode("require"), &folder).await.err().unwrap();
    let said = chain(&error);
    assert!(said.contains("trusts its certificate"), "{said}");
    assert!(said.contains("invalid peer certificate"), "{said}");
    let encrypted = "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE ssl AND datname = current_database()";
    for (url, is_encrypted) in [
        (database.url.clone(), true),
        (mode("prefer"), true),
        (mode("disable"), false),
    ] {
        let store = open(&url, &folder).await.unwrap();
        let found = server::query(&database.admin_url, encrypted).await;
        let count = found[0][0].clone().unwrap();
        assert_eq!(count != "0", is_encrypted, "{url}");
        store.close().await.unwrap();
    }
}

/// Temporary failures are distinguished from those a person has to fix.
#[tokio::test]
async fn a_server_that_is_not_ready_is_a_temporary_failure() {
    let mut postgres = server::Postgres::own();
    let database = postgres.fresh_database().await;
    let folder = tempfile::tempdir().unwrap();
    postgres.stop();
    for url in [
        database.url.as_str(),
        "postgres://ada:hunter2@127.0.0.1:1/x",
        "postgres://ada:hunter2@nowhere.invalid/x",
        "postgres://ada:hunter2@%2Fnowhere%2Fat%2Fall/x",
    ] {
        let error = open(url, &folder).await.err().unwrap();
        let said = chain(&error);
        assert!(matches!(error, Error::NotReady { .. }), "{said}");
        assert!(error.is_passing() && !said.contains("hunter2"), "{said}");
    }
    postgres.start();
    open(&database.url, &folder).await.unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_text_is_refused_with_the_remedy() {
    let postgres = server::Postgres::shared();
    let database = postgres.fresh_database().await;
    let name = &database.name;
    let make = format!(
        "CREATE DATABASE latin_{name} OWNER {name} ENCODING 'LATIN1' LOCALE 'C' \
         TEMPLATE template0"
    );
    server::query(&postgres.admin_url("postgres"), &make).await;
    let (server_url, _) = database.url.rsplit_once('/').unwrap();
    let url = format!("{server_url}/latin_{name}");
    let folder = tempfile::tempdir().unwrap();
    let error = open(&url, &folder).await.err().unwrap();
    let said = chain(&error);
    assert!(matches!(error, Error::Open { .. }), "{said}");
    assert!(
        said.contains("LATIN1") && said.contains("ENCODING 'UTF8'"),
        "{said}"
    );
    let schemas = "SELECT 1 FROM pg_namespace WHERE nspname = 'clew'";
    let admin = postgres.admin_url(&format!("latin_{name}"));
    assert!(
        server::query(&admin, schemas).await.is_empty(),
        "nothing is made there"
    );
}

/// The server allows only one connection, and sixteen calls wait for it.
#[tokio::test]
async fn at_the_connection_limit_calls_wait_for_an_open_connection() {
    let fresh = Fresh::new().await;
    let limit = format!("ALTER ROLE {} CONNECTION LIMIT 1", fresh.database.name);
    fresh.admin(&limit).await;
    let (store, folder) = (&fresh.store, &fresh.folder);
    let appended = (1..=16)
        .map(|at| async move { store.append(&turn(direct(at), at, "text")).await.unwrap() });
    let ordinals = futures_util::future::join_all(appended).await;
    assert_eq!(ordinals, [1; 16]);
    // Nobody else can connect meanwhile, which counts as temporary.
    let error = open(&fresh.database.url, folder).await.err().unwrap();
    assert!(error.is_passing(), "{error:?}");
}

/// Others use up all connections, then return one.
#[tokio::test]
async fn without_any_connection_a_call_waits_until_there_is_one() {
    let fresh = Fresh::new().await;
    let admin = &fresh.database.admin_url;
    let role = &fresh.database.name;
    server::query(admin, &format!("ALTER ROLE {role} CONNECTION LIMIT 0")).await;
    let cut =
        format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'");
    server::query(admin, &cut).await;
    let rows = turn(direct(1), 1, "text");
    // The first call finds its connection broken.
    let _ = fresh.store.append(&rows).await;
    let free = async {
        // Until it was asked for in vain at least once.
        sleep(Duration::from_millis(600)).await;
        server::query(admin, &format!("ALTER ROLE {role} CONNECTION LIMIT 1")).await;
    };
    let (appended, ()) = tokio::join!(fresh.store.append(&rows), free);
    assert_eq!(appended.unwrap(), 1);
}
