//! Agent runs: where they stand, what the model gets, who may stop them, how they end.

mod bounds;
mod clean;
mod ended;
mod places;
mod steered;
mod steps;
mod stopped;

use std::time::Duration;

use clew_simulator::{ChannelKind, Fault, FaultKind, Id, Message, Permissions, Shown, World};
use serde_json::{Value, json};

use crate::support::bot::{Bot, Stage, details};
use crate::support::model::{Behaviour, Gate};

/// A server with a channel, two people and a moderator.
struct Place {
    stage: Stage,
    guild: Id,
    channel: Id,
    ada: Id,
    boris: Id,
    /// Has Manage Messages.
    maria: Id,
    us: Id,
}

/// A run's thread, or where else it stands, and its message.
#[derive(Clone, Copy)]
struct Standing {
    channel: Id,
    message: Id,
}

async fn place(settings: &[(&str, &str)]) -> (Place, Bot) {
    let place = unstarted(settings).await;
    let bot = place.stage.start().await;
    (place, bot)
}

async fn unstarted(settings: &[(&str, &str)]) -> Place {
    let mut world = World::new();
    let guild = world.guild("Works");
    let channel = world.channel(guild, ChannelKind::Text, "help");
    let [ada, boris, maria] = ["Ada", "Boris", "Maria"].map(|name| world.member(guild, name));
    let moderator = world.role(guild, "moderator", Permissions::MANAGE_MESSAGES);
    world.give_role(guild, maria, moderator);
    let us = world.bot;
    Place {
        stage: Stage::new(world, settings).await,
        guild,
        channel,
        ada,
        boris,
        maria,
        us,
    }
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

    /// Gives a task; returns what its asker is told.
    async fn told(&self, who: Id, channel: Id, task: &str) -> String {
        let options = json!({"task": task});
        self.call(who, channel, "agent run", options).await.text()
    }

    /// Gives a task in the channel, which gets a thread. The model's answers are scripted
    /// before.
    async fn begin(&self, who: Id, task: &str) -> Standing {
        let told = self.told(who, self.channel, task).await;
        let thread = told.strip_prefix("Started: <#");
        let thread = thread.and_then(|rest| rest.strip_suffix('>'));
        let thread = Id(thread.unwrap_or_else(|| panic!("{told}")).parse().unwrap());
        self.standing(thread, 0)
    }

    /// The run whose message is our message with this index in a channel.
    fn standing(&self, channel: Id, index: usize) -> Standing {
        Standing {
            channel,
            message: self.stage.discord.answers(channel)[index].id,
        }
    }

    /// Holds the model's next answer until the gate opens.
    fn hold(&self, answer: &str) -> Gate {
        let (behaviour, gate) = Behaviour::gated(&[answer]);
        self.stage.model.script(behaviour);
        gate
    }

    /// The model calls `get_message` for a message in the channel.
    fn reads(&self, message: Id) -> Behaviour {
        let arguments = json!({"message": self.link(message)}).to_string();
        Behaviour::calls("Let me look.", &[("get_message", &arguments)])
    }

    fn link(&self, message: Id) -> String {
        let (guild, channel) = (self.guild, self.channel);
        format!("https://discord.com/channels/{guild}/{channel}/{message}")
    }

    /// A message that cannot be read in time, and the path under which it is asked for.
    fn unreadable(&self) -> (Id, String) {
        let discord = &self.stage.discord;
        let message = discord.seed(self.channel, self.boris, "nine valves");
        let path = format!("/channels/{}/messages/{message}", self.channel);
        let hang = FaultKind::Hang(Duration::from_mins(1));
        discord.fault(Fault::new("GET", &path, hang));
        (message, path)
    }

    /// Waits until the run's message says how it ended, and returns it.
    async fn ended(&self, run: Standing, how: &str) -> Message {
        let says = |message: &Message| message.id == run.message && message.content.contains(how);
        let shown = self.stage.discord.wait_for_message(run.channel, says);
        let shown = shown.await.unwrap();
        assert_eq!(shown.components, [] as [Value; 0], "no button is left");
        assert!(
            shown.content.starts_with("-# Agent run for <@"),
            "{}",
            shown.content
        );
        shown
    }

    /// Waits until no run is under way any more.
    async fn idle(&self) {
        for _ in 0..1_000 {
            let shown = self
                .call(self.ada, self.channel, "agent status", json!({}))
                .await;
            if shown.text() == "No tasks running." {
                return;
            }
        }
        panic!("a run is still under way");
    }

    fn texts(&self, channel: Id) -> Vec<String> {
        let answers = self.stage.discord.answers(channel);
        answers.into_iter().map(|message| message.content).collect()
    }
}

/// How each run ended, by telemetry.
fn ends(lines: &[Value]) -> Vec<String> {
    let done = details(lines, "run_done").into_iter();
    done.map(|one| one["end"].as_str().unwrap().to_owned())
        .collect()
}
