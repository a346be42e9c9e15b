//! Seed S4's defensive check: a stored row that bears another owner than the
//! conversation is nobody's, an error in the log, and nothing is loaded.

use clew::model::{AgentName, Scope, UnixMillis, UserId};
use clew::store::{Backend, WindowQuery};

use super::place::{Kind, Place, on_each_database, says, says_nothing_of};
use crate::support::log::Log;

on_each_database! {
    a_row_of_another_owner_loads_nothing
}

/// Changes rows behind the bot's back.
async fn change(p: &Place, table: &str, change: &str) {
    let sql = |table: &str| format!("UPDATE {table} {change}");
    match p.kind {
        Kind::Sqlite => {
            let file = rusqlite::Connection::open(p.path("clew.db")).unwrap();
            file.execute_batch(&sql(table)).unwrap();
        }
        Kind::Files => panic!("a file's name is its owner"),
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            let url = &p.database.as_ref().unwrap().admin_url;
            crate::support::postgres::query(url, &sql(&format!("clew.{table}"))).await;
        }
    }
}

async fn a_row_of_another_owner_loads_nothing(kind: Kind) {
    let p = Place::new(kind, &[("CONTEXT_SCOPE", "user")]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    p.ask(p.help, p.ada, "ginger").await;
    p.ask(p.help, p.boris, "cinnamon").await;
    bot.stop().await;
    let theirs = format!("SET owner_id = {} WHERE content = 'saffron'", p.boris);
    change(&p, "messages", &theirs).await;

    let store = p.open().await;
    let query = |user| WindowQuery {
        scope: Scope::User(user),
        agent: AgentName::default_agent(),
        since: UnixMillis(0),
        limit: 100,
    };
    let log = Log::default();
    {
        let _guards = log.start();
        let of_ada = store.window(&query(UserId::new(p.ada.0))).await.unwrap();
        assert_eq!(of_ada, [], "not even what is hers");
        let of_boris = store.window(&query(UserId::new(p.boris.0))).await.unwrap();
        assert_eq!(of_boris.len(), 2);
    }
    store.close().await.unwrap();
    let lines = log.take();
    let told = lines.iter().filter(|line| line.contains("ERROR"));
    assert_eq!(told.count(), 1, "{lines:?}");
    assert!(lines[0].contains("discord_conv:111"), "{lines:?}");
    assert!(!lines[0].contains("saffron"), "{lines:?}");

    let bot = p.start().await;
    let prompt = p.prompt(p.help, p.ada).await;
    says_nothing_of(&prompt, &["saffron", "ginger", "cinnamon"]);
    let prompt = p.prompt(p.help, p.boris).await;
    says(&prompt, &["so: cinnamon"]);
    says_nothing_of(&prompt, &["saffron", "ginger"]);
    bot.stop().await;
}
