//! Purged data leaves no byte behind, in any file or table.

use clew_context::model::MessageId;
use clew_store::{Backend, Purge, Record, Transcripts};

use super::build::{at, channel, direct, direct_channel, guild, message, turn, user};
use super::contract::everything;
use super::fixture::{Fixture, on_each_store};
use super::world::world;

on_each_store! {
    an_erasure_leaves_no_byte
    deleted_messages_leave_no_byte
    a_server_that_was_left_leaves_no_byte
    retention_leaves_no_byte
    an_edit_leaves_no_byte_of_the_old_text
    a_removed_fact_leaves_no_byte
    a_deleted_conversation_leaves_no_byte
}

/// Occurs nowhere else. A single word, as search indexes store words, and too
/// long for an index that shortens words to hide it.
const MARKER: &str = "Quokkazebuxylophon";

/// Whether the marker is there, in any case: search indexes fold it.
fn holds_marker(bytes: &[u8]) -> bool {
    let bytes = bytes.to_ascii_lowercase();
    let marker = MARKER.to_ascii_lowercase();
    bytes
        .windows(marker.len())
        .any(|window| window == marker.as_bytes())
}

/// The world with the marker in the entries the predicate selects only.
fn marked<F: Fixture>(is_marked: impl Fn(&Record) -> bool) -> Vec<Record> {
    let marker = format!(" {MARKER}");
    let with = world::<F>(&marker);
    let pairs = world::<F>("").into_iter().zip(with);
    pairs
        .map(|(plain, with)| if is_marked(&plain) { with } else { plain })
        .collect()
}

/// Plants entries, purges while the store runs, then looks for the marker.
async fn check<F: Fixture>(
    place: &F,
    is_marked: impl Fn(&Record) -> bool,
    purge: impl AsyncFn(&F::Store),
) {
    let store = place.open().await;
    store.write(&marked::<F>(is_marked)).await.unwrap();
    let before = everything(&store).await;
    store.close().await.unwrap();
    drop(store);
    assert!(holds_marker(&place.bytes()), "the test sees what is there");
    let store = place.open().await;
    purge(&store).await;
    let rest = everything(&store).await;
    assert_ne!(rest, before);
    store.vacuum().await.unwrap();
    // While it is open, so including the write-ahead log.
    assert!(!holds_marker(&place.bytes()), "while it is open");
    store.close().await.unwrap();
    drop(store);
    assert!(!holds_marker(&place.bytes()), "when it is closed");
}

async fn an_erasure_leaves_no_byte<F: Fixture>(place: &F) {
    let logs = place.ground().folder().join("logs");
    let logs = Transcripts::open(logs, None).await.unwrap();
    let mut said = turn(direct(11), 9_000, at(0));
    said[0].content = String::from(MARKER);
    logs.append(&said).await.unwrap();
    let is_theirs = |record: &Record| super::world::owner(record).contains(&user(11));
    let purge = Purge::User(user(11));
    check(place, is_theirs, async |store| {
        let purged = store.purge(&purge).await.unwrap();
        assert!(purged.total() > 0);
        logs.purge(&purge).await.unwrap();
    })
    .await;
}

async fn deleted_messages_leave_no_byte<F: Fixture>(place: &F) {
    let is_in_channel = |record: &Record| match record {
        Record::Message(row) => row.channel == channel(101),
        // A summary may repeat them; a description is the caller's own.
        Record::Fact(fact) => fact.link.is_some_and(|(place, _)| place == channel(101)),
        _ => false,
    };
    check(place, is_in_channel, async |store| {
        let all = (MessageId::new(1), MessageId::new(u64::MAX));
        let ids = store
            .held_messages(channel(101), all.0, all.1)
            .await
            .unwrap();
        let channel = channel(101);
        store
            .purge(&Purge::Messages { channel, ids })
            .await
            .unwrap();
    })
    .await;
}

async fn a_server_that_was_left_leaves_no_byte<F: Fixture>(place: &F) {
    let is_of_it = |record: &Record| match record {
        Record::Message(row) => row.guild == Some(guild(1)),
        Record::Snapshot(snapshot) => snapshot.info.guild == Some(guild(1)),
        Record::Fact(fact) => fact.origin == clew_store::model::Origin::Guild(guild(1)),
        _ => false,
    };
    check(place, is_of_it, async |store| {
        store.purge(&Purge::Guild(guild(1))).await.unwrap();
    })
    .await;
}

async fn retention_leaves_no_byte<F: Fixture>(place: &F) {
    check(
        place,
        |_| true,
        async |store| {
            store.purge(&Purge::Before(at(1_000_000))).await.unwrap();
        },
    )
    .await;
}

async fn an_edit_leaves_no_byte_of_the_old_text<F: Fixture>(place: &F) {
    let id = message(100);
    let is_it = |record: &Record| match record {
        Record::Message(row) => row.message == Some(id) && row.channel == channel(101),
        _ => false,
    };
    let store = place.open().await;
    let mut rows = marked::<F>(is_it);
    for record in &mut rows {
        if let Record::Message(row) = record {
            row.author_name = None;
        }
    }
    store.write(&rows).await.unwrap();
    let edited = store
        .edit_message(channel(101), id, "harmless")
        .await
        .unwrap();
    assert_eq!(edited, 1);
    store.vacuum().await.unwrap();
    store.close().await.unwrap();
    drop(store);
    assert!(!holds_marker(&place.bytes()));
}

async fn a_removed_fact_leaves_no_byte<F: Fixture>(place: &F) {
    let is_fact = |record: &Record| matches!(record, Record::Fact(_));
    let facts: Vec<_> = world::<F>("")
        .into_iter()
        .filter_map(|record| match record {
            Record::Fact(fact) => Some(fact.id),
            _ => None,
        })
        .collect();
    check(place, is_fact, async |store| {
        let gone = store.remove_facts(&facts).await.unwrap();
        assert_eq!(gone, facts.len() as u64);
    })
    .await;
}

async fn a_deleted_conversation_leaves_no_byte<F: Fixture>(place: &F) {
    let is_direct = |record: &Record| match record {
        Record::Message(row) => row.scope == direct(11),
        _ => false,
    };
    assert_eq!(direct_channel(user(11)), channel(900_011));
    check(place, is_direct, async |store| {
        assert!(store.delete_conversation(direct(11)).await.unwrap() > 0);
    })
    .await;
}
