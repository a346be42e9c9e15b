//! The PostgreSQL role of docs/operating.md: enough for the bot, and no more.

use std::fs;
use std::path::Path;
use std::process::Command;

use clew_context::model::{TurnId, UnixMillis};
use clew_store::model::{AgentName, StoredMessage, StoredRole};
use clew_store::{Record, WindowQuery};

use super::world::{ADA, GRACE, Home, everything, lines_of, member, row};
use crate::support::postgres::{Postgres, programs, query};

/// What an operator runs, and what compose.yaml runs.
const ROLE: &str = "packaging/postgresql/10-clew.sql";

/// What compose.yaml runs then.
const PASSWORD: &str = "packaging/postgresql/20-password.sql";

/// What the role may not do, in its own database.
const REFUSED: [&str; 6] = [
    "CREATE TABLE public.more (id INT)",
    "CREATE SCHEMA more",
    "CREATE TEMPORARY TABLE more (id INT)",
    "CREATE DATABASE more",
    "CREATE ROLE more",
    "COPY clew.agents TO PROGRAM 'cat'",
];

#[tokio::test]
async fn the_documented_role_is_enough_and_no_more() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sql = fs::read_to_string(root.join(ROLE)).unwrap();
    let document = fs::read_to_string(root.join("docs/operating.md")).unwrap();
    assert!(
        document.contains(&format!("```sql\n{sql}```")),
        "as the file has it"
    );
    let server = Postgres::shared();
    psql(&root.join(ROLE), &server.admin_url("postgres"));
    let admin_url = server.admin_url("clew");
    psql(&root.join(PASSWORD), &admin_url);
    let (_, place) = admin_url.split_once('@').unwrap();
    let url = format!("postgres://clew:hush@{place}");

    let home = Home::new(&url);
    let run = |arguments: &[&str], expected: i32| {
        let (code, out, errors) = home.run(arguments);
        // Neither an error nor the warning that the role may do too much.
        assert_eq!(
            (code, errors.as_str()),
            (expected, ""),
            "{arguments:?}: {out}"
        );
    };
    run(&["migrate"], 0);
    home.fill(&everything()).await;
    works(&home).await;
    assert!(home.lines().await.len() > lines_of(&everything()).len());
    run(&["stats"], 0);
    run(&["backup", "all"], 0);
    run(&["import", "all"], 0);
    run(&["erase", "--user", "7"], 3);
    run(&["erase", "--user", "7", "--yes"], 0);
    run(&["vacuum"], 0);

    for sql in REFUSED {
        let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        let error = client.batch_execute(sql).await.unwrap_err();
        let code = tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE;
        assert_eq!(error.code(), Some(&code), "{sql}: {error:?}");
    }
    // Row-level security holds for it.
    let seen = query(&url, "SELECT count(*) FROM clew.messages").await;
    assert_eq!(seen, [[Some("0".to_owned())]]);
    let all = query(&admin_url, "SELECT count(*) > 0 FROM clew.messages").await;
    assert_eq!(all, [[Some("t".to_owned())]]);
}

/// What a turn does, and what upkeep does.
async fn works(home: &Home) {
    let store = home.open_own().await;
    let asked = row(member(GRACE), GRACE, 9_000, StoredRole::User);
    let turn = StoredMessage {
        turn: TurnId(9_000),
        ..asked
    };
    store.append(&[turn]).await.unwrap();
    let query = WindowQuery {
        scope: member(GRACE),
        agent: AgentName::default_agent(),
        since: UnixMillis(0),
        cleared: None,
        with_tools: false,
        limit: 10,
    };
    assert!(!store.window(&query).await.unwrap().is_empty());
    store.set_opt_out(ADA, None).await.unwrap();
    store
        .write(&[Record::OptOut(ADA, UnixMillis(0))])
        .await
        .unwrap();
    store.tidy().await.unwrap();
    store.close().await.unwrap();
}

/// Runs a file as operators do.
fn psql(file: &Path, url: &str) {
    let output = Command::new(programs().join("psql"))
        .args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"])
        .arg(format!("--file={}", file.display()))
        .arg(format!("--dbname={url}"))
        .env_clear()
        .env("CLEW_DB_PASSWORD", "hush")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
