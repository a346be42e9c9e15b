//! What the window holds of users who opted out: withheld messages without words.

use std::sync::Arc;

use clew_context::engine::window::Window;
use clew_context::model::{MessageId, OptOuts, OptedOut};

use super::opt_out::{MARK, bobs, forwarding, here, without_bob};
use crate::support::build::{ADA, BOB, EVE, GENERAL, Shape, id, said, thread_id};
use crate::support::world::window;

fn knows_of_bob(window: &Window) -> bool {
    let text = format!("{window:?}");
    text.contains(MARK) || text.contains("Bob")
}

/// However a message arrives, the window keeps it without its words: it stays complete,
/// and chains stay connected.
#[test]
fn the_window_keeps_withheld_messages() {
    let mut window = window();
    window.withhold(without_bob());
    window.created(said(1, ADA, "talk"));
    let kept = window.created(bobs(2).replying(1));
    assert!(kept.withheld);
    assert_eq!(
        (kept.author.id, kept.replies_to()),
        (BOB.user(), Some(id(1)))
    );
    window.created(said(3, ADA, "talk").replying(2).carrying(bobs(2)));
    // All the other ways: included older messages, edits, pages, single messages.
    window.created(said(4, ADA, "talk").replying(0).carrying(bobs(0)));
    window.edited(bobs(2).edited_at(5, MARK));
    window.edited(here(bobs(2)).edited_at(5, MARK));
    let view = window.view(GENERAL);
    let page = [bobs(0), said(1, ADA, "talk").carrying(bobs(0))].map(Arc::new);
    window.backfill(GENERAL, &view, MessageId::new(0), &page);
    window.keep(thread_id(0), &view, &[Arc::new(here(bobs(7)))]);
    assert!(!knows_of_bob(&window), "{window:?}");
    let view = window.view(GENERAL);
    assert_eq!(view.recent.len(), 5);
    assert_eq!(view.whole_from, Some(MessageId::new(0)));
    assert_eq!(view.opted_out, without_bob());
    let withheld = view.get(id(2)).unwrap();
    assert_eq!(withheld.edited, Some(id(5).created()));
    assert!(window.message(thread_id(0), id(7)).unwrap().withheld);
}

/// When somebody opts out, the messages held lose their words and their weight at once.
#[test]
fn who_opts_out_loses_all_words_at_once() {
    let mut window = window();
    for n in 1..=3 {
        window.created(bobs(n));
        window.created(here(said(10 + n, ADA, "talk").replying(n)).carrying(here(bobs(n))));
    }
    window.edited(bobs(2).edited_at(4, MARK));
    window.edited(bobs(0).edited_at(4, MARK));
    assert!(knows_of_bob(&window));
    let (count, bytes) = window.size();
    window.withhold(without_bob());
    assert!(!knows_of_bob(&window), "{window:?}");
    let now = window.size();
    assert!(
        now.0 == count && now.1 < bytes,
        "{now:?} of {count}, {bytes}"
    );
    let view = window.view(GENERAL);
    assert_eq!(view.whole_from, Some(id(1)), "still whole");
    // A turn that began before the opt-out and ends now brings nothing back.
    let page = [Arc::new(bobs(0))];
    window.backfill(GENERAL, &view, MessageId::new(0), &page);
    window.keep(GENERAL, &view, &page);
    assert!(!knows_of_bob(&window), "{window:?}");
    // The weights are accounted for: nothing is left once everything is removed.
    for channel in [GENERAL, thread_id(0)] {
        window.forget(channel);
    }
    assert_eq!(window.size(), (0, 0));
}

/// Somebody who opts back in is read again: their withheld messages are fetched anew.
#[test]
fn who_opts_back_in_is_read_again() {
    let mut window = window();
    window.withhold(without_bob());
    window.created(bobs(1));
    window.edited(bobs(1).edited_at(2, MARK));
    window.created(here(said(2, ADA, "talk")));
    window.withhold(OptedOut::default());
    assert!(window.view(GENERAL).recent.is_empty());
    assert_eq!(
        window.view(thread_id(0)).recent.len(),
        1,
        "nothing withheld, no hole"
    );
    window.created(said(3, ADA, "talk"));
    let view = window.view(GENERAL);
    let page = [Arc::new(bobs(1).edited_at(2, MARK))];
    window.backfill(GENERAL, &view, MessageId::new(0), &page);
    let back = window.message(GENERAL, id(1)).unwrap();
    assert!(!back.withheld && back.content.contains(MARK));
    for channel in [GENERAL, thread_id(0)] {
        window.forget(channel);
    }
    assert_eq!(window.size(), (0, 0));
}

/// The words may be missing from a linked message or an edit only.
#[test]
fn who_opts_back_in_is_read_again_from_links_and_edits() {
    let view = |window: &Window| window.view(GENERAL);
    let mut linked = window();
    linked.withhold(without_bob());
    linked.created(said(9, ADA, "talk"));
    linked.keep(GENERAL, &view(&linked), &[Arc::new(bobs(1))]);
    assert!(linked.message(GENERAL, id(1)).unwrap().withheld);
    let mut edited = window();
    edited.withhold(without_bob());
    edited.created(said(9, ADA, "talk"));
    edited.edited(bobs(1).edited_at(10, MARK));
    for mut window in [linked, edited] {
        window.withhold(OptedOut::default());
        assert!(window.message(GENERAL, id(1)).is_none());
        assert!(window.message(GENERAL, id(9)).is_none(), "read anew");
        let now = view(&window);
        let page = Arc::new(bobs(1).edited_at(10, MARK));
        window.keep(GENERAL, &now, &[page]);
        let back = window.message(GENERAL, id(1)).unwrap();
        assert!(back.content.contains(MARK));
    }
}

/// A forward that was already held loses its words too.
#[test]
fn what_others_forwarded_of_theirs_goes_at_once() {
    let mut window = window();
    window.created(said(9, ADA, "talk"));
    let before = window.view(GENERAL);
    window.keep(GENERAL, &before, &[Arc::new(bobs(1))]);
    window.created(forwarding(10, 1));
    window.withhold(without_bob());
    let forward = window.message(GENERAL, id(10)).unwrap();
    let extras = forward.extras.as_deref().unwrap();
    assert!(extras.snapshots.iter().all(|one| one.withheld));
}

#[test]
fn opt_outs_read_earlier_do_not_change() {
    let holder = OptOuts::default();
    let before = holder.current();
    holder.set(without_bob());
    assert!(holder.current().contains(BOB.user()));
    assert!(!before.contains(BOB.user()), "a moment's value stays");
}

/// Somebody else's message with nothing of theirs is shared, not copied.
#[test]
fn messages_of_others_are_shared_not_copied() {
    let message = Arc::new(said(1, ADA, "talk").carrying(said(0, EVE, "talk")));
    let same = without_bob().withheld(Arc::clone(&message));
    assert!(Arc::ptr_eq(&message, &same));
    let withheld = without_bob().withheld(Arc::new(bobs(1)));
    assert!(Arc::ptr_eq(
        &withheld,
        &without_bob().withheld(Arc::clone(&withheld))
    ));
}
