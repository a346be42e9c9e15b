//! A busy server: CPU time of events that are addressed to nobody, CPU time of turns, and the memory that the
//! process holds.

use std::time::Duration;

use clew_simulator::{ChannelKind, Id, Permissions, World};

use super::bot::{Bot, block_on};
use super::events::{self, Place};
use super::process::mebibytes;

/// Unrelated events of each kind.
const EVENTS: u64 = 50_000;
/// Turns, one after the other.
const TURNS: usize = 200;
const CHANNELS: usize = 100;
const ROLES: usize = 100;
const THREADS: usize = 40;
/// Messages in each thread before the bot joins.
const THREAD_MESSAGES: usize = 300;
/// The first id of the events, at a moment in 2026.
const FIRST_ID: u64 = 1_460_000_000_000_000_000;

struct Guild {
    id: Id,
    channels: Vec<Id>,
    threads: Vec<Id>,
    person: Id,
}

pub(crate) fn print() {
    println!("\nA server of {CHANNELS} channels, {THREADS} threads, {ROLES} roles");
    block_on(async {
        let mut world = World::new();
        let guild = busy(&mut world);
        let bot = Bot::start(world).await;
        memory(&bot, "connected");
        flood(&bot, &guild, "MESSAGE_CREATE", 0, events::create).await;
        memory(&bot, "after those");
        flood(&bot, &guild, "MESSAGE_CREATE", 1, events::create).await;
        flood(&bot, &guild, "reply MESSAGE_CREATE", 2, events::reply).await;
        flood(&bot, &guild, "event not in use", 3, events::create).await;
        memory(&bot, "after those");
        turns(&bot, &guild).await;
        memory(&bot, "after those");
        flood(&bot, &guild, "MESSAGE_CREATE", 4, events::create).await;
        memory(&bot, "after those");
    });
}

/// A server, somebody in it, and its channels.
pub(crate) fn server(world: &mut World, roles: usize, channels: usize) -> (Id, Id, Vec<Id>) {
    let id = world.guild("Works");
    for number in 0..roles {
        world.role(id, &format!("crew {number}"), Permissions::EVERYONE);
    }
    let person = world.member(id, "Ada");
    let channels = (0..channels)
        .map(|number| world.channel(id, ChannelKind::Text, &format!("hall-{number}")))
        .collect();
    (id, person, channels)
}

fn busy(world: &mut World) -> Guild {
    let (id, person, channels) = server(world, ROLES, CHANNELS);
    let threads = (0..THREADS).map(|number| {
        let start = world.seed(channels[number], person, "the pump is leaking");
        let thread = world.thread_from(channels[number], start, "pump failure", person);
        for count in 0..THREAD_MESSAGES {
            let text = format!("reading {count}: 4.2 bar at the valve, steady so far");
            world.seed(thread, person, text);
        }
        thread
    });
    let threads = threads.collect();
    Guild {
        id,
        channels,
        threads,
        person,
    }
}

/// Sends events as fast as the bot reads them. The flood's number sets their ids.
async fn flood(bot: &Bot, guild: &Guild, what: &str, number: u64, make: fn(Place) -> String) {
    let name = what.rsplit(' ').next().unwrap();
    let name = if name == "use" { "TYPING_START" } else { name };
    let first = FIRST_ID + number * (EVENTS << 22);
    let before = bot.process().cpu();
    let mut bytes = 0;
    for place in events::places(guild.id, &guild.channels, first, EVENTS) {
        let event = make(place);
        bytes += event.len();
        bot.discord.dispatch_raw(name, &event);
    }
    bot.rest().await;
    let spent = bot.process().cpu().saturating_sub(before);
    println!(
        "{EVENTS} times {what} ({} bytes): {:.1} µs CPU each",
        bytes as u64 / EVENTS,
        per(spent, EVENTS) * 1_000.0
    );
}

/// Mentions in threads and channels in turn, each answered before the next.
async fn turns(bot: &Bot, guild: &Guild) {
    let before = bot.process().cpu();
    for number in 0..TURNS {
        let channel = if number % 2 == 0 {
            guild.threads[number / 2 % THREADS]
        } else {
            guild.channels[number / 2 % CHANNELS]
        };
        bot.answer(channel, guild.person).await;
        bot.discord.wait_idle().await.unwrap();
    }
    bot.rest().await;
    let spent = bot.process().cpu().saturating_sub(before);
    println!(
        "{TURNS} turns, half of them in threads of {THREAD_MESSAGES}: {:.2} ms CPU each",
        per(spent, TURNS as u64)
    );
}

/// Milliseconds for each.
pub(crate) fn per(time: Duration, times: u64) -> f64 {
    time.as_secs_f64() * 1_000.0 / times as f64
}

fn memory(bot: &Bot, when: &str) {
    let process = bot.process();
    println!(
        "memory {when}: {:.1} MiB resident, {:.1} MiB at most",
        mebibytes(process.resident()),
        mebibytes(process.peak().unwrap())
    );
}
