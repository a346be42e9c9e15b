//! One process uses a store at a time, and one application owns its content.

use clew_context::model::ApplicationId;
use clew_store::{Backend, Error};

use super::super::build::{all_of, at, member, turn};
use super::super::fixture::{Fixture, on_each_store};

on_each_store! {
    a_second_process_is_refused_while_the_first_has_it
    another_application_is_refused
}

async fn a_second_process_is_refused_while_the_first_has_it<F: Fixture>(place: &F) {
    let here = member(1, 2, 3);
    let first = place.open().await;
    first.append(&turn(here, 10, at(0))).await.unwrap();
    let error = place.try_open().await.err().unwrap();
    let text = error.to_string();
    // For files the error also covers one store using a folder twice.
    let is_held = matches!(error, Error::Held { .. });
    assert_eq!(is_held, F::IS_DATABASE, "{error:?}");
    for part in ["in use", "another process", "of its own"] {
        assert!(text.contains(part), "{text}");
    }
    // The first one is not affected.
    first.append(&turn(here, 20, at(10))).await.unwrap();
    first.close().await.unwrap();
    let second = place.open().await;
    let rows = second.window(&all_of(here)).await.unwrap();
    assert_eq!(rows.len(), 4);
}

async fn another_application_is_refused<F: Fixture>(place: &F) {
    let (ours, theirs) = (ApplicationId::new(501), ApplicationId::new(502));
    let store = place.open().await;
    store.claim(ours).await.unwrap();
    store.claim(ours).await.unwrap();
    store.close().await.unwrap();
    // Also after a restart.
    let store = place.open().await;
    let error = store.claim(theirs).await.unwrap_err();
    let text = error.to_string();
    let Error::Owned { owner, asked, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!((owner, asked), (ours, theirs));
    for part in ["application 501", "application 502", "CONTEXT_STORE"] {
        assert!(text.contains(part), "{text}");
    }
    store.claim(ours).await.unwrap();
}
