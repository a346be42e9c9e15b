//! What a turn was made from elsewhere: kept with its rows, and what is withdrawn
//! there goes here, all rows of the turn except the question.

use clew_context::model::{ContentSource, MessageId};
use clew_store::model::{Scope, StoredMessage};
use clew_store::{Backend, Kind, Purge, SUMMARY_REMOVED};

use crate::store::build::{
    all_of, at, channel, direct, guild, made_from, member, message, snapshot, snapshot_id, texts,
    turn, user, with_tools,
};
use crate::store::fixture::{Fixture, needs_database, on_each_store};

on_each_store! {
    rows_come_back_with_what_they_were_made_from
    a_deleted_source_leaves_the_question_alone
    a_source_is_found_by_channel_server_member_and_user
    an_edit_takes_what_was_made_from_the_former_words
    an_edit_takes_a_turn_that_began_before_it_whole
    an_edit_takes_restored_rows_by_the_age_of_their_messages
    a_replaced_turn_is_found_by_its_new_sources_only
    sources_are_held_messages_until_they_are_purged
    sources_name_servers_and_members
    an_owner_exports_no_rows_of_others_made_from_their_messages
}

/// A message of user 9 in channel 70 of server 1.
fn source(id: u64) -> ContentSource {
    ContentSource {
        guild: Some(guild(1)),
        channel: channel(70),
        message: Some(message(id)),
        author: Some(user(9)),
    }
}

/// Asked at `when` by user 3, answered from these messages a millisecond later.
fn answered<F: Fixture>(scope: Scope, number: u64, when: i64, from: &[u64]) -> Vec<StoredMessage> {
    let rows = turn(scope, number, at(when));
    // Files keep no tool calls.
    let rows = if F::IS_DATABASE {
        with_tools(rows)
    } else {
        rows
    };
    let sources: Vec<ContentSource> = from.iter().map(|id| source(*id)).collect();
    made_from(rows, &sources)
}

const HERE: fn() -> Scope = || member(1, 2, 3);

/// The rows of [`HERE`] and of a snapshot of it, if there are snapshots.
async fn left<F: Fixture>(store: &F::Store) -> Vec<Vec<StoredMessage>> {
    let mut left = vec![store.window(&all_of(HERE())).await.unwrap()];
    let id = snapshot_id(1);
    if F::IS_DATABASE
        && let Some(snapshot) = store.snapshot(user(3), &id).await.unwrap()
    {
        let is_whole = snapshot.info.summary != SUMMARY_REMOVED;
        assert_eq!(is_whole, snapshot.messages.len() == 4);
        left.push(snapshot.messages);
    }
    left
}

/// Stores this turn, a snapshot of it and a turn made from nothing, purges, and
/// checks whether the question is all that is left of it.
async fn check<F: Fixture>(place: &F, rows: Vec<StoredMessage>, purge: Purge, goes: bool) {
    let store = place.open().await;
    store.append(&rows).await.unwrap();
    store.append(&turn(direct(3), 90, at(0))).await.unwrap();
    let saved = store.save_snapshot(&snapshot(1, rows.clone(), at(5))).await;
    needs_database::<F, _>(saved);
    store.purge(&purge).await.unwrap();
    for rest in left::<F>(&store).await {
        let rest = texts(&rest);
        if goes {
            assert_eq!(rest, ["question 10"], "{purge:?}");
        } else {
            assert_eq!(rest, texts(&rows), "{purge:?}");
        }
    }
    let other = store.window(&all_of(direct(3))).await.unwrap();
    assert_eq!(texts(&other), ["question 90", "answer 90"]);
    store.purge(&Purge::User(user(3))).await.unwrap();
    store.close().await.unwrap();
}

async fn rows_come_back_with_what_they_were_made_from<F: Fixture>(place: &F) {
    let store = place.open().await;
    let mut rows = answered::<F>(HERE(), 10, 0, &[50, 51]);
    let name = ContentSource {
        guild: None,
        message: None,
        author: None,
        ..source(0)
    };
    for row in rows.iter_mut().skip(1) {
        row.sources.push(name);
    }
    store.append(&rows).await.unwrap();
    let found = store.window(&all_of(HERE())).await.unwrap();
    let sources = |rows: &[StoredMessage]| -> Vec<Vec<ContentSource>> {
        rows.iter().map(|row| row.sources.clone()).collect()
    };
    assert_eq!(sources(&found), sources(&rows));
    let own = store
        .own_messages(user(3), &rows[0].agent, Some(guild(1)), at(-1))
        .await;
    assert_eq!(sources(&own.unwrap()), sources(&rows));
}

async fn a_deleted_source_leaves_the_question_alone<F: Fixture>(place: &F) {
    let rows = answered::<F>(HERE(), 10, 0, &[50, 51]);
    let deleted = |place, ids: &[u64]| Purge::Messages {
        channel: channel(place),
        ids: ids.iter().copied().map(MessageId::new).collect(),
    };
    check(place, rows.clone(), deleted(70, &[40, 51]), true).await;
    check(place, rows.clone(), deleted(70, &[49]), false).await;
    check(place, rows, deleted(71, &[50]), false).await;
}

async fn a_source_is_found_by_channel_server_member_and_user<F: Fixture>(place: &F) {
    let rows = answered::<F>(HERE(), 10, 0, &[50]);
    let member = |place, who| Purge::Member {
        guild: guild(place),
        user: user(who),
    };
    for (purge, goes) in [
        (Purge::Channel(channel(70)), true),
        (Purge::Channel(channel(71)), false),
        (member(1, 9), true),
        (member(2, 9), false),
        (member(1, 8), false),
        (Purge::User(user(9)), true),
        (Purge::User(user(8)), false),
        (Purge::Guild(guild(2)), false),
    ] {
        check(place, rows.clone(), purge, goes).await;
    }
    let elsewhere = rows.into_iter().map(|mut row| {
        for source in &mut row.sources {
            source.guild = Some(guild(2));
        }
        row
    });
    check(place, elsewhere.collect(), Purge::Guild(guild(2)), true).await;
}

async fn an_edit_takes_what_was_made_from_the_former_words<F: Fixture>(place: &F) {
    let rows = answered::<F>(HERE(), 10, 100, &[50]);
    let edited = |place, id, when| Purge::Edited {
        channel: channel(place),
        message: message(id),
        at: at(when),
    };
    check(place, rows.clone(), edited(70, 50, 200), true).await;
    check(place, rows.clone(), edited(70, 50, 100), false).await;
    check(place, rows.clone(), edited(70, 51, 200), false).await;
    check(place, rows.clone(), edited(71, 50, 200), false).await;
    // The message's own rows stay.
    check(place, rows, edited(2, 10, 200), false).await;
}

async fn an_edit_takes_a_turn_that_began_before_it_whole<F: Fixture>(place: &F) {
    let mut rows = answered::<F>(HERE(), 10, 100, &[50]);
    for (nth, row) in (0..).zip(&mut rows) {
        row.timestamp = at(100 + nth * 10);
    }
    let edited = Purge::Edited {
        channel: channel(70),
        message: message(50),
        at: at(105),
    };
    check(place, rows, edited, true).await;
}

/// When they were restored tells nothing of their words.
async fn an_edit_takes_restored_rows_by_the_age_of_their_messages<F: Fixture>(place: &F) {
    let mut rows = answered::<F>(HERE(), 10, 5_000, &[50]);
    let first = MessageId::first_at(at(100)).get();
    for (nth, row) in (0..).zip(&mut rows) {
        row.restored_from = Some(snapshot_id(2));
        row.message = row.message.map(|_| message(first + nth));
    }
    let edited = |when| Purge::Edited {
        channel: channel(70),
        message: message(50),
        at: at(when),
    };
    check(place, rows.clone(), edited(101), true).await;
    check(place, rows, edited(100), false).await;
}

async fn a_replaced_turn_is_found_by_its_new_sources_only<F: Fixture>(place: &F) {
    let store = place.open().await;
    for from in [50, 60] {
        let rows = answered::<F>(HERE(), 10, 0, &[from]);
        store.append(&rows).await.unwrap();
    }
    let deleted = |id| Purge::Messages {
        channel: channel(70),
        ids: vec![message(id)],
    };
    assert_eq!(store.purge(&deleted(50)).await.unwrap().total(), 0);
    let gone = store.purge(&deleted(60)).await.unwrap();
    assert_eq!(gone.total(), if F::IS_DATABASE { 3 } else { 1 });
}

async fn sources_are_held_messages_until_they_are_purged<F: Fixture>(place: &F) {
    let store = place.open().await;
    let rows = answered::<F>(HERE(), 10, 0, &[50, 52]);
    store.append(&rows).await.unwrap();
    let saved = made_from(turn(HERE(), 20, at(0)), &[source(54)]);
    let mut all = vec![50, 52];
    if needs_database::<F, _>(store.save_snapshot(&snapshot(1, saved, at(5))).await).is_some() {
        all.push(54);
    }
    let held = async |store: &F::Store, place, from, to| {
        let (from, to) = (MessageId::new(from), MessageId::new(to));
        let held = store.held_messages(channel(place), from, to).await.unwrap();
        held.into_iter().map(MessageId::get).collect::<Vec<u64>>()
    };
    assert_eq!(held(&store, 70, 1, u64::MAX).await, all);
    assert_eq!(held(&store, 70, 51, 53).await, [52]);
    assert_eq!(held(&store, 71, 1, u64::MAX).await, [0; 0]);
    store.close().await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(held(&store, 70, 1, u64::MAX).await, all);
    store.purge(&Purge::Channel(channel(70))).await.unwrap();
    assert_eq!(held(&store, 70, 1, u64::MAX).await, [0; 0]);
}

async fn sources_name_servers_and_members<F: Fixture>(place: &F) {
    let store = place.open().await;
    let rows = made_from(turn(direct(3), 10, at(0)), &[source(50)]);
    store.append(&rows).await.unwrap();
    assert_eq!(store.guilds().await.unwrap(), [guild(1)]);
    assert_eq!(store.members(guild(1)).await.unwrap(), [user(9)]);
    store.purge(&Purge::User(user(9))).await.unwrap();
    assert_eq!(store.guilds().await.unwrap(), []);
    assert_eq!(store.members(guild(1)).await.unwrap(), []);
    let rows = turn(member(2, 3, 4), 20, at(0));
    store.append(&rows).await.unwrap();
    assert_eq!(store.guilds().await.unwrap(), [guild(2)]);
    let (channel, ids) = (channel(3), vec![message(20)]);
    let deleted = Purge::Messages { channel, ids };
    store.purge(&deleted).await.unwrap();
    assert_eq!(store.guilds().await.unwrap(), [], "nothing is left there");
}

async fn an_owner_exports_no_rows_of_others_made_from_their_messages<F: Fixture>(place: &F) {
    let store = place.open().await;
    let rows = made_from(turn(HERE(), 10, at(0)), &[source(50)]);
    store.append(&rows).await.unwrap();
    let of = async |who| {
        let page = store.records(Kind::Messages, Some(user(who)), None, 9);
        page.await.unwrap().records.len()
    };
    assert_eq!((of(3).await, of(9).await), (2, 0));
}
