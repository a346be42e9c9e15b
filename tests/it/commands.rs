//! Commands end to end: what people call, press and type in the simulated Discord, and what the running bot
//! answers, stores and deletes.

mod block;
mod catch_up;
mod clear_context;
mod complete;
mod context;
mod late;
mod memory;
mod privacy;
mod settings;
mod snapshots;
mod why;

use std::fs;

use clew_simulator::{ChannelKind, Draft, Id, Permissions, Shown, World};
use serde_json::{Value, json};

use crate::support::bot::{Bot, Stage, details, prompt};

/// A server with a channel and three people, one of whom manages it.
struct Place {
    stage: Stage,
    guild: Id,
    channel: Id,
    ada: Id,
    boris: Id,
    /// Has Manage Server.
    maria: Id,
    us: Id,
}

/// Builds a place and starts the bot in it.
async fn place(settings: &[(&str, &str)]) -> (Place, Bot) {
    let mut world = World::new();
    let guild = world.guild("Works");
    let channel = world.channel(guild, ChannelKind::Text, "help");
    let ada = world.member(guild, "Ada");
    let boris = world.member(guild, "Boris");
    let maria = world.member(guild, "Maria");
    let manager = world.role(guild, "manager", Permissions::MANAGE_GUILD);
    world.give_role(guild, maria, manager);
    let us = world.bot;
    let stage = Stage::new(world, settings).await;
    let bot = stage.start().await;
    let place = Place {
        stage,
        guild,
        channel,
        ada,
        boris,
        maria,
        us,
    };
    (place, bot)
}

impl Place {
    /// Calls a command; returns the final answer, which only the caller sees.
    async fn call(&self, who: Id, channel: Id, command: &str, options: Value) -> Shown {
        let discord = &self.stage.discord;
        let called = discord.call(who, channel, command, options).await.unwrap();
        let shown = called.answer().await.unwrap();
        assert!(shown.ephemeral, "{command}: {}", shown.text());
        shown
    }

    /// Calls a command without options in the channel.
    async fn plain(&self, who: Id, command: &str) -> Shown {
        self.call(who, self.channel, command, json!({})).await
    }

    /// Presses a button; returns the message as the answer replaced it.
    async fn press(&self, who: Id, on: &Shown, label: &str) -> Shown {
        let called = self.stage.discord.press(who, on.message, label);
        let shown = called.answer().await.unwrap();
        assert_eq!(shown.message, on.message, "the message is replaced");
        let is_long = ["Erase everything", "Opt out and erase"].contains(&label);
        assert_eq!(called.callback(), Some(if is_long { 6 } else { 7 }));
        shown
    }

    /// Mentions the bot and waits until the turn is answered and stored.
    async fn talk(&self, who: Id, channel: Id, text: &str) {
        let text = format!("<@{}> {text}", self.us);
        self.ask(who, channel, Draft::new(text)).await;
    }

    /// Asks, and waits until the turn is stored: the answer is posted before.
    async fn ask(&self, who: Id, channel: Id, question: Draft) -> Id {
        let before = self.prompts().len();
        let answers = self.stage.discord.answers(channel).len();
        let stored = self.stored(who, channel).await;
        let question = self.stage.discord.post(channel, who, question);
        self.stage.model.wait_requests(before + 1).await;
        let answered = self.stage.discord.wait_answers(channel, answers + 1);
        answered.await.unwrap();
        for _ in 0..1_000 {
            if self.stored(who, channel).await == stored + 2 {
                return question;
            }
        }
        panic!("the turn was not stored");
    }

    /// The number of stored messages of somebody's conversation.
    async fn stored(&self, who: Id, channel: Id) -> usize {
        let shown = self.call(who, channel, "context show", json!({})).await;
        number(&field(&shown, "Stored"))
    }

    /// The number of messages in somebody's next prompt.
    async fn remembered(&self, who: Id, channel: Id) -> usize {
        let shown = self.call(who, channel, "context show", json!({})).await;
        number(&field(&shown, "In my next answer"))
    }

    /// All prompts so far, in order.
    fn prompts(&self) -> Vec<String> {
        self.stage.model.requests().iter().map(prompt).collect()
    }

    fn direct(&self, who: Id) -> Id {
        self.stage.discord.world(|world| world.direct(who))
    }

    /// Whether any of the bot's files contains this text.
    fn on_disk(&self, text: &str) -> bool {
        let mut folders = vec![self.stage.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.is_file() && holds(&fs::read(path).unwrap(), text.as_bytes()) {
                    return true;
                }
            }
        }
        false
    }
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The number at the start of a text; "nothing" is 0.
#[track_caller]
fn number(text: &str) -> usize {
    if text == "nothing" {
        return 0;
    }
    text.split(' ').next().unwrap().parse().unwrap()
}

/// The value of a field of the answer's only embed.
#[track_caller]
fn field(shown: &Shown, name: &str) -> String {
    let fields = shown.embeds[0]["fields"].as_array().unwrap();
    let found = fields.iter().find(|field| field["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no field {name:?} in:\n{}", shown.text()));
    found["value"].as_str().unwrap().to_owned()
}

/// Asserts that the answer is a refusal: one small line that contains `says`.
#[track_caller]
fn assert_refused(shown: &Shown, says: &str) {
    let line = &shown.content;
    assert!(line.starts_with("-# ") && line.contains(says), "{line}");
    assert!(shown.buttons().is_empty() && shown.embeds.is_empty());
}

#[track_caller]
fn assert_says(shown: &Shown, part: &str) {
    let text = shown.text();
    assert!(text.contains(part), "{part:?} is missing in:\n{text}");
}

/// The labels of the buttons.
fn labels(shown: &Shown) -> Vec<String> {
    shown
        .buttons()
        .into_iter()
        .map(|(label, _)| label)
        .collect()
}

/// The outcomes of all calls of a command, from telemetry.
fn outcomes(lines: &[Value], command: &str) -> Vec<String> {
    let answered = details(lines, "answered");
    let of = answered.iter().filter(|one| one["command"] == command);
    of.map(|one| one["outcome"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn help_names_every_command_and_how_to_ask() {
    let (p, bot) = place(&[]).await;
    let shown = p.plain(p.ada, "help").await;
    assert_says(&shown, &format!("<@{}>", p.us));
    for (_, body) in p.stage.discord.commands() {
        if body["type"].as_u64().unwrap_or(1) == 1 && body["name"] != "help" {
            let name = body["name"].as_str().unwrap();
            assert_says(&shown, &format!("`/{name}"));
        }
    }
    assert!(shown.content.chars().count() < 2_000);
    assert_eq!(outcomes(&bot.stop().await, "help"), ["done"]);
}

/// What differs from it registers anew at every operator's next start.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_registered_is_known_to_the_letter() {
    let (p, bot) = place(&[]).await;
    p.plain(p.ada, "help").await;
    let registered = p.stage.discord.requests_to("PUT", "/commands");
    assert_eq!(registered.len(), 1);
    let mut commands = registered[0].body.as_array().unwrap().clone();
    commands.sort_by_key(|command| command["name"].to_string());
    insta::assert_json_snapshot!(commands);
    bot.stop().await;
}
