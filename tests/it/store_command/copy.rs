//! `clew store copy`: nothing is lost without a warning beforehand.

use clew_store::model::{StoredMessage, StoredRole};
use clew_store::{Kind, Record};

use super::world::{ADA, Home, TURNS, everything, lines_of, member, plain, row};
#[cfg(feature = "postgres")]
use crate::support::postgres::Postgres;

#[cfg(feature = "postgres")]
#[tokio::test]
async fn everything_goes_to_postgresql_and_back() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&everything()).await;
    let before = home.lines().await;
    assert_eq!(before, lines_of(&everything()));
    let database = Postgres::shared().fresh_database().await;
    let (code, out, errors) = home.run(&["copy", "configured", &database.url]);
    assert_eq!((code, errors.as_str()), (0, ""), "{out}");
    assert!(out.contains(":[secret]@127.0.0.1"), "no password: {out}");
    assert!(
        out.contains("Both stores use the same files of saved conversations"),
        "{out}"
    );
    assert_eq!(home.lines_at(&database.url).await, before);
    let (code, out, errors) = home.run(&["copy", &database.url, "sqlite:back.db"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{out}");
    assert_eq!(home.lines_at("sqlite:back.db").await, before);
    assert_eq!(
        home.lines().await,
        before,
        "what was copied from is as it was"
    );
}

#[tokio::test]
async fn files_go_to_a_database_and_back() {
    let home = Home::new("files:context");
    home.fill(&plain()).await;
    let before = home.lines().await;
    assert_eq!(before, lines_of(&plain()));
    let (code, out, errors) = home.run(&["copy", "configured", "sqlite:new.db"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{out}");
    assert_eq!(home.lines_at("sqlite:new.db").await, before);
    // The other folder, including profiles, must be completely empty.
    let (code, _, errors) = home.run(&["copy", "sqlite:new.db", "configured"]);
    assert_eq!(code, 2, "{errors}");
    let expected = "clew: nothing was copied\n  because: the store to copy to is not empty: it \
                    holds 12 messages\n";
    assert_eq!(errors, expected);
    std::fs::remove_dir_all(home.path("context")).unwrap();
    std::fs::remove_dir_all(home.path("profiles")).unwrap();
    let (code, out, errors) = home.run(&["copy", "sqlite:new.db", "configured"]);
    assert_eq!((code, errors.as_str()), (0, ""), "{out}");
    assert!(
        out.contains("Files keep messages for 24 hours from now.\n"),
        "{out}"
    );
    assert_eq!(home.lines().await, before);
}

#[tokio::test]
async fn what_files_cannot_hold_takes_consent() {
    let home = Home::new("sqlite:var/clew.db");
    let strayed = StoredMessage {
        owner: clew_context::model::UserId::new(99),
        ..row(member(ADA), ADA, TURNS + 2, StoredRole::User)
    };
    let mut records = everything();
    records.push(Record::Message(strayed));
    home.fill(&records).await;
    let (code, out, errors) = home.run(&["copy", "configured", "files:context"]);
    assert_eq!((code, out.as_str()), (3, ""), "{errors}");
    insta::assert_snapshot!(errors, @r"
    The store cannot hold all of it:
      messages: 1 are another agent's than the default one's, and need a database
      messages: 1,188 are beyond the newest 15 of their conversation
      messages: 4 are calls of tools, and need a database
      messages: 1 are of another channel or user than their conversation
      messages: 4 are of another scope than member, and need a database
      snapshots: 1 need a database
      receipts: 1 need a database
      agents: 1 are not the default one, and need a database
    Nothing was copied. Say --lossy to copy without that.
    ");
    assert_eq!(home.lines_at("files:context").await, Vec::<String>::new());
    assert_eq!(home.lines().await, lines_of(&records));

    let (code, out, errors) = home.run(&["copy", "--lossy", "configured", "files:context"]);
    assert_eq!(code, 0, "{errors}");
    insta::assert_snapshot!(out, @r"
    Copied from sqlite:var/clew.db to files:context, read again and compared:
    messages                      26
    clear markers                  2
    facts about users              2
    facts about servers            2
    opt-outs                       2
    server settings                1
    agents                         1
    departures                     1
    Files keep messages for 24 hours from now.
    ");
    let mut expected = plain();
    // The last turn has lost its tool calls.
    for turn in TURNS - 5..=TURNS + 1 {
        for role in [StoredRole::User, StoredRole::Assistant] {
            expected.push(Record::Message(row(member(ADA), ADA, turn, role)));
        }
    }
    assert_eq!(home.lines_at("files:context").await, lines_of(&expected));
    assert_eq!(home.lines().await, lines_of(&records));
}

/// PostgreSQL refuses one character.
#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_character_that_is_replaced_takes_consent() {
    let home = Home::new("sqlite:var/clew.db");
    let told = StoredMessage {
        content: "nothing \0 here, \\u0000 there".to_owned(),
        ..row(member(ADA), ADA, 1, StoredRole::User)
    };
    home.fill(&[Record::Message(told.clone())]).await;
    let database = Postgres::shared().fresh_database().await;
    let (code, _, errors) = home.run(&["copy", "configured", &database.url]);
    assert_eq!(code, 3);
    let expected = "The store cannot hold all of it:\n  messages: 1 hold the character \
                    U+0000, which becomes U+FFFD\nNothing was copied. Say --lossy to copy without that.\n";
    assert_eq!(errors, expected);
    let (code, _, _) = home.run(&["copy", "configured", &database.url, "--lossy"]);
    assert_eq!(code, 0);
    let replaced = StoredMessage {
        content: "nothing \u{fffd} here, \\u0000 there".to_owned(),
        ..told
    };
    let copied = home.lines_at(&database.url).await;
    assert_eq!(copied, lines_of(&[Record::Message(replaced)]));
}

/// Both stores share the files of saved conversations: a copy that fails must not
/// remove any of them.
#[tokio::test]
async fn a_copy_that_fails_leaves_the_files_of_the_other_store() {
    let home = Home::new("sqlite:var/clew.db");
    home.fill(&everything()).await;
    // A store with the row of a snapshot that is still being saved.
    let (code, _, _) = home.run(&["copy", "configured", "sqlite:half.db"]);
    assert_eq!(code, 0);
    let half = rusqlite::Connection::open(home.path("half.db")).unwrap();
    half.execute_batch("UPDATE snapshot_rows SET ready = 0")
        .unwrap();
    drop(half);
    let before = home.lines().await;
    let (code, _, errors) = home.run(&["copy", "configured", "sqlite:half.db"]);
    assert_eq!(code, 2, "{errors}");
    assert_eq!(home.lines().await, before);
    let is_snapshot = |line: &&String| line.starts_with(r#"{"kind":"snapshot""#);
    assert_eq!(before.iter().filter(is_snapshot).count(), 1);
    assert_eq!(Kind::Snapshots.as_str(), "snapshots");
}
