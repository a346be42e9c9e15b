//! The mismatch rule: rows of a conversation that belong to somebody else, for whatever reason, are logged as
//! an error and never reach a prompt.

use super::place::{Kind, Place, assert_says, assert_says_nothing_of};
use crate::support::log::Log;

/// Changes rows without the bot's knowledge. `sql` is given the table to change and the one to read from.
async fn change(p: &Place, sql: impl Fn(&str, &str) -> String) {
    match p.kind {
        Kind::Sqlite => {
            let file = rusqlite::Connection::open(p.path("clew.db")).unwrap();
            assert!(file.execute(&sql("message_rows", "messages"), []).unwrap() > 0);
        }
        Kind::Files => panic!("a file is found by its path"),
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            let url = &p.database.as_ref().unwrap().admin_url;
            crate::support::postgres::query(url, &sql("clew.messages", "clew.messages")).await;
        }
    }
}

/// The number of log lines that report a mismatch.
fn mismatches(log: &Log) -> usize {
    let lines = log.take();
    let said = lines.iter().filter(|line| line.contains("does not belong"));
    let said: Vec<&String> = said.collect();
    assert!(said.iter().all(|line| line.contains("ERROR")), "{said:?}");
    // No message text may be logged.
    let tells = |line: &String| line.contains("saffron") || line.contains("turmeric");
    assert!(!lines.iter().any(tells), "{lines:?}");
    said.len()
}

async fn nothing_of_another_owner_is_loaded(kind: Kind) {
    let p = Place::new(kind, &[("CONTEXT_SCOPE", "user")]).await;
    let log = Log::default();
    let _guards = log.start();
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.abroad, p.ada, "cinnamon").await;
    p.ask(p.help, p.boris, "turmeric").await;
    assert_eq!(mismatches(&log), 0);
    // One row of Ada's conversation gets Boris as its owner.
    let owned = |by: u8| {
        move |table: &str, read: &str| {
            format!(
                "UPDATE {table} SET owner_id = {by}{by}{by}
                 WHERE id IN (SELECT id FROM {read} WHERE content LIKE '%saffron')"
            )
        }
    };
    change(&p, owned(2)).await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says_nothing_of(&prompt, &["saffron", "cinnamon", "turmeric"]);
    // By the history, and by what looks for earlier exchanges.
    assert!(mismatches(&log) >= 1);
    // Boris's own rows are still his, and nothing else is.
    let prompt = p.prompt(p.help, p.boris).await;
    assert_says(&prompt, &["turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron", "cinnamon"]);
    assert_eq!(mismatches(&log), 0);
    change(&p, owned(1)).await;
    assert_says(&p.prompt(p.help, p.ada).await, &["saffron", "cinnamon"]);
    // Move all that is Ada's into Boris's conversation.
    change(&p, |table, _| {
        format!("UPDATE {table} SET scope = 'discord_conv:222' WHERE owner_id = 111")
    })
    .await;
    let prompt = p.prompt(p.help, p.boris).await;
    assert_says_nothing_of(&prompt, &["saffron", "cinnamon", "turmeric"]);
    // By the history, and by what looks for earlier exchanges.
    assert!(mismatches(&log) >= 1);
    p.ask(p.help, p.ada, "ginger").await;
    assert_says(&p.prompt(p.help, p.ada).await, &["ginger"]);
    assert_eq!(mismatches(&log), 0);
    bot.stop().await;
}

// On a single thread, whose log is captured.
#[tokio::test]
async fn nothing_of_another_owner_is_loaded_from_sqlite() {
    nothing_of_another_owner_is_loaded(Kind::Sqlite).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn nothing_of_another_owner_is_loaded_from_postgres() {
    nothing_of_another_owner_is_loaded(Kind::Postgres).await;
}
