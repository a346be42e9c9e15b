//! What a store must not or cannot give (seed S4): a row that bears another
//! owner than the conversation is nobody's, an error in the log, and nothing is
//! loaded; a store that fails costs its part of the prompt.

use std::fs;

use clew::model::{AgentName, Scope, UnixMillis, UserId};
use clew::store::{Backend, WindowQuery};

use super::place::{Kind, Place, on_each_database, on_each_store, says, says_nothing_of};
use crate::support::bot::prompt;
use crate::support::log::Log;

on_each_store! {
    a_store_that_fails_costs_its_part_not_the_answer
}

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

/// Hides what is stored of Ada in `help` from the running bot, or shows it.
async fn hide(p: &Place, hidden: bool) {
    let rename = |schema: &str| {
        let (from, to) = if hidden {
            ("messages", "hidden")
        } else {
            ("hidden", "messages")
        };
        format!("ALTER TABLE {schema}{from} RENAME TO {to}")
    };
    match p.kind {
        Kind::Sqlite => {
            let file = rusqlite::Connection::open(p.path("clew.db")).unwrap();
            file.execute_batch(&rename("")).unwrap();
        }
        Kind::Files => {
            let channel = p
                .path("context")
                .join(format!("guilds/{}/{}", p.guild, p.help));
            let aside = p.path("aside");
            if hidden {
                fs::rename(&channel, &aside).unwrap();
                fs::write(&channel, "a file where a folder should be").unwrap();
            } else {
                fs::remove_file(&channel).unwrap();
                fs::rename(&aside, &channel).unwrap();
            }
        }
        #[cfg(feature = "postgres")]
        Kind::Postgres => {
            let url = &p.database.as_ref().unwrap().admin_url;
            crate::support::postgres::query(url, &rename("clew.")).await;
        }
    }
}

/// It is answered from the question alone, that is told, and when the store is
/// back everything is.
async fn a_store_that_fails_costs_its_part_not_the_answer(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let bot = p.start().await;
    p.ask(p.help, p.ada, "saffron").await;
    hide(&p, true).await;
    p.say(p.help, p.ada, "ginger");
    p.stage.discord.wait_answers(p.help, 2).await.unwrap();
    p.until("two failures", || p.told("store_failed") == 2)
        .await;
    let request = p.stage.model.requests().pop().unwrap();
    let asked = prompt(&request);
    says(&asked, &["ginger"]);
    says_nothing_of(&asked, &["so: saffron"]);
    hide(&p, false).await;
    let asked = p.prompt(p.help, p.ada).await;
    says(&asked, &["saffron", "so: saffron", "go on"]);
    says_nothing_of(&asked, &["ginger"]);
    bot.stop().await;
    let operations: Vec<_> = p
        .details("store_failed")
        .iter()
        .map(|one| one["operation"].clone())
        .collect();
    assert_eq!(operations, ["read", "append"]);
}
