//! Whole turns over sockets: what a person sees, what the model gets, what
//! the telemetry says.

mod access;
mod answers;
mod called;
mod citations;
mod client_alone;
mod client_bounds;
mod client_layouts;
mod client_leaks;
mod client_named;
mod client_servers;
mod clients;
mod collected;
mod conversation;
mod docs;
mod echo;
mod edits;
mod images;
mod leaks;
mod links;
mod names;
mod no_file;
mod opt_out;
mod pins;
mod proxies;
mod proxy_holds;
mod purged;
mod queue;
mod recall_leaks;
mod recheck;
mod refused;
mod search;
mod search_leaks;
mod servers;
mod steering;
mod tokens;
mod told;
mod tool_faults;
mod tool_leaks;
mod tool_outputs;
mod tool_reads;
mod tools;
mod triggers;
mod user_scope;

use clew_simulator::{ChannelKind, Draft, Id, Message, OverwriteOf, Permissions, Use, World};
use serde_json::{Value, json};

use crate::support::bot::{Bot, Stage, details, prompt};

/// A server with a channel and two people.
struct Place {
    stage: Stage,
    guild: Id,
    channel: Id,
    ada: Id,
    boris: Id,
    us: Id,
}

/// Ids of a world that is not served yet.
#[derive(Clone, Copy)]
struct Seeds {
    guild: Id,
    channel: Id,
    ada: Id,
    boris: Id,
}

impl Seeds {
    /// A thread of Ada's in the channel.
    fn thread(self, world: &mut World, title: &str) -> Id {
        world.thread(self.channel, ChannelKind::PublicThread, title, self.ada)
    }
}

/// A place with more in it, as `prepare` says; what it gives is handed back.
async fn place_with<T>(
    settings: &[(&str, &str)],
    prepare: impl FnOnce(&mut World, Seeds) -> T,
) -> (Place, T) {
    let mut world = World::new();
    let guild = world.guild("Works");
    let channel = world.channel(guild, ChannelKind::Text, "help");
    let ada = world.member(guild, "Ada");
    let boris = world.member(guild, "Boris");
    let us = world.bot;
    let seeds = Seeds {
        guild,
        channel,
        ada,
        boris,
    };
    let prepared = prepare(&mut world, seeds);
    let stage = Stage::new(world, settings).await;
    let place = Place {
        stage,
        guild,
        channel,
        ada,
        boris,
        us,
    };
    (place, prepared)
}

async fn place(settings: &[(&str, &str)]) -> Place {
    place_with(settings, |_, _| ()).await.0
}

impl Place {
    /// A text that mentions us.
    fn to_us(&self, text: &str) -> String {
        format!("<@{}> {text}", self.us)
    }

    fn post(&self, channel: Id, author: Id, draft: impl Into<Draft>) -> Id {
        self.stage.discord.post(channel, author, draft)
    }

    /// Everything that the `number`th request to the model says, from 1.
    async fn prompt(&self, number: usize) -> String {
        let requests = self.stage.model.wait_requests(number).await;
        prompt(&requests[number - 1])
    }

    /// Starts the bot and forgets the calls of its start.
    async fn start(&self) -> Bot {
        let bot = self.stage.start().await;
        // The registration of commands is the last call of a start.
        let registered = self.stage.discord.wait_request("PUT", "/commands", 1).await;
        registered.unwrap();
        self.stage.discord.wait_idle().await.unwrap();
        self.stage.discord.clear_requests();
        bot
    }

    /// Waits for the next answers and gives the newest one's text.
    async fn answer(&self, channel: Id, count: usize) -> String {
        let answers = self.stage.discord.wait_answers(channel, count).await;
        answers.unwrap()[count - 1].content.clone()
    }

    /// Calls a command, and presses the button with which it asks.
    async fn confirms(&self, who: Id, command: &str, button: &str) {
        let discord = &self.stage.discord;
        let called = discord.call(who, self.channel, command, json!({})).await;
        let asked = called.unwrap().answer().await.unwrap();
        let pressed = discord.press(who, asked.message, button);
        pressed.answer().await.unwrap();
    }

    async fn opts_out(&self, who: Id) {
        self.confirms(who, "privacy opt-out", "Opt out and erase")
            .await;
    }

    /// Waits until the bot has dealt with every event so far: a command of an
    /// older version is answered in its turn.
    async fn seen(&self) {
        let stage = &self.stage.discord;
        let call = stage.interact(self.channel, self.ada, &Use::slash("gone", &[]));
        stage.wait_interaction(call, |_| true).await.unwrap();
    }

    /// Waits until a message of the channel says just this.
    async fn wait_for(&self, channel: Id, text: &str) -> Message {
        let fits = |message: &Message| message.content == text;
        let found = self.stage.discord.wait_for_message(channel, fits).await;
        found.unwrap()
    }

    /// What our answers reply to, oldest first.
    fn targets(&self, channel: Id) -> Vec<Option<Id>> {
        let answers = self.stage.discord.answers(channel);
        let target = |answer: &Message| answer.reference?.message;
        answers.iter().map(target).collect()
    }

    /// Takes permissions of ours in the channel away.
    fn deny_us(&self, denied: Permissions) {
        let us = OverwriteOf::Member(self.us);
        let deny = |world: &mut World| world.overwrite(self.channel, us, Permissions::NONE, denied);
        self.stage.discord.world(deny);
    }

    /// GETs so far that read messages or channels.
    fn gets(&self) -> usize {
        self.stage.discord.requests_to("GET", "/channels").len()
    }
}

/// Asserts that a text holds all of these, in this order.
#[track_caller]
fn assert_in_order(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let at = rest.find(part);
        let at = at.unwrap_or_else(|| panic!("{part:?} is missing, or out of order, in:\n{text}"));
        rest = &rest[at + part.len()..];
    }
}

/// One field of the only event of a name.
#[track_caller]
fn only(lines: &[Value], event: &str) -> Value {
    let found = details(lines, event);
    assert_eq!(found.len(), 1, "{event}: {found:?}");
    found[0].clone()
}
