//! What lies before a gap, whatever the clock says.

use super::*;

/// A store gives a turn the time of those before it, which may have been stored after the gap.
#[tokio::test]
async fn what_was_heard_before_a_gap_and_stored_after_it_is_asked_for() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let waits = s.exchange(20, "ginger");
    s.memory.missed(Missed::Everything);
    s.ask(&here, 10, "saffron").await;
    let ids = Ids::default();
    s.memory.record(&ids, &here, &waits, None).await;
    let shown = async || {
        let rows = s.rows(&here).await.into_iter();
        rows.map(|row| row.content).collect::<Vec<_>>()
    };
    assert_eq!(shown().await, ["saffron", "so: saffron"]);
    let due = s.memory.doubts.due().now_or_never().unwrap().hand_over();
    assert_eq!(due, [20, 21].map(|id| (HERE, MessageId::new(id))));
    s.memory
        .doubts
        .settle(HERE, due.iter().map(|(_, id)| *id), s.memory.now());
    assert_eq!(shown().await.len(), 4);
}

/// Nor do all that happens meanwhile have the same time.
#[tokio::test]
async fn a_gap_while_the_clock_lies_behind_is_after_what_was_stored() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.memory.now();
    s.pass(-60_000);
    s.ask(&here, 10, "saffron").await;
    s.memory.missed(Missed::Everything);
    s.ask(&here, 20, "ginger").await;
    let rows = s.rows(&here).await;
    let traces = rows.iter().flat_map(traces);
    let asking = s.memory.doubts.take_unconfirmed(traces, 9);
    let asked: Vec<u64> = asking.hand_over().iter().map(|(_, id)| id.get()).collect();
    assert_eq!(asked, [10, 11]);
}
