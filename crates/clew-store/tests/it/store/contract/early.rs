//! Turns that are in the store before they are answered: nobody reads them until they are
//! confirmed, and everything that removes reaches them.

use clew_context::model::{ContentSource, MessageId, TurnId};
use clew_store::model::{Scope, StoredMessage, StoredRole};
use clew_store::{Backend, ExchangeQuery, Exchanges, Kind, Purge, TurnKey};

use crate::store::build::{
    NOW, all_of, at, channel, default_agent, direct, guild, made_from, member, message, numbered,
    texts, turn, user, with_tools,
};
use crate::store::fixture::{Fixture, on_each_store};

on_each_store! {
    early_rows_are_read_by_nothing_until_they_are_confirmed
    confirmed_rows_have_the_ids_of_their_answer
    a_turn_taken_back_leaves_nothing
    every_purge_reaches_early_rows
    a_purge_spares_early_rows_that_it_does_not_cover
    an_edit_and_a_deleted_conversation_reach_early_rows
    lists_know_early_rows
    early_rows_outlive_their_process
    other_words_replace_early_rows_without_a_trace
    early_rows_keep_their_place
    a_turn_confirmed_after_a_clear_counts_as_later
    early_rows_stay_within_their_conversation
}

/// The turn before its answer is posted: nobody knows its messages.
fn unposted(mut turn: Vec<StoredMessage>) -> Vec<StoredMessage> {
    for row in &mut turn {
        if row.role == StoredRole::Assistant {
            row.message = None;
            row.parts = Vec::new();
        }
    }
    turn
}

fn key(scope: Scope, number: u64) -> TurnKey {
    TurnKey {
        scope,
        agent: default_agent(),
        turn: TurnId(number),
    }
}

async fn early(store: &impl Backend) -> Vec<StoredMessage> {
    store.early(100).await.unwrap()
}

async fn window(store: &impl Backend, scope: Scope) -> Vec<StoredMessage> {
    store.window(&all_of(scope)).await.unwrap()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

async fn early_rows_are_read_by_nothing_until_they_are_confirmed<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    let whole = turn(here, 10, at(0));
    store.append_early(&unposted(whole.clone())).await.unwrap();
    let seen = async || {
        let exchanges = ExchangeQuery {
            scope: here,
            agent: default_agent(),
            which: Exchanges::Above(0),
            limit: 100,
        };
        let mut seen = vec![
            window(&store, here).await.len(),
            store.exchanges(&exchanges).await.unwrap().len(),
            store.conversation(here, NOW).await.unwrap().message_count,
        ];
        let (owner, agent) = (user(3), default_agent());
        let own = store.own_messages(owner, &agent, Some(guild(1)), at(-9));
        seen.push(own.await.unwrap().len());
        for of in [None, Some(owner)] {
            let found = store.records(Kind::Messages, of, None, 100).await;
            seen.push(found.unwrap().records.len());
        }
        let mut visited = 0;
        let mut visit = |record: clew_store::Record| {
            visited += usize::from(record.kind() == Kind::Messages);
            Ok(())
        };
        store.each_record(&mut visit).await.unwrap();
        seen.push(visited);
        let stats = store.stats().await.unwrap();
        let messages = stats.iter().find(|stats| stats.kind == Kind::Messages);
        seen.push(usize::try_from(messages.unwrap().entries).unwrap());
        seen
    };
    assert_eq!(seen().await, [0; 8]);
    assert!(!store.conversation(here, NOW).await.unwrap().exists);
    assert_eq!(texts(&early(&store).await), ["question 10", "answer 10"]);
    store.append(&whole).await.unwrap();
    assert_eq!(seen().await, [2; 8]);
    assert_eq!(early(&store).await, []);
}

async fn confirmed_rows_have_the_ids_of_their_answer<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    let mut whole = turn(here, 10, at(0));
    if F::IS_DATABASE {
        let source = ContentSource {
            guild: Some(guild(1)),
            channel: channel(5),
            message: Some(message(77)),
            author: Some(user(8)),
        };
        whole = made_from(with_tools(whole), &[source]);
    }
    store.append_early(&unposted(whole.clone())).await.unwrap();
    assert_eq!(store.append(&whole).await.unwrap(), 1);
    assert_eq!(window(&store, here).await, numbered(whole.clone(), 1));
    let held = store.held_messages(channel(2), message(1), message(99));
    assert_eq!(held.await.unwrap(), [10, 11, 12].map(message));
    // Once more, as after a store that did not say whether it had it.
    assert_eq!(store.append(&whole).await.unwrap(), 1);
    assert_eq!(texts(&window(&store, here).await), texts(&whole));
    // As if the trigger had been edited, and the turn had begun anew.
    let next = turn(here, 20, at(5));
    store.append_early(&unposted(next.clone())).await.unwrap();
    store.append_early(&unposted(next.clone())).await.unwrap();
    assert_eq!(store.append(&next).await.unwrap(), 2);
    let rows = window(&store, here).await;
    assert_eq!(texts(&rows[whole.len()..]), texts(&next));
    assert_eq!(rows.last().unwrap().parts, next[1].parts);
}

async fn a_turn_taken_back_leaves_nothing<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    let before = turn(here, 10, at(0));
    store.append(&before).await.unwrap();
    store
        .append_early(&unposted(turn(here, 20, at(5))))
        .await
        .unwrap();
    assert_eq!(store.take_back(&key(here, 20)).await.unwrap(), 2);
    assert_eq!(store.take_back(&key(here, 20)).await.unwrap(), 0);
    // What is confirmed is not taken back.
    assert_eq!(store.take_back(&key(here, 10)).await.unwrap(), 0);
    assert_eq!(early(&store).await, []);
    assert_eq!(window(&store, here).await, numbered(before, 1));
    store.close().await.unwrap();
    assert!(holds(&place.bytes(), "question 10"));
    assert!(!holds(&place.bytes(), "question 20"));
    assert!(!holds(&place.bytes(), "answer 20"));
}

async fn every_purge_reaches_early_rows<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    let source = ContentSource {
        guild: Some(guild(6)),
        channel: channel(5),
        message: Some(message(77)),
        author: Some(user(8)),
    };
    let messages = |place, id| Purge::Messages {
        channel: channel(place),
        ids: vec![message(id)],
    };
    // How many rows each leaves.
    for (purge, left) in [
        (messages(2, 10), 0),
        (messages(5, 77), 1),
        (
            Purge::Edited {
                channel: channel(5),
                message: message(77),
                at: at(9),
            },
            1,
        ),
        (Purge::Channel(channel(2)), 0),
        (Purge::Guild(guild(1)), 0),
        (Purge::Guild(guild(6)), 1),
        (
            Purge::Member {
                guild: guild(1),
                user: user(3),
            },
            0,
        ),
        (Purge::User(user(3)), 0),
        (Purge::User(user(8)), 1),
        (Purge::Before(at(5)), 0),
    ] {
        let one = made_from(turn(here, 10, at(0)), &[source]);
        store.append_early(&unposted(one)).await.unwrap();
        let gone = store.purge(&purge).await.unwrap();
        assert_eq!(gone.total(), 2 - left, "{purge:?}");
        let rows = early(&store).await;
        assert_eq!(rows.len() as u64, left, "{purge:?}");
        store.take_back(&key(here, 10)).await.unwrap();
    }
    store.close().await.unwrap();
    assert!(!holds(&place.bytes(), "question 10"));
    assert!(!holds(&place.bytes(), "answer 10"));
}

async fn a_purge_spares_early_rows_that_it_does_not_cover<F: Fixture>(place: &F) {
    let store = place.open().await;
    for scope in [member(1, 2, 3), direct(3)] {
        store
            .append_early(&unposted(turn(scope, 10, at(0))))
            .await
            .unwrap();
    }
    for purge in [
        Purge::Messages {
            channel: channel(5),
            ids: vec![message(10)],
        },
        Purge::Channel(channel(5)),
        Purge::Guild(guild(9)),
        Purge::Member {
            guild: guild(1),
            user: user(9),
        },
        Purge::User(user(9)),
        Purge::Before(at(0)),
    ] {
        let gone = store.purge(&purge).await.unwrap();
        assert_eq!(gone.total(), 0, "{purge:?}");
    }
    assert_eq!(early(&store).await.len(), 4);
}

async fn an_edit_and_a_deleted_conversation_reach_early_rows<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    store
        .append_early(&unposted(turn(here, 10, at(0))))
        .await
        .unwrap();
    let edited = store.edit_message(channel(2), message(10), "edited");
    assert_eq!(edited.await.unwrap(), 1);
    assert_eq!(texts(&early(&store).await), ["edited", "answer 10"]);
    let elsewhere = store.delete_conversation(member(1, 2, 4)).await.unwrap();
    assert_eq!((elsewhere, early(&store).await.len()), (0, 2));
    assert_eq!(store.delete_conversation(here).await.unwrap(), 2);
    assert_eq!(early(&store).await, []);
    store.close().await.unwrap();
    for text in ["question 10", "edited", "answer 10"] {
        assert!(!holds(&place.bytes(), text), "{text}");
    }
}

async fn lists_know_early_rows<F: Fixture>(place: &F) {
    let store = place.open().await;
    store
        .append_early(&unposted(turn(member(1, 2, 3), 10, at(0))))
        .await
        .unwrap();
    assert_eq!(store.guilds().await.unwrap(), [guild(1)]);
    assert_eq!(store.members(guild(1)).await.unwrap(), [user(3)]);
    let held = store.held_messages(channel(2), message(1), message(99));
    assert_eq!(held.await.unwrap(), [message(10)]);
    let others = store.held_messages(channel(2), message(11), MessageId::new(u64::MAX));
    assert_eq!(others.await.unwrap(), []);
    assert_eq!(store.recent_direct(9).await.unwrap(), []);
    let direct = unposted(turn(direct(4), 20, at(1)));
    store.append_early(&direct).await.unwrap();
    let channels = store.recent_direct(9).await.unwrap();
    assert_eq!(channels, [direct[0].channel]);
}

async fn early_rows_outlive_their_process<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    store
        .append_early(&unposted(turn(here, 10, at(0))))
        .await
        .unwrap();
    store
        .append_early(&unposted(turn(direct(3), 20, at(0))))
        .await
        .unwrap();
    store.close().await.unwrap();
    let store = place.open().await;
    let rows = early(&store).await;
    let mut found = texts(&rows);
    found.sort_unstable();
    let all = ["answer 10", "answer 20", "question 10", "question 20"];
    assert_eq!(found, all);
    assert_eq!(store.early(1).await.unwrap().len(), 2);
    store.append(&turn(here, 10, at(0))).await.unwrap();
    let rows = early(&store).await;
    assert_eq!(texts(&rows), ["question 20", "answer 20"]);
    assert_eq!(
        window(&store, here).await,
        numbered(turn(here, 10, at(0)), 1)
    );
}

async fn other_words_replace_early_rows_without_a_trace<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    store
        .append_early(&unposted(turn(here, 10, at(0))))
        .await
        .unwrap();
    let mut cut = turn(here, 10, at(0));
    "shorter".clone_into(&mut cut[1].content);
    store.append(&cut).await.unwrap();
    assert_eq!(
        texts(&window(&store, here).await),
        ["question 10", "shorter"]
    );
    assert_eq!(early(&store).await, []);
    store.close().await.unwrap();
    assert!(!holds(&place.bytes(), "answer 10"));
}

async fn early_rows_keep_their_place<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    let [first, edited] = [10, 20].map(|number| turn(here, number, at(0)));
    store.append_early(&unposted(first.clone())).await.unwrap();
    store.append_early(&unposted(edited.clone())).await.unwrap();
    store.close().await.unwrap();
    let store = place.open().await;
    store.append(&turn(here, 30, at(5))).await.unwrap();
    // A second attempt, with other words.
    let mut edited = unposted(edited);
    "edited".clone_into(&mut edited[0].content);
    store.append_early(&edited).await.unwrap();
    store.append(&edited).await.unwrap();
    store.append(&first).await.unwrap();
    let rows = window(&store, here).await;
    let [one, two, three] = [
        ["question 10", "answer 10"],
        ["edited", "answer 20"],
        ["question 30", "answer 30"],
    ];
    assert_eq!(texts(&rows), [one, two, three].concat());
    assert_eq!(rows[..2], numbered(first, 1));
    assert!(rows.is_sorted_by_key(|row| row.ordinal));
    let newest = clew_store::WindowQuery {
        since: at(4),
        ..all_of(here)
    };
    let newest = store.window(&newest).await.unwrap();
    assert!(texts(&newest).contains(&"question 30"));
}

async fn a_turn_confirmed_after_a_clear_counts_as_later<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    let one = turn(here, 10, at(0));
    store.append_early(&unposted(one.clone())).await.unwrap();
    let marker = clew_store::model::ClearKey {
        agent: default_agent(),
        guild: Some(guild(1)),
        user: Some(user(3)),
    };
    store.clear(&marker, at(5)).await.unwrap();
    store.append(&one).await.unwrap();
    let query = clew_store::WindowQuery {
        cleared: Some(clew_store::Asker {
            guild: Some(guild(1)),
            user: user(3),
        }),
        ..all_of(here)
    };
    assert_eq!(store.window(&query).await.unwrap().len(), 2);
}

async fn early_rows_stay_within_their_conversation<F: Fixture>(place: &F) {
    let store = place.open().await;
    let (here, there) = (member(1, 2, 3), member(1, 2, 4));
    store
        .append_early(&unposted(turn(here, 10, at(0))))
        .await
        .unwrap();
    assert_eq!(store.take_back(&key(there, 10)).await.unwrap(), 0);
    store.append(&turn(there, 10, at(0))).await.unwrap();
    let rows = early(&store).await;
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.scope == here));
    assert_eq!(window(&store, here).await, []);
}
