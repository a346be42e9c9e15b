//! How the window counts its size, and what it drops.

use proptest::prelude::*;

use super::channel::{Change, weight};
use super::*;
use crate::model::{
    Author, MessageFlags, MessageKind, Reference, ReferenceKind, UnixMillis, UserId,
};

const CHANNELS: [ChannelId; 2] = [ChannelId::new(1), ChannelId::new(2)];

/// Message `n` by some user; if `n` is even, it replies to the previous message.
fn said(channel: ChannelId, n: u64, length: usize) -> Message {
    let parent = n.is_multiple_of(2).then(|| MessageId::new(n - 1));
    Message {
        id: MessageId::new(n),
        channel,
        guild: None,
        kind: parent.map_or(MessageKind::Default, |_| MessageKind::Reply),
        author: Author {
            id: UserId::new(n % 3),
            name: "Ada".into(),
            bot: false,
            webhook: false,
            application: None,
        },
        timestamp: UnixMillis(0),
        edited: None,
        flags: MessageFlags(0),
        content: "x".repeat(length).into(),
        reference: parent.map(|message| Reference {
            kind: ReferenceKind::Default,
            channel: None,
            message: Some(message),
        }),
        referenced: Referenced::Absent,
        mentions: Box::default(),
        mention_roles: Box::default(),
        extras: None,
        withheld: false,
    }
}

impl ChannelWindow {
    fn counted(&self) -> usize {
        let recent = self.recent.values().map(|held| weight(&held.message));
        let linked = self.linked.values().map(|linked| weight(&linked.message));
        let changes = self.changes.iter().map(Change::weight);
        let held = recent.chain(linked).chain(changes);
        CHANNEL_OVERHEAD + held.sum::<usize>() + self.pin_bytes()
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Create,
    Carry,
    Late,
    Post,
    Edit,
    Delete,
    Fetch,
    Keep,
    Pins,
    Repinned,
    Break,
    Forget,
    OptOut,
    Return,
}

fn step() -> impl Strategy<Value = Step> {
    use Step::{
        Break, Carry, Create, Delete, Edit, Fetch, Forget, Keep, Late, OptOut, Pins, Post,
        Repinned, Return,
    };
    let often = [Create, Carry, Late, Post, Edit, Delete, Fetch, Keep, Pins];
    let seldom = [Repinned, Break, Forget, OptOut, Return];
    prop_oneof![6 => prop::sample::select(often.to_vec()), 1 => prop::sample::select(seldom.to_vec())]
}

fn apply(window: &mut Window, step: Step, channel: ChannelId, n: u64, length: usize) {
    let message = said(channel, n, length);
    let fetched = || vec![Arc::new(said(channel, n, length))];
    match step {
        Step::Create => drop(window.created(said(channel, n + 40, length))),
        Step::Carry => {
            let mut carrying = said(channel, 2 * n + 40, length);
            carrying.referenced = Referenced::Known(Box::new(said(channel, 2 * n + 39, 2)));
            window.created(carrying);
        }
        Step::Late => drop(window.created(message)),
        Step::Post => window.posted(message),
        Step::Edit => window.edited(said(channel, n + 40, length)),
        Step::Delete => window.deleted(channel, &[message.id, MessageId::new(n + 41)]),
        Step::Fetch => {
            let view = window.view(channel);
            window.backfill(channel, &view, message.id, &fetched());
        }
        Step::Keep => {
            let view = window.view(channel);
            window.keep(channel, &view, &fetched());
        }
        Step::Pins => {
            let view = window.view(channel);
            let pins = [message, said(channel, n + 40, length)].map(Arc::new);
            window.keep_pins(channel, Some(GuildId::new(1)), &view, &pins);
        }
        Step::Repinned => window.pins_changed(channel),
        Step::Break => window.break_channel(channel),
        Step::Forget => window.forget(channel),
        Step::OptOut => window.withhold(OptedOut::from_iter([UserId::new(n % 3)])),
        Step::Return => window.withhold(OptedOut::default()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// `WINDOW_PER_CHANNEL` holds; `WINDOW_MAX_MB` only if nothing is counted twice or not at all.
    #[test]
    fn bytes_are_those_of_what_is_held(
        steps in prop::collection::vec((step(), 0..2_usize, 1..40_u64, 0..900_usize), 1..150),
        per_channel in 0..20_usize,
        max_bytes in prop_oneof![Just(6_000_usize), Just(1_000_000)],
    ) {
        let mut window = Window::new(WindowLimits { per_channel, max_bytes });
        for (step, channel, n, length) in steps {
            apply(&mut window, step, CHANNELS[channel], n, length);
            for one in window.channels.values() {
                prop_assert_eq!(one.bytes, one.counted(), "{:?}", step);
                let held = one.recent.len() + one.linked.len();
                prop_assert!(held <= per_channel, "{held} after {step:?}");
            }
            let all: usize = window.channels.values().map(|one| one.bytes).sum();
            prop_assert_eq!(window.bytes, all, "{:?}", step);
            prop_assert!(all <= max_bytes || window.channels.len() == 1);
            let pins: usize = window.channels.values().map(ChannelWindow::pin_bytes).sum();
            let is_bounded = !matches!(step, Step::Pins) || pins <= max_bytes / 8;
            prop_assert!(is_bounded, "{pins}");
        }
    }
}

/// Further changes push out the oldest, which then no longer count.
#[test]
fn what_is_remembered_of_changes_is_counted() {
    let mut window = Window::new(WindowLimits::default());
    let channel = CHANNELS[0];
    for n in 1..=300 {
        window.edited(said(channel, n, 10));
        window.deleted(channel, &[MessageId::new(n)]);
    }
    let one = &window.channels[&channel];
    assert_eq!(one.bytes, one.counted());
    assert_eq!(one.changes.len(), 128);
}

/// What was on its way while the pins changed is not kept, nor what a deletion took out, and an
/// edit is followed.
#[test]
fn pins_are_those_after_the_last_change() {
    let mut window = Window::new(WindowLimits::default());
    let (here, guild) = (CHANNELS[0], Some(GuildId::new(1)));
    let pins = [3, 1].map(|n| Arc::new(said(here, n, 10)));
    let kept = |window: &Window| {
        let pins = window.view(here).pins?;
        Some(pins.iter().map(|one| one.id.get()).collect::<Vec<_>>())
    };
    let before = window.view(here);
    window.pins_changed(here);
    window.keep_pins(here, guild, &before, &pins);
    assert_eq!(kept(&window), None, "nothing was held of the channel");
    let view = window.view(here);
    window.keep_pins(here, guild, &view, &pins);
    assert_eq!(kept(&window), Some(vec![3, 1]));
    window.edited(said(here, 3, 25));
    assert_eq!(window.view(here).pins.unwrap()[0].content.len(), 25);
    assert_eq!(
        window
            .message(here, MessageId::new(3))
            .unwrap()
            .content
            .len(),
        25
    );
    let before = window.view(here);
    window.deleted(here, &[MessageId::new(3)]);
    assert_eq!(kept(&window), Some(vec![1]));
    window.keep_pins(here, guild, &before, &pins);
    assert_eq!(
        kept(&window),
        Some(vec![1]),
        "the page had not seen the deletion"
    );
    window.pins_changed(here);
    assert_eq!(kept(&window), None);
    window.keep_pins(here, guild, &before, &pins);
    assert_eq!(kept(&window), None, "nor the change");
    let view = window.view(here);
    window.keep_pins(here, guild, &view, &pins);
    window.break_channel(here);
    assert_eq!(kept(&window), None);
}

/// Where more may be pinned than are asked for, what comes after one that is gone is not known.
#[test]
fn another_takes_the_place_of_a_pin_that_is_gone() {
    let mut window = Window::new(WindowLimits::default());
    let (here, guild) = (CHANNELS[0], Some(GuildId::new(1)));
    let pins = [9, 8, 7, 6, 5].map(|n| Arc::new(said(here, n, 10)));
    let kept = |window: &Window| window.view(here).pins.map(|pins| pins.len());
    let before = window.view(here);
    window.keep_pins(here, guild, &before, &pins);
    assert_eq!(kept(&window), Some(5));
    window.deleted(here, &[MessageId::new(7)]);
    assert_eq!(kept(&window), None);
    window.keep_pins(here, guild, &before, &pins);
    assert_eq!(kept(&window), None, "the page had not seen the deletion");
    let view = window.view(here);
    window.keep_pins(here, guild, &view, &pins[..2]);
    window.deleted(here, &[MessageId::new(9)]);
    assert_eq!(kept(&window), Some(1), "there were no more");
    let mut window = Window::new(WindowLimits {
        per_channel: 0,
        ..WindowLimits::default()
    });
    window.keep_pins(here, guild, &window.view(here), &pins);
    assert_eq!(kept(&window), None, "nothing is held");
}

/// Pins of a channel of which nothing is held cost other channels nothing that is on its way.
#[test]
fn pins_elsewhere_change_nothing_here() {
    let mut window = Window::new(WindowLimits::default());
    let [here, elsewhere] = [CHANNELS[0], CHANNELS[1]];
    let guild = Some(GuildId::new(1));
    window.created(said(here, 1, 10));
    let views = [here, elsewhere].map(|channel| window.view(channel));
    window.pins_changed(elsewhere);
    let [mine, theirs] = [here, elsewhere].map(|channel| [Arc::new(said(channel, 1, 10))]);
    window.keep_pins(here, guild, &views[0], &mine);
    assert!(window.view(here).pins.is_some());
    window.keep(elsewhere, &views[1], &theirs);
    assert!(window.message(elsewhere, MessageId::new(1)).is_some());
    window.keep_pins(elsewhere, guild, &views[1], &theirs);
    assert!(window.view(elsewhere).pins.is_none());
    let view = window.view(elsewhere);
    window.keep_pins(elsewhere, guild, &view, &theirs);
    assert!(window.view(elsewhere).pins.is_some());
}

/// Those of a server that were asked about last stay; another server's do not count.
#[test]
fn the_pins_of_a_server_take_an_eighth_of_the_window() {
    let limits = WindowLimits {
        per_channel: 10,
        max_bytes: 80_000,
    };
    let mut window = Window::new(limits);
    for n in 1..=30 {
        let (channel, guild) = (ChannelId::new(n), GuildId::new(1 + n / 30));
        let pin = Arc::new(said(channel, 1, 2_000));
        let view = window.view(channel);
        window.keep_pins(channel, Some(guild), &view, &[pin]);
    }
    let held = |n: u64| window.view(ChannelId::new(n)).pins.is_some();
    let held: Vec<u64> = (1..=30).filter(|n| held(*n)).collect();
    assert_eq!(held, [26, 27, 28, 29, 30]);
}
