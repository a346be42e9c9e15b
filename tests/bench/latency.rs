//! From the event to the model's request: calls and milliseconds. Cold means that the process has seen
//! nothing of the conversation, warm that it has seen all of it.

use std::time::{Duration, Instant};

use clew_simulator::{ChannelKind, Draft, Id, RequestRecord, World};

use super::bot::{Bot, block_on};
use super::process::milliseconds;

/// Processes whose first turn is measured; the median is reported.
const PROCESSES: usize = 3;
/// Further turns of each warm process; the median is reported.
const FURTHER: usize = 20;
/// Added to every REST call to simulate a slow network.
const SLOW: Duration = Duration::from_millis(50);

const STARTER: &str = "the pump is leaking";
const TITLE: &str = "pump failure";

/// A conversation and how the trigger belongs to it.
#[derive(Clone, Copy)]
enum Case {
    /// A mention in a thread of this many messages.
    Thread(usize),
    /// A mention that replies to the last of 20 replies among 400 others.
    Chain,
}

/// What a turn did before it asked the model.
struct Turn {
    gets: usize,
    at_once: usize,
    time: Duration,
    cpu: Duration,
    request: usize,
}

pub(crate) fn print() {
    println!("\nFrom the event to the model's request (clew run against the simulator)");
    println!(
        "{:<22}{:<7}{:>8}{:>6}{:>9}{:>9}{:>13}{:>15}",
        "trigger", "bot", "latency", "GETs", "at once", "ms", "CPU ms/turn", "request bytes"
    );
    for case in [Case::Thread(300), Case::Thread(100_000), Case::Chain] {
        for latency in [Duration::ZERO, SLOW] {
            let cold = (0..PROCESSES).map(|_| block_on(cold(case, latency)));
            row(case, "cold", latency, cold.collect());
        }
        for latency in [Duration::ZERO, SLOW] {
            let warm = (0..PROCESSES).map(|_| block_on(warm(case, latency)));
            let (first, further): (Vec<Turn>, Vec<Vec<Turn>>) = warm.unzip();
            row(case, "warm", latency, first);
            row(
                case,
                "again",
                latency,
                further.into_iter().flatten().collect(),
            );
        }
    }
}

fn row(case: Case, bot: &str, latency: Duration, mut turns: Vec<Turn>) {
    turns.sort_by_key(|turn| turn.time);
    let middle = &turns[turns.len() / 2];
    let gets = turns.iter().map(|turn| turn.gets).max().unwrap();
    let at_once = turns.iter().map(|turn| turn.at_once).max().unwrap();
    let cpu: Duration = turns.iter().map(|turn| turn.cpu).sum();
    let name = match case {
        Case::Thread(messages) => format!("thread of {messages}"),
        Case::Chain => "chain of 20 in 420".to_owned(),
    };
    println!(
        "{name:<22}{bot:<7}{:>8}{gets:>6}{at_once:>9}{:>9.2}{:>13.2}{:>15}",
        format!("{} ms", latency.as_millis()),
        milliseconds(middle.time),
        milliseconds(cpu) / turns.len() as f64,
        middle.request
    );
}

/// Where the conversation takes place, and who takes part.
struct Stage {
    channel: Id,
    people: [Id; 2],
}

impl Stage {
    fn new(world: &mut World) -> Self {
        let guild = world.guild("Works");
        Self {
            channel: world.channel(guild, ChannelKind::Text, "help"),
            people: [world.member(guild, "Ada"), world.member(guild, "Boris")],
        }
    }

    /// Says everything before the trigger. Returns what the trigger replies to.
    fn talk(&self, case: Case, mut say: impl FnMut(Id, Id, Draft) -> Id) -> Option<Id> {
        match case {
            Case::Thread(messages) => {
                for number in 0..messages {
                    let text = format!("reading {number}: 4.2 bar at the valve, steady so far");
                    say(self.channel, self.people[number % 2], Draft::new(text));
                }
                None
            }
            Case::Chain => {
                let mut last = None;
                for number in 0..420 {
                    let draft = Draft::new(format!(
                        "note {number} on the crane, nothing new since then"
                    ));
                    let draft = match last {
                        Some(parent) if number % 20 == 0 => draft.reply_to(parent).without_ping(),
                        _ => draft,
                    };
                    let id = say(self.channel, self.people[number % 2], draft);
                    if number % 20 == 0 {
                        last = Some(id);
                    }
                }
                last
            }
        }
    }

    /// One trigger, from the event to the end of its answer.
    async fn ask(&self, bot: &Bot, latency: Duration, replies_to: Option<Id>) -> Turn {
        bot.rest().await;
        bot.discord.clear_requests();
        bot.discord.set_latency(latency);
        let us = bot.discord.bot();
        let mut draft = Draft::new(format!("<@{us}> what came of it?"));
        if let Some(parent) = replies_to {
            draft = draft.reply_to(parent).without_ping();
        }
        let cpu = bot.process().cpu();
        let began = Instant::now();
        bot.discord.post(self.channel, self.people[0], draft);
        let arrival = bot.model.arrival().await;
        let mut calls = bot.discord.requests();
        calls.retain(|call| call.method == "GET");
        bot.rest().await;
        bot.discord.set_latency(Duration::ZERO);
        Turn {
            gets: calls.len(),
            at_once: at_once(&calls, latency),
            time: arrival.at - began,
            cpu: bot.process().cpu().saturating_sub(cpu),
            request: arrival.bytes,
        }
    }
}

/// The most calls that were open at once. A call takes at least the latency, so calls that started closer
/// together overlapped.
fn at_once(calls: &[RequestRecord], latency: Duration) -> usize {
    let open = |call: &RequestRecord| {
        let earlier = calls
            .iter()
            .filter(|other| other.at <= call.at && call.at.saturating_sub(other.at) < latency);
        earlier.count().max(1)
    };
    calls.iter().map(open).max().unwrap_or(0)
}

async fn cold(case: Case, latency: Duration) -> Turn {
    let mut world = World::new();
    let mut stage = Stage::new(&mut world);
    if let Case::Thread(_) = case {
        let start = world.seed(stage.channel, stage.people[0], STARTER);
        stage.channel = world.thread_from(stage.channel, start, TITLE, stage.people[0]);
    }
    let last = stage.talk(case, |channel, author, draft| {
        world.seed(channel, author, draft)
    });
    let bot = Bot::start(world).await;
    stage.ask(&bot, latency, last).await
}

async fn warm(case: Case, latency: Duration) -> (Turn, Vec<Turn>) {
    let mut world = World::new();
    let mut stage = Stage::new(&mut world);
    let bot = Bot::start(world).await;
    if let Case::Thread(_) = case {
        let start = bot.discord.post(stage.channel, stage.people[0], STARTER);
        stage.channel = bot
            .discord
            .thread_from(stage.channel, start, TITLE, stage.people[0]);
    }
    let last = stage.talk(case, |channel, author, draft| {
        bot.discord.post(channel, author, draft)
    });
    let first = stage.ask(&bot, latency, last).await;
    let mut further = Vec::new();
    for _ in 0..FURTHER {
        further.push(stage.ask(&bot, latency, last).await);
    }
    (first, further)
}
