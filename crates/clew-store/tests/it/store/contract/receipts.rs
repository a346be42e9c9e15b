//! Receipts of answers: found by any of the answer's messages, for as long as they
//! are kept.

use std::slice::from_ref;

use clew_context::model::ContentSource;
use clew_store::model::{ReceiptLimits, StoredReceipt};
use clew_store::{Backend, Error, Kind, Purge, Record, RecordKey};

use crate::store::build::{at, channel, direct, guild, member, message, receipt, thread, user};
use crate::store::fixture::{Fixture, needs_database, on_each_store};

on_each_store! {
    a_receipt_is_found_by_the_question_and_each_message_of_the_answer
    the_last_receipt_of_a_channel_is_the_newest
    a_turn_that_is_replaced_has_one_receipt
    receipts_expire
    each_person_and_server_has_the_newest
    what_a_receipt_names_elsewhere_leaves_it_unless_a_person_or_server_is_erased
    receipts_name_servers_and_members
}

/// Writes receipts; `false` if this store keeps none.
async fn kept<F: Fixture>(store: &F::Store, receipts: &[StoredReceipt]) -> bool {
    let records: Vec<Record> = receipts.iter().cloned().map(Record::Receipt).collect();
    let written = needs_database::<F, _>(store.write(&records).await);
    if written.is_none() {
        let found = store.receipt_of(channel(2), message(10)).await;
        assert!(matches!(found, Err(Error::NeedsDatabase { .. })));
        let found = store.last_receipt(channel(2), user(3)).await;
        assert!(matches!(found, Err(Error::NeedsDatabase { .. })));
        assert_eq!(store.expire_receipts(since(1_000)).await.unwrap(), 0);
        let page = store.records(Kind::Receipts, None, None, 9).await.unwrap();
        assert_eq!(page.records, []);
    }
    written.is_some()
}

fn source(id: u64) -> ContentSource {
    ContentSource {
        guild: Some(guild(7)),
        channel: channel(70),
        message: Some(message(id)),
        author: Some(user(9)),
    }
}

async fn a_receipt_is_found_by_the_question_and_each_message_of_the_answer<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = receipt(member(1, 2, 3), 10, at(0), &[source(50), source(51)]);
    let there = StoredReceipt {
        trigger: None,
        messages: vec![message(14)],
        ..receipt(direct(3), 13, at(0), &[])
    };
    if !kept::<F>(&store, &[here.clone(), there.clone()]).await {
        return;
    }
    let of = async |place, id| store.receipt_of(place, message(id)).await.unwrap();
    for id in [10, 11, 12] {
        assert_eq!(of(channel(2), id).await.as_ref(), Some(&here), "{id}");
        assert_eq!(of(channel(3), id).await, None, "{id}");
    }
    assert_eq!(of(there.channel, 14).await.as_ref(), Some(&there));
    assert_eq!(of(there.channel, 13).await, None);
    // A source is no message of it.
    assert_eq!(of(channel(70), 50).await, None);
}

async fn the_last_receipt_of_a_channel_is_the_newest<F: Fixture>(place: &F) {
    let store = place.open().await;
    let of = |who, number, when| StoredReceipt {
        owner: user(who),
        ..receipt(thread(1, 2), number, at(when), &[])
    };
    let private = StoredReceipt {
        is_private: true,
        ..of(5, 40, 9)
    };
    let all = [of(3, 10, 5), of(4, 20, 7), of(3, 30, 6), private];
    if !kept::<F>(&store, &all).await {
        return;
    }
    let last = async |place: u64, who: u64| {
        let found = store.last_receipt(channel(place), user(who)).await.unwrap();
        found.map(|receipt| receipt.turn.0)
    };
    assert_eq!(last(2, 3).await, Some(20));
    assert_eq!(last(2, 5).await, Some(40), "a private one is for its asker");
    assert_eq!(last(3, 5).await, None);
}

async fn a_turn_that_is_replaced_has_one_receipt<F: Fixture>(place: &F) {
    let store = place.open().await;
    let first = receipt(member(1, 2, 3), 10, at(0), &[source(50)]);
    let second = StoredReceipt {
        messages: vec![message(15)],
        people: receipt(member(1, 2, 3), 10, at(0), &[]).people,
        body: "{}".to_owned(),
        ..first.clone()
    };
    if !kept::<F>(&store, from_ref(&first)).await {
        return;
    }
    store
        .write(&[Record::Receipt(second.clone())])
        .await
        .unwrap();
    let found = store.receipt_of(channel(2), message(15)).await.unwrap();
    assert_eq!(found.as_ref(), Some(&second));
    assert_eq!(
        store.receipt_of(channel(2), message(11)).await.unwrap(),
        None
    );
    let purged = store.purge(&Purge::User(user(9))).await.unwrap();
    assert_eq!(purged.total(), 0, "it names that user no more");
    let key = [RecordKey::Receipt(second.turn)];
    assert_eq!(store.remove(&key).await.unwrap(), 1);
    assert_eq!(
        store.receipt_of(channel(2), message(15)).await.unwrap(),
        None
    );
}

fn since(after: i64) -> ReceiptLimits {
    ReceiptLimits {
        since: at(after),
        of_person: 1_000,
        of_guild: 1_000,
    }
}

/// Whoever asks all day has the newest, and takes no room from others.
async fn each_person_and_server_has_the_newest<F: Fixture>(place: &F) {
    let store = place.open().await;
    let of = |scope, number: u64| {
        let when = at(i64::try_from(number).unwrap());
        receipt(scope, number, when, &[])
    };
    let (many, few) = (member(1, 2, 3), member(1, 2, 4));
    let mut all: Vec<StoredReceipt> = (1..=5).map(|nth| of(many, nth * 10)).collect();
    all.extend([of(few, 11), of(member(9, 2, 3), 12)]);
    all.extend((1..=4).map(|nth| of(direct(3), nth * 10 + 3)));
    if !kept::<F>(&store, &all).await {
        return;
    }
    let left = async |limits: ReceiptLimits| {
        let gone = store.expire_receipts(limits).await.unwrap();
        let page = store.records(Kind::Receipts, None, None, 99).await.unwrap();
        let turns = page.records.iter().map(|record| match record {
            Record::Receipt(receipt) => receipt.turn.0,
            other => panic!("{other:?}"),
        });
        let mut turns: Vec<u64> = turns.collect();
        turns.sort_unstable();
        (gone, turns)
    };
    let of_person = ReceiptLimits {
        of_person: 3,
        ..since(0)
    };
    let (gone, turns) = left(of_person).await;
    assert_eq!(gone, 3);
    assert_eq!(turns, [11, 12, 23, 30, 33, 40, 43, 50]);
    let of_guild = ReceiptLimits {
        of_guild: 2,
        ..since(0)
    };
    let (gone, turns) = left(of_guild).await;
    assert_eq!(gone, 2, "direct messages are no server");
    assert_eq!(turns, [12, 23, 33, 40, 43, 50]);
}

async fn receipts_expire<F: Fixture>(place: &F) {
    let store = place.open().await;
    let of = |number, when| receipt(member(1, 2, 3), number, at(when), &[]);
    if !kept::<F>(&store, &[of(10, 5), of(20, 6), of(30, 7)]).await {
        return;
    }
    assert_eq!(store.expire_receipts(since(6)).await.unwrap(), 1);
    assert_eq!(store.expire_receipts(since(6)).await.unwrap(), 0);
    let left = store.records(Kind::Receipts, None, None, 9).await.unwrap();
    assert_eq!(left.records.len(), 2);
    let held = store.held_messages(channel(2), message(1), message(99));
    let held: Vec<u64> = held.await.unwrap().iter().map(|id| id.get()).collect();
    assert_eq!(held, [20, 21, 22, 30, 31, 32]);
}

async fn what_a_receipt_names_elsewhere_leaves_it_unless_a_person_or_server_is_erased<
    F: Fixture,
>(
    place: &F,
) {
    let store = place.open().await;
    let one = receipt(member(1, 2, 3), 10, at(100), &[source(50)]);
    if !kept::<F>(&store, from_ref(&one)).await {
        return;
    }
    let elsewhere = channel(70);
    let ids = vec![message(50)];
    for (purge, goes) in [
        (
            Purge::Messages {
                channel: elsewhere,
                ids,
            },
            false,
        ),
        (
            Purge::Edited {
                channel: elsewhere,
                message: message(50),
                at: at(900),
            },
            false,
        ),
        (Purge::Channel(elsewhere), false),
        (
            Purge::Member {
                guild: guild(7),
                user: user(9),
            },
            false,
        ),
        (Purge::User(user(9)), true),
        (Purge::Guild(guild(7)), true),
        (
            Purge::Messages {
                channel: channel(2),
                ids: vec![message(12)],
            },
            true,
        ),
    ] {
        let gone = store.purge(&purge).await.unwrap();
        assert_eq!(
            gone.iter().any(|(kind, _)| kind == Kind::Receipts),
            goes,
            "{purge:?}"
        );
        let found = store.receipt_of(channel(2), message(10)).await.unwrap();
        assert_eq!(found.is_none(), goes, "{purge:?}");
        store.write(&[Record::Receipt(one.clone())]).await.unwrap();
    }
}

async fn receipts_name_servers_and_members<F: Fixture>(place: &F) {
    let store = place.open().await;
    let one = receipt(member(1, 2, 3), 10, at(0), &[source(50)]);
    if !kept::<F>(&store, &[one]).await {
        return;
    }
    assert_eq!(store.guilds().await.unwrap(), [guild(1), guild(7)]);
    assert_eq!(store.members(guild(1)).await.unwrap(), [user(3)]);
    // Only ids are kept of what a member said elsewhere.
    assert_eq!(store.members(guild(7)).await.unwrap(), []);
}
