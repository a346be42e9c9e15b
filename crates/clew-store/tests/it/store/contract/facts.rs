//! Facts about users and servers, and searching those of a server.

use clew_store::Backend;
use clew_store::model::{Fact, FactId, Origin, Subject};

use crate::store::build::{at, channel, guild, message, server_fact, user, user_fact};
use crate::store::fixture::{Fixture, on_each_store};

on_each_store! {
    facts_are_written_replaced_and_removed
    facts_of_one_subject_are_listed_oldest_first
    every_field_of_a_fact_comes_back
    of_too_many_the_most_useful_are_read
}

async fn about_user(store: &impl Backend, id: u64) -> Vec<Fact> {
    store
        .facts(Subject::User(user(id)), usize::MAX)
        .await
        .unwrap()
}

async fn facts_are_written_replaced_and_removed<F: Fixture>(place: &F) {
    let store = place.open().await;
    let mut facts = [user_fact(1, 3, "likes tea"), user_fact(2, 3, "has a cat")];
    store.put_facts(&facts).await.unwrap();
    assert_eq!(about_user(&store, 3).await, facts);
    facts[0].text = String::from("likes coffee");
    facts[0].seen = 2;
    store.put_facts(&facts[..1]).await.unwrap();
    assert_eq!(about_user(&store, 3).await, facts);
    let gone = [FactId(1), FactId(9)];
    assert_eq!(store.remove_facts(&gone).await.unwrap(), 1);
    assert_eq!(about_user(&store, 3).await, facts[1..]);
    assert_eq!(store.remove_facts(&gone).await.unwrap(), 0);
    store.put_facts(&[]).await.unwrap();
    assert_eq!(store.remove_facts(&[]).await.unwrap(), 0);
}

async fn facts_of_one_subject_are_listed_oldest_first<F: Fixture>(place: &F) {
    let store = place.open().await;
    let mut facts = Vec::new();
    for (id, when) in [(5, 30), (6, 10), (7, 20)] {
        facts.push(Fact {
            at: at(when),
            ..user_fact(id, 3, "x")
        });
    }
    // A server with the same number as the user is unrelated.
    facts.extend([user_fact(8, 4, "y"), server_fact(9, 3, "z")]);
    store.put_facts(&facts).await.unwrap();
    let ids: Vec<u64> = about_user(&store, 3)
        .await
        .iter()
        .map(|fact| fact.id.0)
        .collect();
    assert_eq!(ids, [6, 7, 5]);
    let server = store
        .facts(Subject::Server(guild(3)), usize::MAX)
        .await
        .unwrap();
    assert_eq!(server, facts[4..]);
    assert_eq!(
        store
            .facts(Subject::Server(guild(4)), usize::MAX)
            .await
            .unwrap(),
        []
    );
}

async fn every_field_of_a_fact_comes_back<F: Fixture>(place: &F) {
    let store = place.open().await;
    let full = Fact {
        id: FactId(u64::MAX),
        origin: Origin::Guild(guild(1)),
        by: user(77),
        at: at(1),
        link: Some((channel(2), message(10))),
        pinned: true,
        seen: 1_000,
        last_used: at(2),
        ..user_fact(1, 3, "\"quoted\" 🦀 it's\u{202e}")
    };
    let direct = Fact {
        origin: Origin::Direct,
        at: at(3),
        ..user_fact(1 << 63, 3, "direct")
    };
    let facts = [full, direct];
    store.put_facts(&facts).await.unwrap();
    assert_eq!(about_user(&store, 3).await, facts);
    let ids = facts.map(|fact| fact.id);
    assert_eq!(store.remove_facts(&ids).await.unwrap(), 2);
}

/// An import may bring more, and longer ones, than the bot would keep.
async fn of_too_many_the_most_useful_are_read<F: Fixture>(place: &F) {
    let store = place.open().await;
    let mut facts: Vec<Fact> = (1..=30_u32)
        .map(|id| Fact {
            at: at(id.into()),
            last_used: at(100 - i64::from(id)),
            ..user_fact(id.into(), 3, "likes tea")
        })
        .collect();
    facts[19].pinned = true;
    facts[0].text = "x".repeat(clew_store::model::MAX_FACT_BYTES + 1);
    facts[1].text = "x".repeat(clew_store::model::MAX_FACT_BYTES);
    store.put_facts(&facts).await.unwrap();
    let read = store.facts(Subject::User(user(3)), 4).await.unwrap();
    let ids: Vec<u64> = read.iter().map(|fact| fact.id.0).collect();
    assert_eq!(ids, [2, 3, 4, 20], "what is too long is left out");
    assert_eq!(store.facts(Subject::User(user(3)), 0).await.unwrap(), []);
    assert_eq!(about_user(&store, 3).await.len(), 29);
}
