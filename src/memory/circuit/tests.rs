//! A store that hangs, fails or refuses, and what is reported about it.

use std::future::{pending, ready};

use clew_store::Error;

use super::*;
use crate::memory::tests::scene;

type Asked = Result<u32, Error>;

fn gone() -> Asked {
    Err(Error::Unavailable {
        operation: "read",
        source: "it is gone".into(),
    })
}

fn refused() -> Asked {
    Err(Error::Held {
        place: "here".to_owned(),
        holder: "somebody".to_owned(),
    })
}

/// Not until it is found to be back; the other store is still asked.
#[tokio::test]
async fn a_store_that_hung_is_not_asked_again() {
    let s = scene().await;
    let (memory, ids) = (&s.memory, Ids::default());
    let (lasting, other) = (&memory.stores.lasting, &memory.stores.conversations);
    // From here on no real store is asked.
    tokio::time::pause();
    assert_eq!(memory.ask(&ids, lasting, pending::<Asked>()).await, None);
    let fine = || ready::<Asked>(Ok(1));
    assert_eq!(memory.ask(&ids, lasting, fine()).await, None);
    assert_eq!(memory.ask(&ids, other, fine()).await, Some(1));
    assert!(memory.circuit(lasting).is_open(Side::Write));
    let told = s.told("circuit");
    assert_eq!(s.told("store_failed").len(), 1);
    memory.trouble(
        &ids,
        StoreOperation::Read,
        lasting,
        Side::Read,
        &Trouble::Hung,
    );
    assert_eq!(s.told("store_failed").len(), 1, "told once");
    assert_eq!(s.told("circuit"), told);
    memory.found(lasting, Sides::default());
    assert_eq!(memory.ask(&ids, lasting, fine()).await, Some(1));
    assert!(memory.is_well());
}

/// It is still asked, since a failure that comes at once costs no time.
#[tokio::test]
async fn a_store_that_fails_is_told_of_once_and_its_refusals_each_time() {
    let s = scene().await;
    let (memory, ids) = (&s.memory, Ids::default());
    let store = &memory.stores.lasting;
    for _ in 0..2 {
        assert_eq!(memory.ask(&ids, store, ready(gone())).await, None);
        let failed = s.told("store_failed");
        assert_eq!((failed.len(), &failed[0]["transient"]), (1, &true.into()));
    }
    let now = memory.circuit(store).now();
    let read = CircuitState::Failing;
    assert_eq!(
        now,
        Sides {
            read,
            ..Sides::default()
        }
    );
    assert!(!memory.is_well());
    for count in 2..4 {
        assert_eq!(memory.ask(&ids, store, ready(refused())).await, None);
        let failed = s.told("store_failed");
        assert_eq!(failed.len(), count);
        assert_eq!(failed[count - 1]["transient"], false);
        assert_eq!(memory.circuit(store).now(), now, "it answers");
    }
    assert_eq!(memory.ask(&ids, store, ready(Ok(1))).await, Some(1));
}

#[tokio::test]
async fn a_shutdown_gives_up_on_a_store_that_fails_alone() {
    let s = scene().await;
    let memory = &s.memory;
    let shutdown = tokio_util::sync::CancellationToken::new();
    shutdown.cancel();
    tokio::time::pause();
    let minute = std::time::Duration::from_mins(1);
    let given_up = || tokio::time::timeout(minute, memory.gives_up(&shutdown));
    assert!(given_up().await.is_err(), "it writes what waits");
    let failing = Sides {
        read: CircuitState::Open,
        ..Sides::default()
    };
    memory.found(&memory.stores.lasting, failing);
    assert!(given_up().await.is_ok());
}
