//! Following up on Discord: edits, which messages are stored, which servers and
//! members.

use std::fs;

use clew_context::model::MessageId;
use clew_store::model::{ClearKey, Fact, Origin};
use clew_store::{Backend, SnapshotFiles};

use crate::store::build::{
    all_of, at, channel, default_agent, direct, direct_channel, guild, member, message,
    server_fact, snapshot, texts, turn, user, user_fact,
};
use crate::store::fixture::{Fixture, needs_database, on_each_store};

on_each_store! {
    an_edit_applies_to_rows_and_snapshots
    an_edit_goes_past_a_snapshot_that_cannot_be_read
    an_edit_of_an_unknown_message_changes_nothing
    held_messages_include_rows_parts_snapshots_and_links
    members_are_all_with_data_from_a_server
}

async fn an_edit_applies_to_rows_and_snapshots<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    let one = turn(here, 10, at(0));
    store.append(&one).await.unwrap();
    store
        .append(&turn(member(1, 5, 3), 20, at(0)))
        .await
        .unwrap();
    let saved = store.save_snapshot(&snapshot(1, one, at(5))).await;
    let saved = needs_database::<F, _>(saved).is_some();
    let edited = store
        .edit_message(channel(2), message(10), "edited 🦀")
        .await;
    assert_eq!(edited.unwrap(), 1);
    let again = store.edit_message(channel(2), message(10), "edited 🦀");
    assert_eq!(again.await.unwrap(), 0, "it has that text already");
    let rows = store.window(&all_of(here)).await.unwrap();
    assert_eq!(texts(&rows), ["edited 🦀", "answer 10"]);
    if saved {
        let id = crate::store::build::snapshot_id(1);
        let back = store.snapshot(user(3), &id).await.unwrap().unwrap();
        assert_eq!(texts(&back.messages), ["edited 🦀", "answer 10"]);
    }
    let others = store.window(&all_of(member(1, 5, 3))).await.unwrap();
    assert_eq!(texts(&others), ["question 20", "answer 20"]);
}

/// As a kill may leave it, or a disk. It may hold the former words, so it goes, as with a purge.
async fn an_edit_goes_past_a_snapshot_that_cannot_be_read<F: Fixture>(place: &F) {
    if !F::IS_DATABASE {
        return;
    }
    let store = place.open().await;
    let here = member(1, 2, 3);
    let one = turn(here, 10, at(0));
    store.append(&one).await.unwrap();
    let files = SnapshotFiles::new(place.ground().agents());
    for (number, damage) in (1..).zip([None, Some("{")]) {
        let saved = [1, 2].map(|id| snapshot(id, one.clone(), at(5)));
        for snapshot in &saved {
            store.save_snapshot(snapshot).await.unwrap();
        }
        let path = files.path(&saved[0].info);
        match damage {
            None => fs::remove_file(&path).unwrap(),
            Some(text) => fs::write(&path, text).unwrap(),
        }
        let words = format!("edited {number}");
        let edited = store.edit_message(channel(2), message(10), &words).await;
        assert_eq!(edited.unwrap(), 1);
        let expected = [&*words, "answer 10"];
        let rows = store.window(&all_of(here)).await.unwrap();
        assert_eq!(texts(&rows), expected);
        let whole = store.snapshot(user(3), &saved[1].info.id).await.unwrap();
        assert_eq!(texts(&whole.unwrap().messages), expected);
        let gone = store.snapshot(user(3), &saved[0].info.id).await;
        assert_eq!(gone.unwrap(), None);
        assert!(!path.exists());
    }
}

async fn an_edit_of_an_unknown_message_changes_nothing<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    store.append(&turn(here, 10, at(0))).await.unwrap();
    // Another message, and another channel.
    for (place, id) in [(2, 99), (5, 10)] {
        let edited = store.edit_message(channel(place), message(id), "x").await;
        assert_eq!(edited.unwrap(), 0);
    }
    let rows = store.window(&all_of(here)).await.unwrap();
    assert_eq!(texts(&rows), ["question 10", "answer 10"]);
}

async fn held_messages_include_rows_parts_snapshots_and_links<F: Fixture>(place: &F) {
    let store = place.open().await;
    store
        .append(&turn(member(1, 2, 3), 10, at(0)))
        .await
        .unwrap();
    store
        .append(&turn(member(1, 2, 4), 20, at(0)))
        .await
        .unwrap();
    store
        .append(&turn(member(1, 5, 3), 30, at(0)))
        .await
        .unwrap();
    store.append(&turn(direct(3), 40, at(0))).await.unwrap();
    let linked = |fact, id| Fact {
        link: Some((channel(2), message(id))),
        ..fact
    };
    let facts = [
        linked(user_fact(1, 3, "x"), 50),
        linked(server_fact(2, 1, "y"), 51),
    ];
    store.put_facts(&facts).await.unwrap();
    let mut all = vec![10, 11, 12, 20, 21, 22, 50, 51];
    let kept = snapshot(1, turn(member(1, 2, 3), 60, at(0)), at(5));
    if needs_database::<F, _>(store.save_snapshot(&kept).await).is_some() {
        all.extend([60, 61, 62]);
    }
    let held = async |place, from, to| {
        let (from, to) = (MessageId::new(from), MessageId::new(to));
        let held = store.held_messages(place, from, to).await.unwrap();
        let mut ids: Vec<u64> = held.into_iter().map(MessageId::get).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(held(channel(2), 1, u64::MAX).await, all);
    assert_eq!(held(channel(2), 11, 21).await, [11, 12, 20, 21]);
    assert_eq!(held(channel(2), 13, 19).await, [0; 0]);
    assert_eq!(held(channel(5), 1, 100).await, [30, 31, 32]);
    assert_eq!(held(direct_channel(user(3)), 1, 100).await, [40, 41, 42]);
    assert_eq!(held(channel(9), 1, 100).await, [0; 0]);
}

async fn members_are_all_with_data_from_a_server<F: Fixture>(place: &F) {
    let store = place.open().await;
    store
        .append(&turn(member(1, 2, 3), 10, at(0)))
        .await
        .unwrap();
    store
        .append(&turn(member(2, 2, 4), 20, at(0)))
        .await
        .unwrap();
    store.append(&turn(direct(5), 30, at(0))).await.unwrap();
    let marker = ClearKey {
        agent: default_agent(),
        guild: Some(guild(1)),
        user: Some(user(6)),
    };
    store.clear(&marker, at(0)).await.unwrap();
    let everybody = ClearKey {
        user: None,
        ..marker
    };
    store.clear(&everybody, at(0)).await.unwrap();
    let learnt = Fact {
        origin: Origin::Guild(guild(1)),
        ..user_fact(1, 7, "x")
    };
    let elsewhere = Fact {
        origin: Origin::Guild(guild(2)),
        ..user_fact(2, 8, "x")
    };
    let said = Fact {
        by: user(9),
        ..server_fact(3, 1, "y")
    };
    store.put_facts(&[learnt, elsewhere, said]).await.unwrap();
    let mut expected = vec![3, 6, 7, 9];
    let kept = snapshot(1, turn(member(1, 2, 10), 60, at(0)), at(5));
    if needs_database::<F, _>(store.save_snapshot(&kept).await).is_some() {
        expected.push(10);
    }
    let members = store.members(guild(1)).await.unwrap();
    let mut ids: Vec<u64> = members.iter().map(|user| user.get()).collect();
    ids.sort_unstable();
    assert_eq!(ids, expected);
    assert_eq!(store.members(guild(9)).await.unwrap(), []);
}
