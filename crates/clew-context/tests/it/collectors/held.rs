//! What the window holds and returns, one behaviour per test; `window` tests that
//! it never serves a gap.

use std::sync::Arc;

use clew_context::engine::window::{Window, WindowLimits};
use clew_context::model::{ChannelId, GuildId, Message, MessageFlags, MessageId};

use crate::support::build::{
    ADA, ALERT, BOB, CLEW, EVE, GENERAL, GUILD, Shape, id, number, said, thread_id,
};
use crate::support::world::window;

fn small(per_channel: usize) -> Window {
    Window::new(WindowLimits {
        per_channel,
        max_bytes: 1_000_000,
    })
}

fn held(window: &Window) -> (Vec<u64>, Vec<u64>) {
    let view = window.view(GENERAL);
    let recent = view.recent.iter().map(|message| number(message.id));
    let linked = view.linked.keys().map(|id| number(*id));
    (recent.collect(), linked.collect())
}

fn fetched(messages: impl IntoIterator<Item = Message>) -> Vec<Arc<Message>> {
    messages.into_iter().map(Arc::new).collect()
}

/// The next turn can start before the gateway reports the bot's own answer.
#[test]
fn our_own_answer_is_held_as_soon_as_it_is_posted() {
    let mut window = window();
    window.created(said(1, ADA, "hi"));
    window.posted(said(2, CLEW, "hello"));
    assert_eq!(held(&window).0, [1, 2]);
    assert_eq!(window.newest(GENERAL), Some(id(2)));
    window.created(said(2, CLEW, "hello"));
    assert_eq!(window.size().0, 2, "reported twice, held once");
    window.posted(said(3, CLEW, "a note").flagged(MessageFlags::EPHEMERAL));
    window.deleted(GENERAL, &[id(4)]);
    window.posted(said(4, CLEW, "gone already"));
    assert_eq!(held(&window).0, [1, 2]);
}

/// The edit arrives before the message it belongs to.
#[test]
fn a_message_that_arrives_late_does_not_undo_an_edit() {
    let mut window = window();
    window.created(said(1, ADA, "hi"));
    window.edited(said(2, CLEW, "").edited_at(3, "the answer"));
    window.created(said(2, CLEW, "thinking"));
    let message = window.message(GENERAL, id(2)).unwrap();
    assert_eq!(&*message.content, "the answer");
}

#[test]
fn recent_and_linked_messages_are_counted() {
    let mut window = window();
    window.created(said(9, ADA, "hi"));
    let view = window.view(GENERAL);
    window.keep(
        GENERAL,
        &view,
        &fetched([said(1, BOB, "a"), said(2, BOB, "b")]),
    );
    window.keep(GENERAL, &view, &fetched([said(3, BOB, "c")]));
    assert_eq!(held(&window), (vec![9], vec![1, 2, 3]));
    assert_eq!(window.size().0, 4);
}

/// Messages that are part of a chain outlive those nobody replied to.
#[test]
fn what_is_replied_to_stays_longer() {
    let mut window = small(6);
    window.created(said(1, ADA, "the question"));
    window.created(said(2, ADA, "chatter"));
    window.created(said(3, BOB, "a reply").replying(1));
    for n in 4..20 {
        window.created(said(n, EVE, "chatter"));
    }
    let (recent, linked) = held(&window);
    assert_eq!(linked, [1, 3]);
    assert_eq!(recent, [16, 17, 18, 19]);
}

/// Half of the room is for linked messages, and the longest unused of them goes first.
#[test]
fn what_turns_use_stays_longest() {
    let mut window = small(6);
    window.created(said(50, ADA, "now"));
    let view = window.view(GENERAL);
    for n in [1, 2, 3] {
        window.keep(GENERAL, &view, &fetched([said(n, BOB, "old")]));
    }
    window.keep(GENERAL, &view, &fetched([said(1, BOB, "old")]));
    window.keep(GENERAL, &view, &fetched([said(4, BOB, "old")]));
    assert_eq!(held(&window).1, [1, 3, 4]);
    window.keep(GENERAL, &view, &fetched([said(5, BOB, "old")]));
    assert_eq!(held(&window).1, [1, 4, 5]);
    // A message that is held and used becomes a linked one when it gets old.
    window.keep(GENERAL, &view, &fetched([said(50, ADA, "now")]));
    for n in 51..60 {
        window.created(said(n, EVE, "chatter"));
    }
    assert!(held(&window).1.contains(&50));
}

/// Of messages delivered late, the first to arrive is the first to go.
#[test]
fn late_messages_are_removed_in_the_order_of_arrival() {
    let mut window = small(6);
    window.created(said(50, ADA, "now"));
    for n in [3, 2, 1, 4] {
        window.created(said(n, BOB, "late"));
    }
    assert_eq!(held(&window).1, [1, 2, 4]);
}

/// `WINDOW_MAX_MB` must have room for thousands of messages.
#[test]
fn a_short_message_takes_little_room() {
    let mut window = window();
    window.created(said(1, ADA, "hi"));
    let (_, before) = window.size();
    window.created(said(2, ADA, "ten letter"));
    let (_, after) = window.size();
    assert!((200..1_000).contains(&(after - before)));
}

/// A fetched message includes what it replies to; each is kept where its edits arrive.
#[test]
fn what_fetched_messages_include_is_held_in_its_own_place() {
    let mut window = window();
    window.created(said(9, ADA, "hi"));
    let view = window.view(GENERAL);
    let reply = said(8, BOB, "reply")
        .replying(3)
        .carrying(said(3, ADA, "question"));
    window.backfill(GENERAL, &view, id(8), &fetched([reply, said(9, ADA, "hi")]));
    assert_eq!(held(&window), (vec![8, 9], vec![3]));
    window.edited(said(3, ADA, "").edited_at(10, "edited"));
    let message = window.message(GENERAL, id(3)).unwrap();
    assert_eq!(&*message.content, "edited");
    window.deleted(GENERAL, &[id(3)]);
    assert!(window.message(GENERAL, id(3)).is_none());
}

/// A page is older than an edit that arrived while it was in flight, unless the
/// page shows a later edit.
#[test]
fn the_later_of_two_edits_is_kept() {
    for (in_page, expected) in [(20, "of the event"), (40, "of the page")] {
        let mut window = window();
        window.created(said(9, ADA, "hi"));
        let view = window.view(GENERAL);
        window.edited(said(1, BOB, "").edited_at(30, "of the event"));
        let page = said(1, BOB, "").edited_at(in_page, "of the page");
        window.keep(GENERAL, &view, &fetched([page]));
        let message = window.message(GENERAL, id(1)).unwrap();
        assert_eq!(&*message.content, expected);
    }
}

/// No page contains ephemeral messages; if one did, they would be for one user only.
#[test]
fn private_messages_are_not_adopted() {
    let mut window = window();
    window.created(said(9, ADA, "hi"));
    let view = window.view(GENERAL);
    let private = said(8, CLEW, "for you").flagged(MessageFlags::EPHEMERAL);
    window.backfill(
        GENERAL,
        &view,
        id(8),
        &fetched([private, said(9, ADA, "hi")]),
    );
    assert_eq!(held(&window).0, [9]);
}

/// What was read before a break is not trusted after it, both in the broken
/// channels and in those of which nothing was held.
#[test]
fn what_was_fetched_before_a_break_is_not_kept() {
    let other = ChannelId::new(501);
    let mut window = window();
    window.created(said(9, ADA, "hi"));
    window.created(said(9, ADA, "hi").into_channel(other));
    for what in ["one", "all of a server"] {
        let view = window.view(GENERAL);
        if what == "one" {
            window.break_channel(GENERAL);
        } else {
            window.break_where(|_, guild| guild == Some(GUILD));
        }
        let after = held(&window);
        assert_eq!(after, (vec![], vec![]), "{what}");
        window.keep(GENERAL, &view, &fetched([said(1, BOB, "old")]));
        window.keep(thread_id(7), &view, &fetched([said(1, BOB, "old")]));
        assert_eq!(held(&window), after, "{what}");
        assert!(window.message(thread_id(7), id(1)).is_none(), "{what}");
        let again = window.view(GENERAL);
        window.keep(GENERAL, &again, &fetched([said(1, BOB, "old")]));
        assert_eq!(held(&window).1, [1], "{what}");
    }
    window.created(said(10, ADA, "hi").into_channel(other));
    window.break_where(|_, guild| guild == Some(GuildId::new(1)));
    assert!(window.message(other, id(10)).is_some(), "another server's");

    let mut unseen = small(4);
    let view = unseen.view(GENERAL);
    unseen.break_where(|_, _| true);
    unseen.keep(GENERAL, &view, &fetched([said(1, BOB, "old")]));
    assert_eq!(unseen.size().0, 0, "nothing was held of any");
}

/// Without the message content intent a message is blank until it comes with a
/// command or a mention.
#[test]
fn a_blank_message_is_completed_by_what_was_carried() {
    let mut window = window();
    for n in 1..=3 {
        window.created(said(n, ADA, if n == 2 { "words" } else { "" }));
    }
    let mut view = window.view(GENERAL);
    view.complete(&said(1, ADA, "one"));
    view.complete(&said(2, ADA, "two"));
    view.complete(&said(9, ADA, "nine"));
    let texts: Vec<&str> = view.recent.iter().map(|one| &*one.content).collect();
    assert_eq!(texts, ["one", "words", ""]);
}

/// A withheld message stays without words.
#[test]
fn a_withheld_message_is_not_completed() {
    let mut window = window();
    window.withhold([ADA.user()].into_iter().collect());
    window.created(said(1, ADA, "private"));
    let mut view = window.view(GENERAL);
    view.complete(&said(1, ADA, "private"));
    let withheld = view.get(id(1)).unwrap();
    assert!(withheld.withheld && withheld.content.is_empty());
}

/// The view of a channel in which nobody wrote still records when it was taken and whose messages are withheld.
#[test]
fn the_view_of_an_unknown_channel_works_like_any_other() {
    let mut window = window();
    window.withhold([EVE.user()].into_iter().collect());
    window.created(said(9, ADA, "hi"));
    window.break_channel(GENERAL);
    let view = window.view(thread_id(7));
    assert!(view.opted_out.contains(EVE.user()));
    let page = fetched([said(1, BOB, "old").into_channel(thread_id(7))]);
    window.keep(thread_id(7), &view, &page);
    assert!(window.message(thread_id(7), id(1)).is_some());
    // So much has happened there since that some of it is forgotten.
    let view = window.view(thread_id(8));
    for n in 0..200 {
        window.deleted(thread_id(8), &[id(n)]);
    }
    let page = fetched([said(1, ALERT, "old").into_channel(thread_id(8))]);
    window.keep(thread_id(8), &view, &page);
    assert_eq!(window.message(thread_id(8), id(1)), None);
    assert_eq!(window.newest(thread_id(8)), None::<MessageId>);
}
