//! What is written can be read back, and what is purged is gone.

use std::time::Duration;

use clew_context::model::{ChannelId, GuildId, MessageId, UnixMillis, UserId};
use clew_store::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, GuildSettings, Origin,
    SnapshotId, StoredMessage, StoredRole, Subject,
};
use clew_store::{Backend, Error, Kind, Purge, Record, SUMMARY_REMOVED, SnapshotFiles};

use super::{Fresh, NOW, all_of, direct, member, row, server, turn};
use crate::store::build::receipt;

const GUILD: GuildId = GuildId::new(1);
const USER: UserId = UserId::new(3);
const CHANNEL: ChannelId = ChannelId::new(7);
/// Must not be found after a purge.
const MARKER: &str = "zebrafinch";

fn fact(id: u64, subject: Subject, text: &str) -> Fact {
    Fact {
        id: FactId(id),
        subject,
        text: text.to_owned(),
        origin: Origin::Guild(GUILD),
        by: USER,
        at: NOW,
        link: Some((CHANNEL, MessageId::new(10))),
        pinned: true,
        seen: 2,
        last_used: NOW,
    }
}

pub(super) fn snapshot(messages: Vec<StoredMessage>) -> ContextSnapshot {
    ContextSnapshot {
        info: ContextSnapshotInfo {
            id: "01234567-89ab-cdef-0123-456789abcdef".parse().unwrap(),
            agent: AgentName::default_agent(),
            owner: USER,
            guild: Some(GUILD),
            timestamp: NOW,
            description: Some(MARKER.to_owned()),
            summary: MARKER.to_owned(),
            message_count: messages.len(),
            window_start: NOW,
            window_end: NOW,
        },
        messages,
    }
}

/// One entry of each kind, with the marker in each text.
fn entries() -> Vec<Record> {
    let rows = turn(member(1, 3), 1, MARKER);
    let key = ClearKey {
        agent: AgentName::default_agent(),
        guild: Some(GUILD),
        user: Some(USER),
    };
    let settings = GuildSettings {
        rolling_window: Some(Duration::from_mins(1)),
        ..GuildSettings::default()
    };
    let with_ordinal = rows
        .iter()
        .cloned()
        .map(|row| StoredMessage { ordinal: 4, ..row });
    let mut records: Vec<Record> = with_ordinal.map(Record::Message).collect();
    records.extend([
        Record::Marker(key, NOW),
        Record::Snapshot(snapshot(rows)),
        Record::Receipt(receipt(member(1, 3), 1, NOW, &[])),
        Record::Fact(fact(u64::MAX, Subject::User(USER), MARKER)),
        Record::Fact(fact(2, Subject::Server(GUILD), MARKER)),
        Record::OptOut(USER, NOW),
        Record::Settings(GUILD, settings),
        Record::Agent(AgentName::default_agent(), NOW),
        Record::Departure(GUILD, NOW),
    ]);
    records
}

async fn all_records(fresh: &Fresh) -> Vec<Record> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        all.extend(
            fresh
                .store
                .records(kind, None, None, 100)
                .await
                .unwrap()
                .records,
        );
    }
    all
}

#[tokio::test]
async fn entries_are_read_as_written_however_often_they_are_copied() {
    let fresh = Fresh::new().await;
    for _ in 0..2 {
        fresh.store.write(&entries()).await.unwrap();
        assert_eq!(all_records(&fresh).await, entries());
    }
    let next = fresh.store.append(&turn(member(1, 3), 2, "next")).await;
    assert_eq!(next.unwrap(), 5, "ordinals go on after those written");
    let stats = fresh.store.stats().await.unwrap();
    let kinds: Vec<Kind> = stats.iter().map(|one| one.kind).collect();
    // Logs and outputs are files, outside of stores.
    let in_stores = |kind: &Kind| !matches!(kind, Kind::Transcripts | Kind::Outputs);
    let expected: Vec<Kind> = Kind::ALL.into_iter().filter(in_stores).collect();
    assert_eq!(kinds, expected);
    assert!(stats.iter().all(|one| one.entries > 0), "{stats:?}");
}

#[tokio::test]
async fn a_purge_of_a_user_leaves_no_text() {
    let fresh = Fresh::new().await;
    fresh.store.write(&entries()).await.unwrap();
    let purged = fresh.store.purge(&Purge::User(USER)).await.unwrap();
    let gone: Vec<(Kind, u64)> = purged.iter().collect();
    let expected = [
        (Kind::Messages, 2),
        (Kind::Markers, 1),
        (Kind::Snapshots, 1),
        (Kind::Receipts, 1),
        (Kind::UserFacts, 1),
        (Kind::ServerFacts, 1),
    ];
    assert_eq!(gone, expected);
    assert_eq!(fresh.store.opt_outs().await.unwrap(), [(USER, NOW)]);
    fresh.store.vacuum().await.unwrap();
    let dump = server::dump_all(&fresh.database.admin_url);
    assert!(dump.contains("opt_outs"), "the dump holds tables");
    assert!(!dump.contains(MARKER));
    let folder = fresh.folder.path().join("default/sessions");
    assert_eq!(folder.read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn a_deleted_trigger_removes_its_turn_from_snapshots_too() {
    let fresh = Fresh::new().await;
    let mut rows = turn(member(1, 3), 1, MARKER);
    rows.extend(turn(member(1, 3), 2, "stays"));
    fresh.store.append(&rows[..2]).await.unwrap();
    fresh.store.append(&rows[2..]).await.unwrap();
    fresh.store.save_snapshot(&snapshot(rows)).await.unwrap();
    let purge = Purge::Messages {
        channel: CHANNEL,
        ids: vec![MessageId::new(10)],
    };
    let purged = fresh.store.purge(&purge).await.unwrap();
    let gone: Vec<(Kind, u64)> = purged.iter().collect();
    assert_eq!(gone, [(Kind::Messages, 2), (Kind::Snapshots, 1)]);
    assert_eq!(fresh.texts(member(1, 3)).await, ["stays", "re: stays"]);
    let listed = fresh
        .store
        .snapshots(USER, Some(GUILD), None, 9)
        .await
        .unwrap();
    assert_eq!(listed[0].summary, SUMMARY_REMOVED);
    let id: SnapshotId = listed[0].id.clone();
    let found = fresh.store.snapshot(USER, &id).await.unwrap().unwrap();
    assert_eq!((found.info.message_count, found.messages.len()), (2, 2));
    assert_eq!(
        fresh.store.snapshot(UserId::new(4), &id).await.unwrap(),
        None
    );
    assert_eq!(fresh.store.purge(&purge).await.unwrap().total(), 0);
}

#[tokio::test]
async fn an_edit_applies_to_rows_and_snapshots_but_not_to_long_answers() {
    let fresh = Fresh::new().await;
    let mut rows = turn(member(1, 3), 1, "before");
    rows[1].parts = vec![MessageId::new(12)];
    fresh.store.append(&rows).await.unwrap();
    fresh.store.save_snapshot(&snapshot(rows)).await.unwrap();
    for (message, expected) in [(10, 1), (11, 0), (12, 0)] {
        let edited = fresh
            .store
            .edit_message(CHANNEL, MessageId::new(message), "after");
        assert_eq!(edited.await.unwrap(), expected, "{message}");
    }
    assert_eq!(fresh.texts(member(1, 3)).await, ["after", "re: before"]);
    let id = snapshot(vec![]).info.id;
    let found = fresh.store.snapshot(USER, &id).await.unwrap().unwrap();
    assert_eq!(found.messages[0].content, "after");
    let held = fresh
        .store
        .held_messages(CHANNEL, MessageId::new(11), MessageId::new(u64::MAX));
    assert_eq!(held.await.unwrap(), [11, 12].map(MessageId::new));
}

/// Its file is about to be written, with the former words: it does not become ready.
#[tokio::test]
async fn an_edit_takes_a_snapshot_that_has_no_file_yet() {
    let fresh = Fresh::new().await;
    let rows = turn(member(1, 3), 1, "before");
    fresh.store.append(&rows).await.unwrap();
    let saved = snapshot(rows);
    fresh.store.save_snapshot(&saved).await.unwrap();
    fresh.admin("UPDATE clew.snapshots SET ready = false").await;
    let files = SnapshotFiles::new(fresh.folder.path().to_owned());
    assert!(files.remove(&saved.info).unwrap());
    let edited = fresh
        .store
        .edit_message(CHANNEL, MessageId::new(10), "after");
    assert_eq!(edited.await.unwrap(), 1);
    assert_eq!(fresh.texts(member(1, 3)).await, ["after", "re: before"]);
    let rows = fresh.admin("SELECT * FROM clew.snapshots").await;
    assert!(rows.is_empty(), "{rows:?}");
}

#[tokio::test]
async fn a_replaced_turn_keeps_its_place_and_time_never_goes_back() {
    let fresh = Fresh::new().await;
    let scope = direct(1);
    for (at, text) in [(1, "one"), (2, "two"), (1, "one again")] {
        fresh.store.append(&turn(scope, at, text)).await.unwrap();
    }
    let key = ClearKey {
        agent: AgentName::default_agent(),
        guild: None,
        user: None,
    };
    fresh
        .store
        .clear(&key, UnixMillis(NOW.0 + 5))
        .await
        .unwrap();
    assert_eq!(
        fresh.store.append(&turn(scope, 3, "three")).await.unwrap(),
        3
    );
    let rows = fresh.store.window(&all_of(scope)).await.unwrap();
    let seen: Vec<_> = rows
        .iter()
        .filter(|row| row.role == StoredRole::User)
        .map(|row| (row.ordinal, row.content.as_str(), row.timestamp.since(NOW)))
        .collect();
    assert_eq!(seen, [(1, "one again", 0), (2, "two", 0), (3, "three", 6)]);
    assert_eq!(fresh.store.delete_conversation(scope).await.unwrap(), 6);
    assert_eq!(
        fresh.store.append(&turn(scope, 4, "four")).await.unwrap(),
        4
    );
}

#[tokio::test]
async fn bytes_that_postgresql_refuses_are_replaced() {
    let fresh = Fresh::new().await;
    let text = "a\0b 'quoted' \\ $1 ; -- \u{1f9f6}";
    fresh.store.append(&turn(direct(1), 1, text)).await.unwrap();
    let expected = text.replace('\0', "\u{fffd}");
    assert_eq!(fresh.texts(direct(1)).await[0], expected);
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_skipped_or_named() {
    let fresh = Fresh::new().await;
    fresh
        .store
        .append(&turn(direct(1), 1, "text"))
        .await
        .unwrap();
    fresh
        .admin("UPDATE clew.messages SET role = 'x' WHERE role = 'user'")
        .await;
    assert_eq!(fresh.texts(direct(1)).await, ["re: text"]);
    let error = fresh
        .store
        .records(Kind::Messages, None, None, 9)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert!(
        error.to_string().contains("table messages, row 1"),
        "{error}"
    );
}

#[tokio::test]
async fn a_half_saved_snapshot_is_removed_at_the_start() {
    let fresh = Fresh::new().await;
    let saved = snapshot(vec![row(member(1, 3), 1, StoredRole::User, "text")]);
    fresh.store.save_snapshot(&saved).await.unwrap();
    fresh.admin("UPDATE clew.snapshots SET ready = false").await;
    let listed = fresh.store.snapshots(USER, Some(GUILD), None, 9).await;
    assert_eq!(listed.unwrap(), []);
    fresh.store.close().await.unwrap();
    super::open(&fresh.database.url, &fresh.folder)
        .await
        .unwrap();
    let folder = fresh.folder.path().join("default/sessions");
    assert_eq!(folder.read_dir().unwrap().count(), 0);
    let rows = fresh.admin("SELECT * FROM clew.snapshot_messages").await;
    assert!(rows.is_empty(), "{rows:?}");
}
