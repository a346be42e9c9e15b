//! Many calls at once, and a database that is locked or full.

use std::sync::Arc;
use std::time::Duration;

use clew_context::model::TurnId;
use clew_store::{Backend, Error, SqliteSettings};
use futures_util::future::join_all;

use super::{Place, query, turn, turns};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_of_many_tasks_are_all_stored_and_numbered_once() {
    let place = Place::new();
    let store = Arc::new(place.open());
    let tasks = (0..40u64).map(|task| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut given = Vec::new();
            for at in 0..10 {
                // Four users, so that tasks share conversations.
                let turn = turn(1 + task % 4, 1 + task * 10 + at, "text");
                given.push((task % 4, store.append(&turn).await.unwrap()));
                let window = store.window(&query(1 + task % 4, 1000)).await.unwrap();
                assert!(window.iter().any(|row| row.turn == turn[0].turn));
                assert!(window.is_sorted_by_key(|row| row.ordinal));
            }
            given
        })
    });
    let given = join_all(tasks).await;
    let mut given: Vec<_> = given.into_iter().flat_map(Result::unwrap).collect();
    given.sort_unstable();
    let expected = (0..4).flat_map(|user| (1..=100).map(move |ordinal| (user, ordinal)));
    assert_eq!(given, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn calls_that_share_a_transaction_fail_separately() {
    let place = Place::new();
    let store = place.open();
    // Calls queue up while another program writes.
    let beside = place.beside();
    beside.execute_batch("BEGIN IMMEDIATE").unwrap();
    let appended = (1..=60u64).map(|at| {
        let mut turn = turn(1, at, "text");
        if at % 3 == 0 {
            turn[1].turn = TurnId(999);
        }
        let store = &store;
        async move { store.append(&turn).await }
    });
    let (results, ()) = tokio::join!(join_all(appended), async {
        tokio::task::yield_now().await;
        beside.execute_batch("ROLLBACK").unwrap();
    });
    for (at, result) in (1u64..).zip(&results) {
        assert_eq!(result.is_err(), at % 3 == 0, "turn {at}: {result:?}");
    }
    let expected: Vec<u64> = (1..=60).filter(|at| at % 3 != 0).collect();
    assert_eq!(turns(&store, 1).await, expected);
    let ordinals = results.iter().flatten().copied();
    assert!(ordinals.eq(1..=40), "a failed turn takes no number");
}

#[tokio::test]
async fn a_locked_database_is_reported_and_works_again() {
    let place = Place::new();
    let settings = SqliteSettings {
        busy_timeout: Duration::from_millis(1),
        ..SqliteSettings::default()
    };
    let store = place.open_with(&settings).unwrap();
    store.append(&turn(1, 1, "text")).await.unwrap();
    let beside = place.beside();
    beside.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (one, other) = (turn(1, 2, "text"), turn(1, 3, "text"));
    let (one, other) = tokio::join!(store.append(&one), store.append(&other));
    for error in [one.unwrap_err(), other.unwrap_err()] {
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        assert!(error.to_string().contains("append a turn"), "{error}");
    }
    assert_eq!(turns(&store, 1).await, [1], "what is there can be read");
    beside.execute_batch("ROLLBACK").unwrap();
    store.append(&turn(1, 4, "text")).await.unwrap();
    assert_eq!(turns(&store, 1).await, [1, 4]);
}

#[tokio::test]
async fn a_full_database_keeps_what_it_confirmed() {
    let place = Place::new();
    let settings = SqliteSettings {
        max_pages: Some(100),
        ..SqliteSettings::default()
    };
    let store = place.open_with(&settings).unwrap();
    let text = "a".repeat(1500);
    let turns_at_once = (1..=400u64).map(|at| turn(1, at, &text));
    let results = join_all(turns_at_once.map(|turn| {
        let store = &store;
        async move { (turn[0].turn.0, store.append(&turn).await) }
    }));
    let results = results.await;
    let confirmed: Vec<u64> = results
        .iter()
        .filter(|(_, result)| result.is_ok())
        .map(|(at, _)| *at)
        .collect();
    assert!((10..300).contains(&confirmed.len()), "{}", confirmed.len());
    assert_eq!(turns(&store, 1).await, confirmed);
    let full = results.into_iter().find_map(|(_, result)| result.err());
    assert!(matches!(full, Some(Error::Unavailable { .. })), "{full:?}");

    store.close().await.unwrap();
    let store = place.open();
    assert_eq!(turns(&store, 1).await, confirmed);
    store
        .append(&turn(1, 999, "there is room again"))
        .await
        .unwrap();
}
