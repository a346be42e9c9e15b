//! An hour of a busy server: whether memory, files, threads and disk stop growing. Everything new has a new
//! id, as on Discord: people, threads, messages, answers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clew_simulator::{ChannelKind, Draft, Id, Message, Permissions, World};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::bot::{Bot, amount, block_on};
use super::events::{self, Place};
use super::process::mebibytes;

/// How long it runs unless `CLEW_SOAK_MINUTES` says otherwise.
const MINUTES: u64 = 60;
/// Between two rows of the table.
const ROW: Duration = Duration::from_mins(5);
/// Milliseconds between two steps unless `CLEW_SOAK_STEP_MS` says otherwise; each step has one question.
const STEP_MS: u64 = 200;
/// Messages addressed to nobody, in each step.
const CHATTER: u64 = 10;
/// Steps between two new threads.
const NEW_THREAD: usize = 10;
/// Threads at once; the oldest is deleted for a new one.
const THREADS: usize = 100;
const CHANNELS: usize = 100;
const PEOPLE: usize = 600;
/// Calls that the simulator remembers.
const LOG: usize = 1_000;
/// The first id of the chatter, at a moment in 2026.
const FIRST_ID: u64 = 1_460_000_000_000_000_000;

struct Guild {
    id: Id,
    channels: Vec<Id>,
    people: Vec<Id>,
    /// Oldest first.
    threads: Vec<Id>,
}

pub(crate) fn print() {
    let minutes = amount("CLEW_SOAK_MINUTES", MINUTES);
    println!("\nA busy server for {minutes} minutes, SQLite");
    println!(
        "{:>7}{:>10}{:>10}{:>7}{:>9}{:>11}{:>9}{:>12}",
        "minute", "RSS MiB", "peak MiB", "files", "threads", "disk MiB", "asked", "CPU s"
    );
    block_on(run(Duration::from_mins(minutes)));
}

async fn run(time: Duration) {
    let mut world = World::new();
    let mut guild = busy(&mut world);
    let bot = Bot::start(world).await;
    bot.discord.keep_log(LOG);
    let began = Instant::now();
    let mut ticks = interval(Duration::from_millis(amount("CLEW_SOAK_STEP_MS", STEP_MS)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rows = 0;
    row(&bot, rows, 0);
    for step in 0.. {
        ticks.tick().await;
        chatter(&bot, &guild, step);
        ask(&bot, &mut guild, step).await;
        let passed = u32::try_from(began.elapsed().as_secs() / ROW.as_secs()).unwrap();
        if passed > rows {
            rows = passed;
            row(&bot, rows, step + 1);
        }
        if began.elapsed() >= time {
            break;
        }
    }
}

fn busy(world: &mut World) -> Guild {
    let id = world.guild("Works");
    world.role(id, "crew", Permissions::EVERYONE);
    let people = (0..PEOPLE).map(|number| world.member(id, &format!("Person {number}")));
    let people = people.collect();
    let channels = (0..CHANNELS)
        .map(|number| world.channel(id, ChannelKind::Text, &format!("hall-{number}")))
        .collect();
    Guild {
        id,
        channels,
        people,
        threads: Vec::new(),
    }
}

/// Messages of people whom nobody has seen before, in all channels.
fn chatter(bot: &Bot, guild: &Guild, step: usize) {
    let step = step as u64;
    let first = FIRST_ID + step * (CHATTER << 22);
    let each = |place: Place| {
        // The author is made from the id: moved on, it is somebody new.
        let event = events::create(place);
        event.replace(
            "\"700000000000000",
            &format!("\"7{:05}000000000", step % 100_000),
        )
    };
    for place in events::places(guild.id, &guild.channels, first, CHATTER) {
        bot.discord.dispatch_raw("MESSAGE_CREATE", &each(place));
    }
}

/// A question in a thread, as a reply or in a channel; some are edited or deleted afterwards.
async fn ask(bot: &Bot, guild: &mut Guild, step: usize) {
    let person = guild.people[step % PEOPLE];
    let channel = guild.channels[step % CHANNELS];
    let place = match step % 3 {
        0 => channel,
        _ => thread(bot, guild, step, person),
    };
    let us = bot.discord.bot();
    let draft = Draft::new(format!("<@{us}> what came of number {step}?"));
    let question = bot.discord.post(place, person, draft);
    bot.model.arrival().await;
    let answers = |message: &Message| {
        let reference = message.reference.as_ref();
        reference.is_some_and(|reference| reference.message == Some(question))
    };
    bot.discord.wait_for_message(place, answers).await.unwrap();
    match step % 7 {
        3 => bot.discord.edit(place, question, "never mind"),
        5 => {
            bot.discord.delete(place, question);
        }
        _ => {}
    }
}

/// The newest thread, or a new one in its turn.
fn thread(bot: &Bot, guild: &mut Guild, step: usize, owner: Id) -> Id {
    if step % NEW_THREAD == 1 || guild.threads.is_empty() {
        let channel = guild.channels[step % CHANNELS];
        let start = bot.discord.post(channel, owner, "the pump is leaking");
        let title = format!("pump failure {step}");
        let new = bot.discord.thread_from(channel, start, &title, owner);
        guild.threads.push(new);
        if guild.threads.len() > THREADS {
            bot.discord.delete_channel(guild.threads.remove(0));
        }
    }
    let newest = guild.threads.len() - 1;
    guild.threads[newest]
}

fn row(bot: &Bot, rows: u32, asked: usize) {
    let process = bot.process();
    println!(
        "{:>7}{:>10.1}{:>10.1}{:>7}{:>9}{:>11.1}{:>9}{:>12.1}",
        u64::from(rows) * ROW.as_secs() / 60,
        mebibytes(process.resident()),
        mebibytes(process.peak().unwrap()),
        process.count("fd"),
        process.count("task"),
        mebibytes(bytes_in(bot.folder())),
        asked,
        process.cpu().as_secs_f64(),
    );
}

/// Bytes of all files in a folder and below.
fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_in(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
