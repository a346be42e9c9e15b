//! Whether a `kill -9` loses questions: they are asked all the time, also while no process runs, and each
//! is to be answered once. A process is killed at a random moment: every other one only once it has
//! caught up, or what waits would become more than the bot's limits allow.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::Mutex;
use std::time::Duration;

use clew_simulator::{ChannelKind, Id, Message, Simulator, World};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::bot::{amount, block_on};
use super::killed::{KilledBot, UNREFUSED, kill, life, stores};
use super::model::Model;
use super::postgres::Postgres;

/// Kills a store, unless `CLEW_KILLS` says otherwise.
const KILLS: u64 = 60;
/// Between two questions.
const ASKED_EACH: Duration = Duration::from_millis(50);
/// How long the model takes for an answer: at each kill some are under way.
pub(crate) const THINKS: Duration = Duration::from_millis(300);
/// Every tenth process finds its session lost, and looks for what it missed, unless `CLEW_LOST_EACH` says
/// otherwise; 0: none does.
const LOST_EACH: u64 = 10;
/// Milliseconds from a kill to the next start, unless `CLEW_DOWN_MS` says otherwise.
const DOWN_MS: u64 = 10_000;
const GUILDS: usize = 4;
const CHANNELS: usize = 10;
const PEOPLE: usize = 100;
/// A process has caught up when at most this many of the last questions have no reply yet...
const BEHIND: usize = 20;
/// ...of so many, which are asked in 20 s: what is never answered does not count for ever.
const LAST: usize = 400;
/// How often that is looked at.
const LOOKED_EACH: Duration = Duration::from_secs(2);
/// It is killed after this all the same.
const CATCHES_UP: Duration = Duration::from_mins(2);
/// It is over when nothing has been answered for so long.
const QUIET: Duration = Duration::from_secs(30);

pub(crate) fn print() {
    let kills = amount("CLEW_KILLS", KILLS);
    println!(
        "\nQuestions under kill -9, one each {} ms, {} ms down; Discord forgets each {}th session",
        ASKED_EACH.as_millis(),
        amount("CLEW_DOWN_MS", DOWN_MS),
        amount("CLEW_LOST_EACH", LOST_EACH)
    );
    print_heads();
    block_on(async {
        let database = Postgres::shared().fresh_database().await;
        let runs = stores(&database.url).map(|(name, store)| run(name, store, kills));
        futures_util::future::join_all(runs).await;
    });
}

/// The channels and the people of a server.
pub(crate) type Guild = (Vec<Id>, Vec<Id>);
/// The questions asked so far, each with its channel.
pub(crate) type Asked = Mutex<Vec<(Id, Id)>>;

/// So many servers.
pub(crate) fn guilds(world: &mut World, count: usize) -> Vec<Guild> {
    let guild = |number| {
        let guild = world.guild(&format!("Works {number}"));
        let people = (0..PEOPLE).map(|one| world.member(guild, &format!("Person {one}")));
        let people = people.collect();
        let channels = (0..CHANNELS)
            .map(|one| world.channel(guild, ChannelKind::Text, &format!("hall-{one}")));
        (channels.collect(), people)
    };
    (0..count).map(guild).collect()
}

async fn run(name: &str, store: &str, kills: u64) {
    let mut world = World::new();
    let guilds = guilds(&mut world, GUILDS);
    let bot = KilledBot::new(world, Model::start(THINKS).await, store).await;
    // What is asked before the first process, nobody looks for.
    let first = bot.begin(&UNREFUSED).await;
    let asked = Asked::default();
    let mut last = tokio::select! {
        () = keep_asking(&bot.discord, &guilds, &asked, ASKED_EACH) => unreachable!("it has no end"),
        last = keep_killing(&bot, first, &guilds, &asked, kills) => last,
    };
    let asked = asked.into_inner().unwrap();
    wait_quiet(&bot.discord, &guilds).await;
    kill(&mut last);
    print_row(name, kills, &asked, &replies(&bot.discord, &guilds));
}

pub(crate) fn print_heads() {
    println!(
        "{:<12}{:>7}{:>9}{:>9}{:>7}{:>10}{:>9}",
        "store", "kills", "asked", "once", "twice", "otherwise", "never"
    );
}

pub(crate) fn print_row(name: &str, kills: u64, asked: &[(Id, Id)], replies: &Replies) {
    let (mut once, mut twice, mut otherwise, mut never) = (0, 0, 0, 0);
    for question in asked {
        let texts = replies.get(question);
        let of = texts.map_or(&[][..], Vec::as_slice);
        let answers = of.iter().filter(|text| **text == Model::text()).count();
        match (answers, of.len()) {
            (1, 1) => once += 1,
            (0, 0) => never += 1,
            (0 | 1, _) => otherwise += 1,
            _ => twice += 1,
        }
    }
    println!(
        "{name:<12}{kills:>7}{:>9}{once:>9}{twice:>7}{otherwise:>10}{never:>9}",
        asked.len()
    );
}

/// Asks without end.
pub(crate) async fn keep_asking(
    discord: &Simulator,
    guilds: &[Guild],
    asked: &Asked,
    each: Duration,
) {
    let us = discord.bot();
    let mut ticks = interval(each);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0.. {
        ticks.tick().await;
        let (channels, people) = &guilds[number % guilds.len()];
        let channel = channels[number / guilds.len() % CHANNELS];
        let person = people[number / guilds.len() / CHANNELS % PEOPLE];
        let text = format!("<@{us}> what came of number {number}?");
        let question = discord.post(channel, person, text);
        asked.lock().unwrap().push((channel, question));
    }
}

async fn keep_killing(
    bot: &KilledBot,
    mut child: Child,
    guilds: &[Guild],
    asked: &Asked,
    kills: u64,
) -> Child {
    let mut seed = 1;
    let lost_each = amount("CLEW_LOST_EACH", LOST_EACH);
    let down = Duration::from_millis(amount("CLEW_DOWN_MS", DOWN_MS));
    for number in 0..kills {
        let began = Instant::now();
        let is_behind = || {
            let replies = replies(&bot.discord, guilds);
            let asked = asked.lock().unwrap();
            let last = asked.iter().rev().take(LAST);
            last.filter(|one| !replies.contains_key(*one)).count() > BEHIND
        };
        while number % 2 == 1 && is_behind() && began.elapsed() < CATCHES_UP {
            sleep(LOOKED_EACH).await;
        }
        sleep(life(&mut seed)).await;
        kill(&mut child);
        sleep(down).await;
        if (number + 1).is_multiple_of(lost_each) {
            bot.discord.forget_sessions();
        }
        child = bot.begin(&UNREFUSED).await;
    }
    child
}

pub(crate) async fn wait_quiet(discord: &Simulator, guilds: &[Guild]) {
    let mut last = (0, Instant::now());
    while last.1.elapsed() < QUIET {
        sleep(Duration::from_secs(1)).await;
        let answered = replies(discord, guilds).len();
        if answered != last.0 {
            last = (answered, Instant::now());
        }
    }
}

/// What replies to each question, by its channel and id.
pub(crate) type Replies = BTreeMap<(Id, Id), Vec<String>>;

pub(crate) fn replies(discord: &Simulator, guilds: &[Guild]) -> Replies {
    let mut replies = Replies::new();
    for channel in guilds.iter().flat_map(|(channels, _)| channels) {
        let to = |answer: &Message| answer.reference.as_ref().and_then(|one| one.message);
        for answer in discord.answers(*channel) {
            if let Some(question) = to(&answer) {
                let of = replies.entry((*channel, question)).or_default();
                of.push(answer.content);
            }
        }
    }
    replies
}
