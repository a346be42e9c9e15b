//! divan's timings of what every message event passes through.

use clew_context::discord::convert;
use clew_context::engine::conversation::{Reply, Utterance, judge};
use clew_context::engine::window::{Window, WindowLimits};
use clew_context::model::{Speaker, UnixMillis, UserId};
use clew_simulator::Id;
use divan::{Bencher, black_box};

use super::events::{self, Place};

const PLACE: Place = Place {
    guild: 800_000_000_000_000_000,
    channel: 800_000_000_000_000_001,
    id: 1_460_000_000_000_000_000,
};

#[divan::bench(name = "convert: message")]
fn convert_message() {
    let _ = black_box(convert::incoming(black_box(MESSAGE.as_str())));
}

#[divan::bench(name = "convert: reply")]
fn convert_reply() {
    let _ = black_box(convert::incoming(black_box(REPLY.as_str())));
}

#[divan::bench(name = "window: a message in a full window")]
fn window(bencher: Bencher<'_, '_>) {
    let channels: Vec<Id> = (1..=100).map(|number| Id(PLACE.guild + number)).collect();
    let mut places = events::places(Id(PLACE.guild), &channels, PLACE.id, u64::MAX >> 24);
    let message = convert::incoming(&events::create(PLACE)).unwrap().message;
    let mut window = Window::new(WindowLimits {
        per_channel: 200,
        max_bytes: 8 << 20,
    });
    let mut next = || {
        let place = places.next().unwrap();
        let mut message = message.clone();
        message.id = clew_context::model::MessageId::new(place.id);
        message.channel = clew_context::model::ChannelId::new(place.channel);
        message
    };
    for _ in 0..30_000 {
        window.created(next());
    }
    bencher
        .with_inputs(next)
        .bench_local_values(|message| window.created(message));
}

#[divan::bench(name = "conversation: 200 ordinary messages judged, words included")]
fn conversation(bencher: Bencher<'_, '_>) {
    // Three conversations of two people each, in sentences of eight words.
    let text = |number: u64| {
        let words = (0..8).map(|word| format!("w{}", (number * 7 + word * word) % 400));
        words.collect::<Vec<_>>().join(" ")
    };
    let texts: Vec<String> = (0..=200).map(text).collect();
    let said = (0..).zip(&texts).map(|(number, text)| Utterance {
        speaker: Speaker::User(UserId::new(number * 5 % 6)),
        name: "somebody",
        at: UnixMillis(number.cast_signed() * 20_000),
        text,
        mentions: (number % 3 == 0)
            .then_some(UserId::new(number % 6))
            .into_iter()
            .collect(),
        reply: Reply::Unknown,
    });
    let said: Vec<Utterance<'_>> = said.collect();
    bencher.bench_local(|| judge(black_box(&said)));
}

static MESSAGE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| events::create(PLACE));
static REPLY: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| events::reply(PLACE));
