//! Opening, migrating, and a server that goes and comes back.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::process::Command;

use clew_store::{Backend, Error};

use super::{Fresh, direct, open, server, turn};

/// An error with all that lies under it, as the log prints it.
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
async fn two_starts_at_once_make_one_schema() {
    let database = server::Postgres::shared().fresh_database().await;
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = tokio::join!(open(&database.url, &folder), open(&database.url, &folder));
    one.unwrap()
        .append(&turn(direct(1), 1, "one"))
        .await
        .unwrap();
    let appended = other.unwrap().append(&turn(direct(1), 2, "two")).await;
    assert_eq!(appended.unwrap(), 2);
    let found = server::query(&database.admin_url, "SELECT version FROM clew.clew_schema").await;
    assert_eq!(found, [[Some("1".to_owned())]]);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let fresh = Fresh::new().await;
    fresh
        .admin("UPDATE clew.clew_schema SET version = 99")
        .await;
    let error = open(&fresh.database.url, &fresh.folder)
        .await
        .err()
        .unwrap();
    let is_newer = matches!(
        error,
        Error::Newer {
            found: 99,
            known: 1,
            ..
        }
    );
    assert!(is_newer, "{error:?}");
    let found = fresh.admin("SELECT version FROM clew.clew_schema").await;
    assert_eq!(found, [[Some("99".to_owned())]]);
}

#[tokio::test]
async fn a_role_without_the_right_finds_a_schema_made_for_it() {
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
async fn an_error_of_opening_says_where_but_not_the_password() {
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
        (
            "postgres://ada:hunter2@127.0.0.1:1/x".to_owned(),
            "127.0.0.1:1/x",
        ),
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
async fn turns_at_once_get_an_ordinal_each() {
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
async fn a_locked_table_and_a_call_that_was_dropped_hold_up_nobody_for_long() {
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

/// Has a server encrypt with a certificate that nobody vouches for.
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
async fn a_certificate_that_nobody_vouches_for_is_refused_where_it_is_looked_at() {
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
