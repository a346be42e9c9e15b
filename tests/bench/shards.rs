//! A bot of many servers: what a thousand shards of ten servers each cost one process.

use clew_simulator::{Id, World};
use tokio::time::Instant;

use super::bot::{Bot, amount, block_on};
use super::load::{per, server};
use super::process::mebibytes;

const SERVERS_EACH: u64 = 10;
const CHANNELS: usize = 10;
const ROLES: usize = 10;
/// Messages in each server, in turn.
const MESSAGES: usize = 10;

pub(crate) fn print() {
    let shards = amount("SHARDS", 1_000);
    let servers = shards * SERVERS_EACH;
    println!("\n{shards} shards, {servers} servers of {CHANNELS} channels and {ROLES} roles");
    block_on(async {
        let mut world = World::new();
        world.settings.shards = shards;
        // A bot with so many has more than a small one.
        world.settings.session_starts_total = 4 * shards;
        world.settings.session_starts_remaining = 4 * shards;
        // 0: Discord's five seconds between two IDENTIFYs are left out.
        world.settings.max_concurrency = 0;
        let places: Vec<(Id, Id)> = (0..servers)
            .map(|_| {
                let (_, person, channels) = server(&mut world, ROLES, CHANNELS);
                (channels[CHANNELS - 1], person)
            })
            .collect();
        let began = Instant::now();
        let bot = Bot::start(world).await;
        let all = usize::try_from(shards).unwrap();
        bot.discord.wait_sessions(all).await.unwrap();
        bot.rest().await;
        let process = bot.process();
        println!(
            "connected after {:.1} s, {:.1} s of CPU, {:.1} MiB, {:.1} KiB a server",
            began.elapsed().as_secs_f64(),
            process.cpu().as_secs_f64(),
            mebibytes(process.resident()),
            process.resident() as f64 / 1_024.0 / servers as f64
        );
        let before = process.cpu();
        for number in 0..MESSAGES {
            for (channel, person) in &places {
                let text = format!("reading {number}: 4.2 bar at the valve");
                bot.discord.post(*channel, *person, text);
            }
            bot.rest().await;
        }
        let events = servers * MESSAGES as u64;
        let spent = process.cpu().saturating_sub(before);
        println!(
            "{events} messages: {:.1} us each, then {:.1} MiB",
            1_000.0 * per(spent, events),
            mebibytes(process.resident())
        );
    });
}
