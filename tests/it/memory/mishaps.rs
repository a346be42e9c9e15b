//! A store that fails costs its part of the prompt (seed S4).

use std::fs;

use super::place::{Kind, Place, on_each_store, says, says_nothing_of};
use crate::support::bot::prompt;

on_each_store! {
    a_store_that_fails_costs_its_part_not_the_answer
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
