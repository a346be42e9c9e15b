//! Deleted data leaves no byte in any file; and any text can be searched for.

use clew_context::model::{MessageId, UnixMillis, UserId};
use clew_store::model::AgentName;
use clew_store::model::{
    ContextSnapshot, ContextSnapshotInfo, Fact, FactId, Origin, StoredRole, Subject,
};
use clew_store::{Backend, Kind, Purge, Record, SUMMARY_REMOVED, Sqlite};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use super::{CHANNEL, GUILD, NOW, Place, found_in, row, turn, turns};

const MARKER: &str = "planted-marker-7c1f";

pub(super) fn fact(id: u64, subject: Subject, by: u64, text: &str) -> Fact {
    Fact {
        id: FactId(id),
        subject,
        text: text.to_owned(),
        origin: Origin::Guild(GUILD),
        by: UserId::new(by),
        at: NOW,
        link: Some((CHANNEL, MessageId::new(100 + id % 1000))),
        pinned: false,
        seen: 1,
        last_used: NOW,
    }
}

pub(super) fn snapshot(
    user: u64,
    turns: std::ops::RangeInclusive<u64>,
    text: &str,
) -> ContextSnapshot {
    let messages: Vec<_> = turns.flat_map(|at| turn(user, at, text)).collect();
    ContextSnapshot {
        info: ContextSnapshotInfo {
            id: format!("00000000-0000-0000-0000-{user:012x}")
                .parse()
                .unwrap(),
            agent: AgentName::default_agent(),
            owner: UserId::new(user),
            guild: Some(GUILD),
            timestamp: NOW,
            description: Some(text.to_owned()),
            summary: text.to_owned(),
            message_count: messages.len(),
            window_start: NOW,
            window_end: NOW,
        },
        messages,
    }
}

/// Scatters ids of facts, so that they are inserted between others.
pub(super) fn scattered(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Writes turns, facts and a snapshot for each of six users, all with the
/// marker and the user's number.
async fn plant(store: &Sqlite, longest: u32, mut number: impl FnMut(u32) -> u64) {
    let mut text = |user, most| {
        let length = usize::try_from(number(most)).unwrap();
        format!("{MARKER} {user} {}", "x".repeat(length))
    };
    for at in 1..=600u64 {
        let user = 1 + at % 6;
        let said = text(user, longest);
        store.append(&turn(user, at, &said)).await.unwrap();
        let subject = match at % 2 {
            0 => Subject::Server(GUILD),
            _ => Subject::User(UserId::new(user)),
        };
        let fact = fact(scattered(at), subject, user, &text(user, 300));
        store.put_facts(&[fact]).await.unwrap();
    }
    for user in 1..=6 {
        // Separate turns, since editing a message affects everyone who saved
        // it.
        let saved = snapshot(user, user * 1000..=user * 1000 + 2, &text(user, 9));
        store.save_snapshot(&saved).await.unwrap();
    }
}

/// Deletes and replaces entries in random order.
async fn disturb(store: &Sqlite, longest: u32, mut number: impl FnMut(u32) -> u64) {
    for _ in 0..300 {
        let at = 1 + number(600);
        match number(3) {
            0 => drop(store.remove_facts(&[FactId(scattered(at))]).await.unwrap()),
            1 => {
                let ids = vec![MessageId::new(at * 10)];
                let channel = CHANNEL;
                let purge = Purge::Messages { channel, ids };
                store.purge(&purge).await.unwrap();
            }
            _ => {
                let length = usize::try_from(number(longest)).unwrap();
                let text = format!("{MARKER} {} {}", 1 + at % 6, "z".repeat(length));
                let message = MessageId::new(at * 10 + 1);
                store.edit_message(CHANNEL, message, &text).await.unwrap();
            }
        }
    }
}

/// Texts of all lengths come and go, so that pages split and merge, which is
/// what leaves copies behind.
#[tokio::test]
async fn no_byte_of_purged_texts_is_left() {
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for longest in [40, 400, 3000, 9000] {
        let mut number = |below: u32| u64::from(random.next_u32() % below);
        let place = Place::new();
        let store = place.open();
        plant(&store, longest, &mut number).await;
        disturb(&store, longest, &mut number).await;
        for user in [3, 5, 1] {
            let of_user = format!("{MARKER} {user} ");
            assert!(!found_in(place.folder.path(), &of_user).is_empty());
            let purged = store.purge(&Purge::User(UserId::new(user))).await.unwrap();
            let kinds: Vec<Kind> = purged.iter().map(|(kind, _)| kind).collect();
            assert!(kinds.contains(&Kind::Messages) && kinds.contains(&Kind::Snapshots));
            let left = found_in(place.folder.path(), &of_user);
            assert_eq!(left, [""; 0], "of {user}, texts up to {longest}");
        }
        store.purge(&Purge::Guild(GUILD)).await.unwrap();
        assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
        store.close().await.unwrap();
    }
}

/// Ids and times go with the texts: from rows and indexes, from what pages keep of rows that
/// moved, and from the log, while the store stays open.
#[tokio::test]
async fn no_byte_of_purged_ids_and_times_is_left() {
    let place = Place::new();
    let store = place.open();
    // As long as Discord's, so that they are found by their bytes.
    let user = |number: u64| 700_000_000_000_000_000 + number * 7_919;
    let mut theirs: Vec<(u64, Vec<Vec<u8>>)> = Vec::new();
    for at in 1..=120u64 {
        let number = 1 + at % 5;
        let said_at = UnixMillis(NOW.0 + i64::try_from(at * 1_001).unwrap());
        let mut rows = turn(user(number), 60_000_000_000_000_000 + at * 131, "words");
        for row in &mut rows {
            row.timestamp = said_at;
        }
        store.append(&rows).await.unwrap();
        let mut fact = fact(
            user(number) + at,
            Subject::User(UserId::new(user(number))),
            user(number),
            "fact",
        );
        fact.at = said_at;
        store.put_facts(&[fact]).await.unwrap();
        let ids = rows.iter().map(|row| row.message.unwrap().get());
        let mut parts: Vec<Vec<u8>> = ids.map(|id| id.to_be_bytes().into()).collect();
        parts.push(rows[0].turn.to_string().into_bytes());
        parts.push(said_at.rfc3339().into_bytes());
        parts.push(user(number).to_be_bytes().into());
        parts.push(user(number).to_string().into_bytes());
        theirs.push((number, parts));
    }
    let of = |number: u64| {
        let parts = theirs.iter().filter(move |(whose, _)| *whose == number);
        let found = parts.flat_map(|(_, parts)| parts);
        let found = found.flat_map(|part| found_in(place.folder.path(), part));
        found.collect::<Vec<_>>()
    };
    for number in [4, 2] {
        assert!(of(number).len() > 100, "the test sees what is there");
        store
            .purge(&Purge::User(UserId::new(user(number))))
            .await
            .unwrap();
        assert_eq!(of(number), [""; 0], "of {number}");
    }
    assert!(of(1).len() > 100, "others' stay");
    store.close().await.unwrap();
}

/// A long purge ends with the store: it fails, so that nobody is told that it is done, and the
/// next one finishes it.
#[tokio::test]
async fn closing_waits_for_a_step_of_a_purge_and_not_for_all_of_it() {
    let place = Place::new();
    let store = place.open();
    let rows = (1..=5_000).flat_map(|at| turn(1, at, MARKER));
    let rows: Vec<Record> = rows.map(Record::Message).collect();
    store.write(&rows).await.unwrap();
    let purge = Purge::User(UserId::new(1));
    let (purged, closed) = tokio::join!(store.purge(&purge), store.close());
    closed.unwrap();
    assert!(purged.is_err(), "{purged:?}");
    let store = place.open();
    let left = store.purge(&purge).await.unwrap().total();
    assert!(left > 0 && left < 10_000, "{left}");
    assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
}

#[tokio::test]
async fn a_deleted_message_is_removed_from_snapshots_and_their_summary() {
    let place = Place::new();
    let store = place.open();
    let saved = snapshot(1, 1..=2, MARKER);
    store.save_snapshot(&saved).await.unwrap();
    let all = store.held_messages(CHANNEL, MessageId::new(1), MessageId::new(u64::MAX));
    let all: Vec<u64> = all.await.unwrap().iter().map(|id| id.get()).collect();
    assert_eq!(all, [10, 11, 20, 21]);

    let purge = |id| Purge::Messages {
        channel: CHANNEL,
        ids: vec![MessageId::new(id)],
    };
    store.purge(&purge(10)).await.unwrap();
    let rest = store
        .snapshot(UserId::new(1), &saved.info.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        rest.messages,
        saved.messages[2..],
        "the trigger's turn is deleted"
    );
    assert_eq!(rest.info.message_count, 2);
    assert_eq!(rest.info.summary, SUMMARY_REMOVED);
    store.purge(&purge(21)).await.unwrap();
    store.purge(&purge(20)).await.unwrap();
    let gone = store
        .snapshot(UserId::new(1), &saved.info.id)
        .await
        .unwrap();
    assert_eq!(gone, None);
    assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
}

#[tokio::test]
async fn a_half_saved_snapshot_is_removed_at_the_next_start() {
    let place = Place::new();
    let store = place.open();
    let saved = snapshot(1, 1..=2, MARKER);
    store.save_snapshot(&saved).await.unwrap();
    store.close().await.unwrap();
    place
        .beside()
        .execute("UPDATE snapshot_rows SET ready = 0", [])
        .unwrap();
    let store = place.open();
    let found = store
        .snapshots(UserId::new(1), Some(GUILD), None, 9)
        .await
        .unwrap();
    assert_eq!(found, []);
    assert_eq!(
        found_in(&place.folder.path().join("agents"), MARKER),
        [""; 0]
    );
}

#[tokio::test]
async fn an_edit_leaves_nothing_of_the_old_text() {
    let place = Place::new();
    let store = place.open();
    store.append(&turn(1, 1, MARKER)).await.unwrap();
    let edited = store
        .edit_message(CHANNEL, MessageId::new(10), "new")
        .await
        .unwrap();
    assert_eq!(edited, 1);
    store
        .edit_message(CHANNEL, MessageId::new(11), "new")
        .await
        .unwrap();
    assert_eq!(found_in(place.folder.path(), MARKER), [""; 0]);
    assert_eq!(
        store
            .edit_message(CHANNEL, MessageId::new(12), "x")
            .await
            .unwrap(),
        0
    );
}

#[tokio::test]
async fn a_replaced_turn_keeps_its_place() {
    let place = Place::new();
    let store = place.open();
    for at in 1..=4 {
        store.append(&turn(1, at, "text")).await.unwrap();
    }
    let mut again = turn(1, 2, "other");
    again.push(row(1, 2, StoredRole::Assistant, "more"));
    assert_eq!(store.append(&again).await.unwrap(), 2);
    assert_eq!(turns(&store, 1).await, [1, 2, 3, 4]);
    let window = store.window(&super::query(1, 5)).await.unwrap();
    let texts: Vec<&str> = window.iter().map(|row| row.content.as_str()).collect();
    assert_eq!(texts, ["more", "text", "text", "text", "text"]);
}

#[tokio::test]
async fn entries_copied_twice_exist_once() {
    let (from, to) = (Place::new(), Place::new());
    let (from, to) = (from.open(), to.open());
    for at in 1..=5 {
        let mut rows = turn(1, at, "text");
        // Two identical-looking calls.
        rows.insert(1, row(1, at, StoredRole::ToolUse, ""));
        rows.insert(1, row(1, at, StoredRole::ToolUse, ""));
        from.append(&rows).await.unwrap();
    }
    let server = Subject::Server(GUILD);
    from.put_facts(&[fact(1, server, 1, "text")]).await.unwrap();
    from.save_snapshot(&snapshot(1, 1..=2, "text"))
        .await
        .unwrap();
    for _ in 0..2 {
        for kind in Kind::ALL {
            let mut after = None;
            loop {
                let page = from.records(kind, None, after.as_ref(), 4).await.unwrap();
                to.write(&page.records).await.unwrap();
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
    }
    for kind in Kind::ALL {
        let (one, other) = (
            from.records(kind, None, None, 99),
            to.records(kind, None, None, 99),
        );
        let (one, other) = (one.await.unwrap(), other.await.unwrap());
        assert_eq!(one.records.len(), other.records.len(), "{kind:?}");
        assert!(
            one.records
                .iter()
                .all(|entry: &Record| other.records.contains(entry))
        );
    }
    let query = super::query(1, 99);
    let (one, other) = (from.window(&query), to.window(&query));
    assert_eq!(one.await.unwrap(), other.await.unwrap());
    assert_eq!(to.append(&turn(1, 99, "next")).await.unwrap(), 6);
}
