//! What a turn costs: one thread of 300 messages, warm, default settings, SQLite; from idle to idle, averaged.
//! `docs/counts.md` holds some of it. What its stages allocate is in `hot`.

use std::time::Duration;

use clew_simulator::{ChannelKind, Id, World};

use super::bot::{Bot, block_on};
use super::load::per;
use super::process::{Process, mebibytes};

const THREAD_MESSAGES: usize = 300;
const WARM: usize = 10;
const TURNS: usize = 50;

pub(crate) fn print() {
    println!(
        "\nWhat a turn costs, on average of {TURNS} in a thread of {THREAD_MESSAGES} messages, after {WARM}"
    );
    block_on(async {
        let mut world = World::new();
        let guild = world.guild("Works");
        let ada = world.member(guild, "Ada");
        let hall = world.channel(guild, ChannelKind::Text, "hall");
        let start = world.seed(hall, ada, "the pump is leaking");
        let thread = world.thread_from(hall, start, "pump failure", ada);
        for count in 0..THREAD_MESSAGES {
            let text = format!("reading {count}: 4.2 bar at the valve, steady so far");
            world.seed(thread, ada, text);
        }
        let bot = Bot::start(world).await;
        ask(&bot, thread, ada, WARM).await;
        let requests = bot.discord.requests().len();
        let before = Cost::of(&bot);
        ask(&bot, thread, ada, TURNS).await;
        let after = Cost::of(&bot);
        let each = |sum: fn(&Cost) -> u64| (sum(&after) - sum(&before)) as f64 / TURNS as f64;
        println!(
            "CPU {:.2} ms, {:.1} write calls, {:.1} KiB written, {:.1} read calls, {:.1} calls to \
             Discord",
            per(after.cpu.saturating_sub(before.cpu), TURNS as u64),
            each(|cost| cost.writes),
            each(|cost| cost.written) / 1_024.0,
            each(|cost| cost.reads),
            (bot.discord.requests().len() - requests) as f64 / TURNS as f64
        );
        println!("memory {:.1} MiB", mebibytes(after.process.resident()));
    });
}

/// What the bot has spent so far, once it is idle.
struct Cost {
    process: Process,
    cpu: Duration,
    writes: u64,
    written: u64,
    reads: u64,
}

impl Cost {
    fn of(bot: &Bot) -> Self {
        let process = bot.process();
        Self {
            process,
            cpu: process.cpu(),
            writes: process.writes(),
            written: process.written(),
            reads: process.reads(),
        }
    }
}

/// Questions one after the other, each from idle to idle.
async fn ask(bot: &Bot, thread: Id, person: Id, times: usize) {
    for _ in 0..times {
        bot.answer(thread, person).await;
        bot.rest().await;
    }
}
