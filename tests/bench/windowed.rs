//! What a message in the window costs in addition to its text.

use clew_context::discord::convert;
use clew_context::engine::window::{Window, WindowLimits};
use clew_simulator::Id;

use super::events;
use super::process::Process;

const MESSAGES: u64 = 100_000;
const CHANNELS: u64 = 500;
const GUILD: Id = Id(800_000_000_000_000_000);
const FIRST_ID: u64 = 1_460_000_000_000_000_000;

pub(crate) fn print() {
    let channels: Vec<Id> = (1..=CHANNELS).map(|number| Id(GUILD.0 + number)).collect();
    let mut window = Window::new(WindowLimits {
        per_channel: 200,
        max_bytes: usize::MAX,
    });
    let before = Process::own().resident();
    for place in events::places(GUILD, &channels, FIRST_ID, MESSAGES) {
        let incoming = convert::incoming(&events::create(place)).unwrap();
        window.created(incoming.message);
    }
    let grown = Process::own().resident() - before;
    let (held, counted) = window.size();
    let text = events::TEXT.len() as u64;
    println!("\n{held} messages of {text} bytes in the window of {CHANNELS} channels");
    println!(
        "memory: {} bytes a message beside its text; by the window's own count {}",
        grown / MESSAGES - text,
        counted as u64 / MESSAGES - text
    );
}
