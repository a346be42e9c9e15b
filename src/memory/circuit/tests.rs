//! A store that hangs, fails or refuses, and what is reported about it.

use std::future::{pending, ready};

use clew_store::Error;
use futures_util::FutureExt;

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
    Err(Error::Corrupt {
        operation: "read",
        place: "here".to_owned(),
        source: None,
    })
}

fn held() -> Error {
    Error::Held {
        place: "here".to_owned(),
        holder: "somebody".to_owned(),
    }
}

/// A file that the system refuses to write or read, with one of its error numbers.
fn file(number: i32) -> Error {
    Error::Io {
        operation: "write",
        path: "guilds/1/7/10.json".into(),
        source: std::io::Error::from_raw_os_error(number),
    }
}

/// EIO, ENFILE, EMFILE, ENOSPC, EROFS and EDQUOT.
const OF_THE_DISK: [i32; 6] = [5, 23, 24, 28, 30, 122];

/// What a full, broken or read-only disk refuses is not the fault of what was asked.
#[tokio::test]
async fn a_disk_that_refuses_is_a_store_that_fails() {
    for number in OF_THE_DISK {
        let s = scene().await;
        let (memory, ids) = (&s.memory, Ids::default());
        let store = &memory.stores.lasting;
        let asked: Asked = Err(file(number));
        assert_eq!(memory.ask(&ids, store, ready(asked)).await, None);
        assert_eq!(memory.store_state().read, CircuitState::Failing, "{number}");
        memory.failed(&ids, StoreOperation::Flush, &file(number));
        assert_eq!(
            memory.store_state().write,
            CircuitState::Failing,
            "{number}"
        );
    }
}

/// Whatever asks: also what no turn waits for counts as the last outcome.
#[tokio::test]
async fn a_write_that_fails_beside_turns_is_told_until_writing_works() {
    let s = scene().await;
    let memory = &s.memory;
    memory.failed(&Ids::default(), StoreOperation::Purge, &gone().unwrap_err());
    assert_eq!(memory.store_state().write, CircuitState::Failing);
    memory.look_after().await;
    assert!(memory.is_well(), "the store writes: it was tried");
}

/// A command reads and writes: whether either works is what the next check finds.
#[tokio::test]
async fn a_command_that_fails_is_told_of_the_store_until_it_works() {
    let s = scene().await;
    s.memory.note_failed_request(&refused().unwrap_err());
    assert!(s.memory.store_state().is_back());
    s.memory.note_failed_request(&gone().unwrap_err());
    let failing = s.memory.store_state();
    assert_eq!(failing.read, CircuitState::Failing);
    assert_eq!(failing.write, CircuitState::Failing);
    s.memory.look_after().await;
    assert!(s.memory.store_state().is_back());
}

/// Only somebody else's content, or a fault of ours, is left.
#[tokio::test]
async fn one_refused_entry_is_no_store_that_fails() {
    let s = scene().await;
    let (memory, ids) = (&s.memory, Ids::default());
    let store = &memory.stores.lasting;
    assert_eq!(memory.ask(&ids, store, ready(refused())).await, None);
    memory.failed(&ids, StoreOperation::Flush, &refused().unwrap_err());
    memory.failed(&ids, StoreOperation::Transcript, &file(28));
    assert!(memory.is_well());
}

/// It fails as it did when the check began, which tells nothing new.
#[tokio::test]
async fn a_check_does_not_close_what_failed_again_while_it_ran() {
    let s = scene().await;
    let (memory, ids) = (&s.memory, Ids::default());
    let store = &memory.stores.lasting;
    assert_eq!(memory.ask(&ids, store, ready(gone())).await, None);
    let before = memory.circuit(store).seen();
    assert_eq!(memory.ask(&ids, store, ready(gone())).await, None);
    memory.found(store, before, Sides::default());
    assert_eq!(memory.store_state().read, CircuitState::Failing);
}

/// The check began while reading failed; meanwhile a turn met a hang.
#[tokio::test]
async fn a_check_does_not_close_what_opened_while_it_ran() {
    let s = scene().await;
    let (memory, ids) = (&s.memory, Ids::default());
    let store = &memory.stores.lasting;
    assert_eq!(memory.ask(&ids, store, ready(gone())).await, None);
    let before = memory.circuit(store).seen();
    let hung = Trouble::Hung;
    memory.trouble(&ids, StoreOperation::Read, store, Side::Read, &hung);
    memory.found(store, before, Sides::default());
    assert!(memory.circuit(store).is_open(Side::Read));
    let now = memory.circuit(store).seen();
    memory.found(store, now, Sides::default());
    assert!(memory.is_well());
}

#[tokio::test]
async fn a_store_that_another_process_holds_is_lost_and_not_well() {
    let s = scene().await;
    let (memory, ids) = (&s.memory, Ids::default());
    let store = &memory.stores.lasting;
    let lost = || memory.lost().now_or_never();
    assert!(lost().is_none());
    let asked: Asked = Err(held());
    assert_eq!(memory.ask(&ids, store, ready(asked)).await, None);
    assert_eq!(memory.store_state().read, CircuitState::Failing);
    let told = lost().expect("it is told at once");
    assert!(told.to_string().contains("somebody"), "{told}");
}

/// A write that nobody waits for finds it out as well.
#[tokio::test]
async fn a_save_finds_out_that_the_store_is_lost() {
    let s = scene().await;
    let memory = &s.memory;
    memory.failed(&Ids::default(), StoreOperation::Flush, &held());
    assert!(memory.lost().now_or_never().is_some());
    assert!(!memory.is_well());
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
    memory.found(lasting, memory.circuit(lasting).seen(), Sides::default());
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
async fn a_shutdown_gives_up_on_a_failing_store_first() {
    let s = scene().await;
    let memory = &s.memory;
    let shutdown = tokio_util::sync::CancellationToken::new();
    shutdown.cancel();
    tokio::time::pause();
    let waits = async || {
        let began = tokio::time::Instant::now();
        memory.gives_up(&shutdown).await;
        began.elapsed().as_secs()
    };
    assert_eq!(waits().await, 20, "it writes what waits");
    let failing = Sides {
        read: CircuitState::Open,
        ..Sides::default()
    };
    memory.found(&memory.stores.lasting, Seen::default(), failing);
    assert_eq!(waits().await, 10);
}
