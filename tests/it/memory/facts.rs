//! Remembered facts in prompts: whose, where, which ones, and when they are saved.

use std::time::Duration;

use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
use clew_simulator::Id;
use clew_store::model::{Fact, FactId, Origin, Subject};
use serde_json::json;
use tokio::time::sleep;

use super::place::{
    DAY, Kind, Place, START_MS, assert_says, assert_says_nothing_of, on_each_store,
};

on_each_store! {
    stored_facts_fill_no_prompt
    a_fact_is_used_where_its_origin_allows
    the_best_of_a_hundred_come_first
    use_is_saved_at_the_interval_and_at_the_end
    a_fact_is_deleted_with_its_message
}

/// The pause between two looks at what happens in the background.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// More looks than it ever takes.
const MOST_LOOKS: usize = 200;

/// A fact about Ada.
pub(super) fn of_ada(p: &Place, number: u64, text: &str, origin: Origin) -> Fact {
    let ada = UserId::new(p.ada.0);
    Fact {
        id: FactId(number),
        subject: Subject::User(ada),
        text: text.to_owned(),
        origin,
        by: ada,
        at: UnixMillis(START_MS - DAY),
        link: None,
        pinned: false,
        seen: 1,
        last_used: UnixMillis(START_MS - DAY),
    }
}

fn of_server(p: &Place, number: u64, text: &str, guild: Id) -> Fact {
    let guild = GuildId::new(guild.0);
    Fact {
        subject: Subject::Server(guild),
        ..of_ada(p, number, text, Origin::Guild(guild))
    }
}

pub(super) async fn put(p: &Place, facts: &[Fact]) {
    let store = p.open().await;
    store.put_facts(facts).await.unwrap();
    store.close().await.unwrap();
}

async fn a_fact_is_used_where_its_origin_allows(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let (works, abroad) = (GuildId::new(p.guild.0), GuildId::new(p.other_guild.0));
    let facts = [
        of_ada(&p, 1, "likes saffron", Origin::Guild(works)),
        of_ada(&p, 2, "likes cinnamon", Origin::Guild(abroad)),
        of_ada(&p, 3, "likes turmeric", Origin::Direct),
        of_ada(&p, 4, "likes ginger", Origin::Everywhere),
        of_server(&p, 5, "pumps are blue", p.guild),
        of_server(&p, 6, "pumps are green", p.other_guild),
    ];
    put(&p, &facts).await;
    let bot = p.start().await;
    let here = p.prompt(p.help, p.ada).await;
    assert_says(
        &here,
        &[
            "About Ada:",
            "saffron",
            "ginger",
            "About this server:",
            "pumps are blue",
            "go on",
        ],
    );
    assert_says_nothing_of(&here, &["cinnamon", "turmeric", "green"]);
    let there = p.prompt(p.abroad, p.ada).await;
    assert_says(&there, &["cinnamon", "ginger", "pumps are green"]);
    assert_says_nothing_of(&there, &["saffron", "turmeric", "blue"]);
    let direct = p.prompt(p.direct, p.ada).await;
    assert_says(&direct, &["saffron", "cinnamon", "turmeric", "ginger"]);
    assert_says_nothing_of(&direct, &["blue", "green"]);
    let boris = p.prompt(p.help, p.boris).await;
    assert_says(&boris, &["pumps are blue"]);
    assert_says_nothing_of(
        &boris,
        &["saffron", "cinnamon", "turmeric", "ginger", "About Boris"],
    );
    bot.stop().await;
    let merged = p.details("merge_ok");
    assert_eq!(merged[0]["user_facts"], 2, "{merged:?}");
    assert_eq!(merged[0]["server_facts"], 1, "{merged:?}");
}

/// As many facts as fit into the budget of characters.
async fn the_best_of_a_hundred_come_first(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let mut facts: Vec<Fact> = (1..=98)
        .map(|number| {
            let text = format!("meeting number {number} was about the garden and the fence");
            of_server(&p, number, &text, p.guild)
        })
        .collect();
    let valve = "the compressor valve opens at nine bar";
    facts.push(of_server(&p, 99, valve, p.guild));
    facts.push(of_server(&p, 100, "the valve is made of brass", p.guild));
    put(&p, &facts).await;
    let bot = p.start().await;
    let asked = p
        .ask(p.help, p.ada, "when does the compressor valve open?")
        .await;
    assert_says(
        &asked.prompt,
        &[
            "About this server:\n- the compressor valve",
            "\n- the valve is made of brass",
        ],
    );
    let meetings = asked.prompt.matches("- meeting number").count();
    assert!((10..=40).contains(&meetings), "{}", asked.prompt);
    bot.stop().await;
}

async fn use_is_saved_at_the_interval_and_at_the_end(kind: Kind) {
    let p = Place::new(kind, &[("MEMORY_SAVE_INTERVAL", "1")]).await;
    let fact = of_ada(&p, 1, "likes ginger", Origin::Everywhere);
    put(&p, std::slice::from_ref(&fact)).await;
    let bot = p.start().await;
    p.prompt(p.help, p.ada).await;
    p.until("saved", || p.event_count("flushed") == 1).await;
    bot.stop().await;
    assert!(last_used(&p, &fact).await > START_MS);
    // The bot stops long before the interval ends.
    let bot = p
        .stage
        .start_with(&[("MEMORY_SAVE_INTERVAL", "3600")])
        .await;
    let before = p.time.now();
    p.prompt(p.help, p.ada).await;
    bot.stop().await;
    assert!(last_used(&p, &fact).await >= before);
}

async fn last_used(p: &Place, fact: &Fact) -> i64 {
    let store = p.open().await;
    let facts = store.facts(fact.subject, usize::MAX).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(facts.len(), 1);
    assert_eq!(facts[0].text, fact.text);
    facts[0].last_used.0
}

async fn a_fact_is_deleted_with_its_message(kind: Kind) {
    let p = Place::new(kind, &[]).await;
    let seed = |world: &mut clew_simulator::World| world.seed(p.help, p.ada, "I do like it");
    let message = p.stage.discord.world(seed);
    let link = (ChannelId::new(p.help.0), MessageId::new(message.0));
    let linked = Fact {
        link: Some(link),
        ..of_ada(&p, 1, "likes saffron", Origin::Everywhere)
    };
    let other = of_ada(&p, 2, "likes ginger", Origin::Everywhere);
    put(&p, &[linked, other]).await;
    let bot = p.start().await;
    // Discord is asked for its message in the background, since the bot has just come.
    let mut prompt = p.prompt(p.help, p.ada).await;
    for _ in 0..MOST_LOOKS {
        if prompt.contains("saffron") {
            break;
        }
        sleep(LOOK_EVERY).await;
        prompt = p.prompt(p.help, p.ada).await;
    }
    assert_says(&prompt, &["saffron", "ginger"]);
    p.stage.discord.delete(p.help, message);
    p.until_gone("saffron").await;
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["ginger"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    bot.stop().await;
    assert_eq!(p.traces("saffron"), [""; 0]);
}

/// A fact counts as remembered once it is on disk; the fact that it replaces may be removed with the next save.
#[tokio::test(flavor = "multi_thread")]
async fn a_fact_is_remembered_even_if_room_is_made_later() {
    let settings = [("MAX_USER_MEMORY", "1"), ("MEMORY_SAVE_INTERVAL", "1")];
    let p = Place::new(Kind::Sqlite, &settings).await;
    let bot = p.start().await;
    let remember = async |text: &str| {
        let options = serde_json::json!({"text": text});
        let discord = &p.stage.discord;
        let called = discord
            .call(p.ada, p.help, "memory remember", options)
            .await;
        called.unwrap().answer().await.unwrap().text()
    };
    remember("I like saffron").await;
    let file = rusqlite::Connection::open(p.path("clew.db")).unwrap();
    let trigger = "CREATE TRIGGER kept BEFORE DELETE ON fact_rows \
                   BEGIN SELECT RAISE(ABORT, 'not now'); END";
    file.execute_batch(trigger).unwrap();
    let said = remember("I like turmeric").await;
    assert!(said.contains("Remembered:\n> I like turmeric"), "{said}");
    let prompt = p.prompt(p.help, p.ada).await;
    assert_says(&prompt, &["I like turmeric"]);
    assert_says_nothing_of(&prompt, &["saffron"]);
    p.until("a failure", || p.event_count("store_failed") > 1)
        .await;
    file.execute_batch("DROP TRIGGER kept").unwrap();
    drop(file);
    bot.stop().await;
    assert_eq!(p.traces("saffron"), [""; 0]);
    assert!(!p.traces("I like turmeric").is_empty());
}

/// Whatever an import brought, or a higher limit left.
async fn stored_facts_fill_no_prompt(kind: Kind) {
    let p = Place::new(
        kind,
        &[("MAX_USER_MEMORY", "40"), ("MAX_SERVER_MEMORY", "40")],
    )
    .await;
    let long = |id: u64| format!("saffron {id} {}", "x".repeat(280));
    let mut facts: Vec<Fact> = (1..=500)
        .map(|id| of_ada(&p, id, &long(id), Origin::Everywhere))
        .collect();
    facts.extend((501..=1_000).map(|id| of_server(&p, id, &long(id), p.guild)));
    put(&p, &facts).await;
    let bot = p.start().await;
    let prompt = p.prompt(p.help, p.ada).await;
    let shown = prompt.matches("saffron").count();
    assert!((2..=13).contains(&shown), "{shown}");
    let called = p
        .stage
        .discord
        .call(p.ada, p.help, "memory show", json!({}))
        .await;
    let listed = called.unwrap().answer().await.unwrap().text();
    assert!(listed.matches("saffron").count() <= 40, "{listed}");
    bot.stop().await;
    // Nothing of it is lost by not being read.
    let store = p.open().await;
    let kept = store
        .facts(Subject::User(UserId::new(p.ada.0)), usize::MAX)
        .await
        .unwrap();
    assert_eq!(kept.len(), 500);
    store.close().await.unwrap();
}
