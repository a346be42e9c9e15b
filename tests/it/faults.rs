//! Faults around the whole bot, over sockets. Each time an answer or a notice is posted, telemetry names the
//! cause, and the next mention works.

mod fallbacks;
mod gateway;
pub(crate) mod kill;
mod log;
mod missed;
mod model;
mod post;
pub(crate) mod process;
mod rest;
mod restart;
mod runs;
mod too_long;

use clew_simulator::{ChannelKind, Id, Message, World};
use serde_json::Value;

use crate::support::bot::{Bot, Stage};
use crate::support::model::{Behaviour, Gate};

/// A server with a channel, a thread on one of its messages and two people.
pub(crate) struct Place {
    pub(crate) stage: Stage,
    guild: Id,
    pub(crate) help: Id,
    pub(crate) thread: Id,
    ada: Id,
    boris: Id,
}

impl Place {
    pub(crate) async fn new(settings: &[(&str, &str)]) -> Self {
        Self::with(settings, |_| {}).await
    }

    async fn with(settings: &[(&str, &str)], change: impl FnOnce(&mut World)) -> Self {
        let mut world = World::new();
        // 0 skips the five seconds between two identifies.
        world.settings.max_concurrency = 0;
        let guild = world.guild("Works");
        let help = world.channel(guild, ChannelKind::Text, "help");
        let ada = world.member(guild, "Ada");
        let boris = world.member(guild, "Boris");
        let start = world.seed(help, ada, "the pump is leaking");
        let thread = world.thread_from(help, start, "pump failure", ada);
        for count in 0..120 {
            world.seed(thread, boris, format!("reading {count}"));
        }
        change(&mut world);
        Self {
            stage: Stage::new(world, settings).await,
            guild,
            help,
            thread,
            ada,
            boris,
        }
    }

    /// Ada mentions the bot in a channel.
    pub(crate) fn ask(&self, channel: Id, text: &str) -> Id {
        let us = self.stage.discord.bot();
        let text = format!("<@{us}> {text}");
        self.stage.discord.post(channel, self.ada, text)
    }

    /// Ada asks in the thread, and half of the answer is posted: the rest never comes.
    async fn half_answered(&self) -> Gate {
        let (pieces, gate) = Behaviour::gated(&["The pump\n", "never comes"]);
        self.stage.model.script(pieces);
        self.ask(self.thread, "what is it about?");
        gate.step(1);
        self.wait_for_answer(self.thread, "The pump").await;
        gate
    }

    /// The bot's messages in a channel, once there are `count`.
    pub(crate) async fn answers(&self, channel: Id, count: usize) -> Vec<Message> {
        let answers = self.stage.discord.wait_answers(channel, count).await;
        answers.unwrap()
    }

    /// Waits for a message of the bot with exactly this text; streaming may edit it until then.
    pub(crate) async fn wait_for_answer(&self, channel: Id, text: &str) {
        let us = self.stage.discord.bot();
        let found = self
            .stage
            .discord
            .wait_for_message(channel, |message| {
                message.author == us && message.content == text
            })
            .await;
        found.unwrap();
    }

    /// Ends all faults, checks that a mention in the channel and one in the thread are answered, and stops
    /// the bot. Returns all its telemetry.
    async fn still_works(&self, bot: Bot) -> Vec<Value> {
        self.stage.discord.end_faults();
        for channel in [self.help, self.thread] {
            let before = self.stage.discord.answers(channel).len();
            self.ask(channel, "does it still work?");
            let answers = self.answers(channel, before + 1).await;
            assert_eq!(answers[before].content, "ok");
        }
        bot.stop().await
    }
}

/// Asserts that there is an event of this name whose detail contains `wanted`.
#[track_caller]
fn has(lines: &[Value], event: &str, wanted: &Value) {
    let fits = |line: &&Value| {
        let mut wanted = wanted.as_object().unwrap().iter();
        line["event"] == event && wanted.all(|(key, value)| line["detail"][key] == *value)
    };
    assert!(
        lines.iter().any(|line| fits(&line)),
        "no {event} {wanted} in\n{}",
        told(lines)
    );
}

#[track_caller]
fn has_no(lines: &[Value], event: &str) {
    let none = lines.iter().all(|line| line["event"] != event);
    assert!(none, "{event} in\n{}", told(lines));
}

fn told(lines: &[Value]) -> String {
    let lines = lines
        .iter()
        .map(|line| format!("{} {}", line["event"], line["detail"]));
    lines.collect::<Vec<_>>().join("\n")
}
