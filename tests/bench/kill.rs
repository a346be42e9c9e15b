//! How many answers a `kill -9` loses: the bot is killed at random moments under load, again and again,
//! then what stands on Discord is compared with what is stored.

use std::collections::BTreeSet;
use std::time::Duration;

use clew::app;
use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};
use clew_simulator::{ChannelKind, Id, World};
use clew_store::model::{AgentName, Scope, StoredMessage, StoredRole};
use clew_store::{Kind, Record, Store};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use super::bot::block_on;
use super::killed::{KilledBot, UNREFUSED, folders, kill, life, setting, stores};
use super::model::Model;
use super::postgres::Postgres;
use super::process::Process;

/// Of which writes are counted.
const ON_DISK: [&str; 2] = ["sqlite", "files"];
/// Turns whose writes are counted, after as many to warm up.
const TURNS: u64 = 200;
/// Answers a store, about.
const ANSWERS: usize = 2_000;
/// Channels in which somebody asks at the same time.
const CHANNELS: usize = 32;
/// Questions of one person in a channel, before those that a kill adds: files keep the last seven turns
/// of a conversation.
const QUESTIONS: usize = 2;
/// People of a channel, who ask in turn.
const PEOPLE: usize = 120;
/// The longest that one store takes.
const LONGEST: Duration = Duration::from_mins(5);
/// How long the last processes may take to settle what is left, and how long each of them: a
/// process settles a few hundred turns.
const SETTLING: Duration = Duration::from_mins(10);
const SETTLING_EACH: Duration = Duration::from_secs(100);
const LOOK: Duration = Duration::from_millis(500);

pub(crate) fn print() {
    println!("\nWhat a turn of two rows writes, on average of {TURNS}");
    println!("{:<10}{:<24}{:>9}{:>9}", "store", "stored", "writes", "KiB");
    for name in ON_DISK {
        block_on(writes(name));
    }
    println!("\nAnswers lost to kill -9, {CHANNELS} people asking at once");
    println!(
        "{:<10}{:>9}{:>9}{:>8}{:>12}{:>11}",
        "store", "kills", "posted", "lost", "not posted", "unsettled"
    );
    block_on(async {
        let database = Postgres::shared().fresh_database().await;
        for (name, store) in stores(&database.url) {
            run(name, store).await;
        }
    });
}

/// The writes of a turn that is stored once it is posted, and of one that is early before.
async fn writes(name: &str) {
    for is_early in [false, true] {
        let folder = TempDir::new().unwrap();
        let address = setting(folder.path(), name).parse().unwrap();
        let opened = Store::open(&address, &folders(folder.path()), app::system_clock()).await;
        let store = opened.unwrap();
        let mut before = (0, 0);
        for number in 0..2 * TURNS {
            if number == TURNS {
                before = (Process::own().writes(), Process::own().written());
            }
            let turn = turn(number);
            if is_early {
                let mut unposted = turn.clone();
                unposted[1].message = None;
                store.append_early(&unposted).await.unwrap();
            }
            store.append(&turn).await.unwrap();
        }
        let calls = Process::own().writes() - before.0;
        let bytes = Process::own().written() - before.1;
        let stored = if is_early {
            "early, then confirmed"
        } else {
            "once it is posted"
        };
        let each = |sum: u64| sum as f64 / TURNS as f64;
        println!(
            "{name:<10}{stored:<24}{:>9.1}{:>9.1}",
            each(calls),
            each(bytes) / 1_024.0
        );
        store.close().await.unwrap();
    }
}

/// A question and its answer, in one of a hundred conversations.
fn turn(number: u64) -> Vec<StoredMessage> {
    let (guild, channel) = (GuildId::new(1), ChannelId::new(2));
    let user = UserId::new(number % 100 + 1);
    let first = MessageId::first_at(UnixMillis(1_780_000_000_000 + 1_000 * number.cast_signed()));
    let question = StoredMessage {
        scope: Scope::Member {
            guild,
            channel,
            user,
        },
        agent: AgentName::default_agent(),
        turn: TurnId(first.get()),
        ordinal: 0,
        role: StoredRole::User,
        guild: Some(guild),
        channel,
        owner: user,
        author_name: Some("Ada".to_owned()),
        content: "why does the second pump stop at night? ".repeat(3),
        tool_calls: None,
        tool_call_id: None,
        timestamp: first.created(),
        message: Some(first),
        parts: Vec::new(),
        target: Some(first),
        restored_from: None,
        sources: Vec::new(),
    };
    let answer = StoredMessage {
        role: StoredRole::Assistant,
        author_name: None,
        content: "the float sticks when the water is low. ".repeat(20),
        message: Some(MessageId::new(first.get() + 1)),
        target: None,
        ..question.clone()
    };
    vec![question, answer]
}

/// People who ask as fast as they are answered, and the bot that is killed meanwhile.
struct Killed {
    bot: KilledBot,
    channels: Vec<Id>,
    people: Vec<Id>,
}

async fn run(name: &str, store: &str) {
    let mut world = World::new();
    let guild = world.guild("Works");
    let people = (0..PEOPLE).map(|number| world.member(guild, &format!("Person {number}")));
    let people: Vec<Id> = people.collect();
    let channels = (0..CHANNELS)
        .map(|number| world.channel(guild, ChannelKind::Text, &format!("hall-{number}")));
    let channels: Vec<Id> = channels.collect();
    let killed = Killed {
        bot: KilledBot::new(world, Model::start(Duration::ZERO).await, store).await,
        channels,
        people,
    };
    let began = Instant::now();
    let (mut kills, mut seed) = (0_u64, 1);
    while killed.answers().len() < ANSWERS && began.elapsed() < LONGEST {
        killed.one_life(&mut seed).await;
        kills += 1;
    }
    killed.settle().await;
    let left = killed.bot.look().await.early(usize::MAX).await.unwrap();
    let unsettled = left.chunk_by(|one, next| one.turn == next.turn).count();
    let posted = killed.answers();
    let stored = killed.stored().await;
    println!(
        "{name:<10}{kills:>9}{:>9}{:>8}{:>12}{unsettled:>11}",
        posted.len(),
        posted.difference(&stored).count(),
        stored.difference(&posted).count(),
    );
}

impl Killed {
    /// Starts the bot, has everybody ask as fast as they are answered, and kills it.
    async fn one_life(&self, seed: &mut u64) {
        let mut child = self.bot.begin(&UNREFUSED).await;
        self.bot.discord.settled().await.unwrap();
        let each = self
            .channels
            .iter()
            .map(|channel| self.keep_asking(*channel));
        let all = futures_util::future::join_all(each);
        let _ = timeout(life(seed), all).await;
        kill(&mut child);
    }

    /// The next question as soon as the last one is answered.
    async fn keep_asking(&self, channel: Id) {
        let us = self.bot.discord.bot();
        loop {
            let answered = self.bot.discord.answers(channel).len();
            let text = format!("<@{us}> what came of number {answered}?");
            let person = self.people[answered / QUESTIONS % PEOPLE];
            self.bot.discord.post(channel, person, text);
            if self
                .bot
                .discord
                .wait_answers(channel, answered + 1)
                .await
                .is_err()
            {
                return;
            }
        }
    }

    /// The last processes settle what the others left.
    async fn settle(&self) {
        let until = Instant::now() + SETTLING;
        loop {
            let mut child = self.bot.begin(&UNREFUSED).await;
            let its_end = until.min(Instant::now() + SETTLING_EACH);
            while Instant::now() < its_end {
                sleep(LOOK).await;
                if self.bot.look().await.early(1).await.unwrap().is_empty() {
                    break;
                }
            }
            kill(&mut child);
            let left = self.bot.look().await.early(1).await.unwrap();
            if left.is_empty() || Instant::now() >= until {
                return;
            }
        }
    }

    /// The answers on Discord, by their channels and ids; not what is told in small print.
    fn answers(&self) -> BTreeSet<(u64, u64)> {
        let of = |channel: &Id| {
            let answers = self.bot.discord.answers(*channel).into_iter();
            let answers = answers.filter(|answer| !answer.content.starts_with("-# "));
            let channel = channel.0;
            answers.map(move |answer| (channel, answer.id.0))
        };
        self.channels.iter().flat_map(of).collect()
    }

    /// The answers that are stored, by their channels and ids.
    async fn stored(&self) -> BTreeSet<(u64, u64)> {
        let store = self.bot.look().await;
        let mut stored = BTreeSet::new();
        let mut after = None;
        loop {
            let page = store
                .records(Kind::Messages, None, after.as_ref(), 500)
                .await;
            let page = page.unwrap();
            for record in page.records {
                if let Record::Message(row) = record
                    && row.role == StoredRole::Assistant
                    && let Some(message) = row.message
                {
                    stored.insert((row.channel.get(), message.get()));
                }
            }
            after = page.next;
            if after.is_none() {
                return stored;
            }
        }
    }
}
