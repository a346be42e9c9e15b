//! After closing and reopening, everything is still there.

use clew_store::Backend;

use super::copying::{everything, sorted};
use crate::store::build::{all_of, at, member, numbered, turn};
use crate::store::fixture::{Fixture, on_each_store};
use crate::store::world::world;

on_each_store! {
    context_survives_restart_via_sqlite
    everything_survives_a_restart
    a_store_dropped_without_closing_keeps_everything
    a_closed_store_refuses
    closing_twice_is_no_error
}

async fn context_survives_restart_via_sqlite<F: Fixture>(place: &F) {
    let here = member(1, 2, 3);
    for number in 1..=3 {
        let store = place.open().await;
        let one = turn(here, number * 10, at(0));
        assert_eq!(store.append(&one).await.unwrap(), number);
        let rows = store.window(&all_of(here)).await.unwrap();
        assert_eq!(rows.len() as u64, number * 2);
        store.close().await.unwrap();
    }
}

async fn everything_survives_a_restart<F: Fixture>(place: &F) {
    let world = world::<F>("");
    let store = place.open().await;
    store.write(&world).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(everything(&store).await, sorted(world));
}

async fn a_store_dropped_without_closing_keeps_everything<F: Fixture>(place: &F) {
    let here = member(1, 2, 3);
    let one = turn(here, 10, at(0));
    let store = place.open().await;
    store.append(&one).await.unwrap();
    drop(store);
    let store = place.open().await;
    let rows = store.window(&all_of(here)).await.unwrap();
    assert_eq!(rows, numbered(one, 1));
}

async fn a_closed_store_refuses<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.close().await.unwrap();
    let here = member(1, 2, 3);
    assert!(store.append(&turn(here, 10, at(0))).await.is_err());
    assert!(store.window(&all_of(here)).await.is_err());
}

async fn closing_twice_is_no_error<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.close().await.unwrap();
    store.close().await.unwrap();
}
