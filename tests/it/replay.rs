//! Recorded channels: how they are read, how damage is reported or skipped, and how much memory a large
//! export takes.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bounds;
mod command;
mod conversation;
mod damage;
mod exports;
mod large;
mod recall;
pub(crate) mod run;
mod scenarios;
mod source;

use std::path::{Path, PathBuf};

use clew::archive::{ReadOptions, Recording};
use clew_context::model::{ChannelId, Message, MessageId, UnixMillis};

const GENERAL: ChannelId = ChannelId::new(700);
const THREAD: ChannelId = ChannelId::new(1_456_225_690_583_040_000);
const POST: ChannelId = ChannelId::new(1_456_229_633_228_800_000);
const LENIENT: ReadOptions<'static> = ReadOptions {
    lenient: true,
    progress: None,
};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/archive")
        .join(name)
}

#[track_caller]
fn world(names: &[&str]) -> Recording {
    let paths: Vec<PathBuf> = names.iter().map(|name| fixture(name)).collect();
    Recording::open(&paths, ReadOptions::default()).unwrap()
}

/// The fixtures' ids are made from seconds since 2026-01-01T10:00:00Z.
pub(crate) fn at(seconds: i64) -> MessageId {
    MessageId::first_at(UnixMillis(1_767_261_600_000 + 1000 * seconds))
}

fn contents(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.content).collect()
}

fn message(world: &Recording, channel: ChannelId, id: MessageId) -> Message {
    world.message(channel, id).unwrap().unwrap()
}
