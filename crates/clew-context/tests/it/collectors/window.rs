//! The window never serves a gap: checked against a model of the truth, for any
//! order of events, fetches and losses.

use std::collections::BTreeMap;
use std::sync::Arc;

use clew_context::engine::window::{View, Window, WindowLimits};
use clew_context::model::{ChannelId, Message, MessageFlags, MessageId, Referenced};
use proptest::prelude::*;

use crate::support::build::{ADA, BOB, GENERAL, Shape, id, said, thread_id};

const CHANNELS: [ChannelId; 3] = [GENERAL, ChannelId::new(501), ChannelId::new(502)];

fn small(per_channel: usize, max_bytes: usize) -> Window {
    Window::new(WindowLimits {
        per_channel,
        max_bytes,
    })
}

fn ids(view: &View) -> Vec<u64> {
    let recent = view.recent.iter();
    recent
        .map(|message| crate::support::build::number(message.id))
        .collect()
}

#[test]
fn private_messages_are_not_kept() {
    let mut window = small(10, 1_000_000);
    for flags in [MessageFlags::EPHEMERAL, MessageFlags::LOADING] {
        window.created(said(1, ADA, "only you").flagged(flags));
    }
    assert_eq!(window.size(), (0, 0));
}

#[test]
fn a_late_message_is_not_part_of_what_is_complete() {
    let mut window = small(4, 1_000_000);
    for n in 1..=6 {
        window.created(said(n, ADA, "x"));
    }
    window.created(said(2, ADA, "again"));
    let view = window.view(GENERAL);
    assert_eq!(ids(&view), [4, 5, 6], "it takes a place, not theirs");
    assert!(
        view.whole_from
            .is_some_and(|mark| mark <= id(4) && mark > id(2))
    );
}

/// A page is joined to what is held only if the two meet.
#[test]
fn a_page_that_arrives_too_late_is_not_adopted() {
    let mut window = small(4, 1_000_000);
    window.created(said(10, ADA, "x"));
    let view = window.view(GENERAL);
    let page: Vec<Arc<Message>> = (5..=10).map(|n| Arc::new(said(n, ADA, "x"))).collect();
    for n in 11..=16 {
        window.created(said(n, ADA, "x"));
    }
    window.backfill(GENERAL, &view, id(5), &page);
    let now = window.view(GENERAL);
    assert_eq!(ids(&now), [13, 14, 15, 16]);
    assert!(
        now.whole_from.is_some_and(|mark| mark > id(12)),
        "{:?}",
        now.whole_from
    );
}

#[test]
fn an_evicted_channel_adopts_no_old_page() {
    let mut window = small(10, 2_000);
    window.created(said(10, ADA, "x"));
    let view = window.view(GENERAL);
    window.created(said(11, ADA, "x"));
    for n in 0..40 {
        window.created(said(n, ADA, "x").into_channel(CHANNELS[1]));
    }
    assert!(window.view(GENERAL).recent.is_empty());
    window.created(said(12, ADA, "x"));
    let page = [Arc::new(said(10, ADA, "x"))];
    window.backfill(GENERAL, &view, MessageId::new(0), &page);
    assert_eq!(ids(&window.view(GENERAL)), [12]);
}

/// A bulk deletion names up to 100 messages; a page brings none of them back.
#[test]
fn deleted_messages_do_not_come_back() {
    let mut window = small(300, 10_000_000);
    window.created(said(200, ADA, "x"));
    let view = window.view(GENERAL);
    let gone: Vec<MessageId> = (0..100).map(id).collect();
    window.deleted(GENERAL, &gone);
    for n in 0..300 {
        // The bot's own answer, which is streamed by edits.
        window.edited(said(200, ADA, "").edited_at(201 + n, "longer"));
    }
    let page: Vec<Arc<Message>> = (0..=200).map(|n| Arc::new(said(n, ADA, "x"))).collect();
    window.backfill(GENERAL, &view, MessageId::new(0), &page);
    window.keep(GENERAL, &view, &page);
    let now = window.view(GENERAL);
    assert_eq!(now.recent.first().map(|message| message.id), Some(id(100)));
    assert!(gone.iter().all(|id| now.get(*id).is_none()));
}

/// If deletions were forgotten, the page is not adopted.
#[test]
fn a_page_is_not_adopted_after_too_many_deletions() {
    let mut window = small(300, 10_000_000);
    window.created(said(200, ADA, "x"));
    let view = window.view(GENERAL);
    let gone: Vec<MessageId> = (0..180).map(id).collect();
    for bulk in gone.chunks(90) {
        window.deleted(GENERAL, bulk);
    }
    let page: Vec<Arc<Message>> = (0..=200).map(|n| Arc::new(said(n, ADA, "x"))).collect();
    window.backfill(GENERAL, &view, MessageId::new(0), &page);
    window.keep(GENERAL, &view, &page);
    assert_eq!(ids(&window.view(GENERAL)), [200]);
}

/// Edits and deletions in channels of which nothing is held take room too.
#[test]
fn what_is_remembered_of_changes_is_bounded() {
    let mut window = small(10, 100_000);
    for channel in 1..2_000 {
        let edited = said(1, ADA, &"long ".repeat(100)).into_channel(ChannelId::new(channel));
        window.edited(edited);
    }
    assert!(window.size().1 <= 100_000, "{:?}", window.size());
}

/// A starter is kept in the parent's window, where its edits and deletion arrive.
#[test]
fn what_a_message_includes_is_held_in_its_own_channel() {
    let mut window = small(10, 1_000_000);
    let notice = said(1, BOB, "")
        .into_channel(thread_id(0))
        .of_type(21)
        .shaped(|notice| {
            notice.reference = Some(clew_context::model::Reference {
                kind: clew_context::model::ReferenceKind::Default,
                channel: Some(GENERAL),
                message: Some(id(0)),
            });
        })
        .carrying(said(0, ADA, "start"));
    window.created(notice);
    let of = |window: &Window| {
        window
            .message(GENERAL, id(0))
            .map(|held| held.content.to_string())
    };
    assert_eq!(of(&window).as_deref(), Some("start"));
    window.edited(said(0, ADA, "").edited_at(2, "edited"));
    assert_eq!(of(&window).as_deref(), Some("edited"));
    window.deleted(GENERAL, &[id(0)]);
    assert_eq!(of(&window), None);
    let held = window.message(thread_id(0), id(1)).unwrap();
    assert_eq!(held.referenced, Referenced::Absent, "no second copy");
}

#[derive(Debug, Clone)]
enum Step {
    Create {
        channel: usize,
        reply: Option<u8>,
        late: bool,
    },
    Edit {
        channel: usize,
        which: u8,
    },
    Delete {
        channel: usize,
        which: u8,
    },
    Bulk {
        channel: usize,
    },
    /// The gateway misses events, and then reports the loss.
    Miss {
        channel: usize,
        messages: u8,
    },
    View {
        channel: usize,
    },
    /// A page of Discord's present state, requested when the view was taken.
    Fetch {
        from: u8,
    },
    /// The fetched page arrives.
    Adopt,
    Keep,
    Forget {
        channel: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let channel = 0..CHANNELS.len();
    prop_oneof![
        8 => (channel.clone(), prop::option::of(any::<u8>()), prop::bool::weighted(0.05))
            .prop_map(|(channel, reply, late)| Step::Create { channel, reply, late }),
        2 => (channel.clone(), any::<u8>()).prop_map(|(channel, which)| Step::Edit { channel, which }),
        2 => (channel.clone(), any::<u8>()).prop_map(|(channel, which)| Step::Delete { channel, which }),
        1 => channel.clone().prop_map(|channel| Step::Bulk { channel }),
        1 => (channel.clone(), 0..4_u8).prop_map(|(channel, messages)| Step::Miss { channel, messages }),
        3 => channel.clone().prop_map(|channel| Step::View { channel }),
        3 => (0..30_u8).prop_map(|from| Step::Fetch { from }),
        3 => Just(Step::Adopt),
        2 => Just(Step::Keep),
        1 => channel.prop_map(|channel| Step::Forget { channel }),
    ]
}

/// Discord's own state, and one fetch in flight.
#[derive(Default)]
struct Truth {
    now: u64,
    channels: [BTreeMap<MessageId, Message>; 3],
    view: Option<(usize, View)>,
    page: Option<(usize, View, MessageId, Vec<Arc<Message>>)>,
}

impl Truth {
    fn pick(&self, channel: usize, which: u8) -> Option<Message> {
        let all = &self.channels[channel];
        let at = usize::from(which) % all.len().max(1);
        all.values().nth(at).cloned()
    }

    fn apply(&mut self, window: &mut Window, step: &Step) {
        match *step {
            Step::Create {
                channel,
                reply,
                late,
            } => {
                self.now += 1;
                let mut message = said(self.now, ADA, "text").into_channel(CHANNELS[channel]);
                if let Some(parent) = reply.and_then(|which| self.pick(channel, which)) {
                    message = message
                        .replying(crate::support::build::number(parent.id))
                        .carrying(parent);
                }
                let mut held = message.clone();
                held.referenced = Referenced::Absent;
                self.channels[channel].insert(message.id, held);
                window.created(message);
                if let Some(old) = self.pick(channel, 0).filter(|_| late) {
                    window.created(old);
                }
            }
            Step::Edit { channel, which } => {
                self.now += 1;
                if let Some(message) = self.pick(channel, which) {
                    let edited = message.edited_at(self.now, &format!("edited at {}", self.now));
                    self.channels[channel].insert(edited.id, edited.clone());
                    window.edited(edited);
                }
            }
            Step::Delete { channel, which } => {
                if let Some(message) = self.pick(channel, which) {
                    self.channels[channel].remove(&message.id);
                    window.deleted(CHANNELS[channel], &[message.id]);
                }
            }
            Step::Bulk { channel } => {
                let all: Vec<MessageId> = self.channels[channel].keys().copied().collect();
                let half = &all[..all.len() / 2];
                self.channels[channel].retain(|id, _| !half.contains(id));
                window.deleted(CHANNELS[channel], half);
            }
            Step::Miss { channel, messages } => {
                for _ in 0..messages {
                    self.now += 1;
                    let message = said(self.now, BOB, "missed").into_channel(CHANNELS[channel]);
                    self.channels[channel].insert(message.id, message);
                }
                window.break_channel(CHANNELS[channel]);
            }
            Step::View { channel } => {
                self.view = Some((channel, window.view(CHANNELS[channel])));
            }
            Step::Fetch { from } => self.fetch(from),
            Step::Adopt => {
                if let Some((channel, view, from, page)) = &self.page {
                    window.backfill(CHANNELS[*channel], view, *from, page);
                }
            }
            Step::Keep => {
                if let Some((channel, view, _, page)) = &self.page {
                    window.keep(CHANNELS[*channel], view, &page[..page.len().min(2)]);
                }
            }
            Step::Forget { channel } => window.forget(CHANNELS[channel]),
        }
    }

    /// All messages from `from` up to the newest one the view saw.
    fn fetch(&mut self, from: u8) {
        let Some((channel, view)) = self.view.clone() else {
            return;
        };
        let Some(newest) = view.newest else { return };
        let upto = self.channels[channel].range(..=newest);
        let page: Vec<Arc<Message>> = upto
            .rev()
            .take(usize::from(from))
            .map(|(_, message)| Arc::new(message.clone()))
            .collect();
        let page: Vec<Arc<Message>> = page.into_iter().rev().collect();
        let whole = page.len() < usize::from(from);
        let lowest = page.first().map(|message| message.id).filter(|_| !whole);
        let Some(from) = lowest.or(whole.then_some(MessageId::new(0))) else {
            return;
        };
        self.page = Some((channel, view, from, page));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_view_has_no_gap_and_nothing_stale(
        steps in prop::collection::vec(step(), 1..80),
        per_channel in 2..12_usize,
        max_bytes in prop_oneof![Just(1_500_usize), Just(4_000), Just(1_000_000)],
    ) {
        let mut window = small(per_channel, max_bytes);
        let mut truth = Truth::default();
        for step in &steps {
            truth.apply(&mut window, step);
            for (channel, all) in CHANNELS.iter().zip(&truth.channels) {
                let view = window.view(*channel);
                if let Some(mark) = view.whole_from {
                    let whole: Vec<&Message> = all.range(mark..).map(|(_, message)| message).collect();
                    let held: Vec<&Message> = view.recent.iter().map(|message| &**message).collect();
                    prop_assert_eq!(held, whole, "after {:?}", step);
                } else {
                    prop_assert!(view.recent.is_empty());
                }
                // Linked messages are single ones, but never stale or deleted.
                for (id, linked) in &view.linked {
                    prop_assert_eq!(Some(&**linked), all.get(id), "linked, after {:?}", step);
                }
                prop_assert!(view.recent.len() + view.linked.len() <= per_channel.max(2) + 1);
            }
        }
    }
}
