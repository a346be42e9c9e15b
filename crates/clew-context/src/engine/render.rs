//! One renderer for trigger, block, pointed-at and starter: everything a
//! message shows, as plain text, sanitised, with ids turned into names.

mod markup;
mod parts;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::model::{ChannelId, Item, Message, Place, RoleId, UserId};

use super::eligible::Us;
use super::sanitise::{self, Names};
use super::shorten;

/// Names that the shell knows: of a guild's members, roles and channels, or of
/// a recording's.
pub trait Directory {
    /// The name people see of a user.
    fn user(&self, id: UserId) -> Option<String>;
    /// A role's name.
    fn role(&self, id: RoleId) -> Option<String>;
    /// A channel's name or a thread's title.
    fn channel(&self, id: ChannelId) -> Option<String>;
}

/// Knows nothing: ids stay anonymous.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Directory for Nobody {
    fn user(&self, _: UserId) -> Option<String> {
        None
    }
    fn role(&self, _: RoleId) -> Option<String> {
        None
    }
    fn channel(&self, _: ChannelId) -> Option<String> {
        None
    }
}

/// Turns messages into text, with one set of names for the whole prompt.
#[derive(Debug)]
pub struct Renderer<'a, D> {
    us: &'a Us,
    directory: &'a D,
    names: Names,
}

impl<'a, D: Directory> Renderer<'a, D> {
    /// A renderer for one prompt.
    pub fn new(us: &'a Us, directory: &'a D) -> Self {
        Self {
            us,
            directory,
            names: Names::new(&us.name),
        }
    }

    /// The name shown for a message's author, unique within the prompt.
    pub fn author(&mut self, message: &Message) -> String {
        if self.us.wrote(message) {
            return self.names.ours().to_owned();
        }
        let known = self
            .directory
            .user(message.author.id)
            .filter(|_| !message.author.webhook);
        let raw = known.unwrap_or_else(|| message.author.name.to_string());
        self.names.assign(speaker(message), &raw).to_owned()
    }

    /// Everything the message shows. Empty when there is nothing.
    pub fn message(&mut self, message: &Message) -> String {
        let mut text = self.markup(&message.content, message);
        if let Some(extras) = message.extras.as_deref() {
            for part in parts::lines(extras) {
                let part = self.part(part, message);
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&part);
            }
        }
        sanitise::text(&text).trim().to_owned()
    }

    /// A message as a prompt shows it: under its author's name, of `text`,
    /// which [`message`](Self::message) gave, at most `max_chars` scalars.
    pub fn item(
        &mut self,
        message: Arc<Message>,
        place: Place,
        text: String,
        max_chars: usize,
    ) -> Item {
        let shortened = shorten::head_and_tail(&text, max_chars);
        Item {
            place,
            ours: self.us.wrote(&message),
            name: self.author(&message),
            cut: shortened.is_some(),
            text: shortened.unwrap_or(text),
            message,
        }
    }

    /// The trigger's own words: as `message`, without the mentions of us at
    /// either end. One within a sentence or in code is part of it.
    pub fn trigger(&mut self, message: &Message) -> String {
        let mut own = message.clone();
        own.content = self.us.without_address(&message.content).into();
        self.message(&own)
    }

    /// What is stored of a trigger: the asker's own text, without embeds, files,
    /// forwards and the mentions of us at either end.
    pub fn own_words(&mut self, message: &Message) -> String {
        let own = self.us.without_address(&message.content);
        let text = self.markup(own, message);
        sanitise::text(&text).trim().to_owned()
    }

    /// The name of somebody who wrote none of the messages shown, unique
    /// within the prompt like an author's.
    pub fn named(&mut self, id: UserId, raw: &str) -> String {
        self.names.assign(id.get(), raw).to_owned()
    }

    /// Our name.
    pub fn our_name(&self) -> &str {
        self.names.ours()
    }

    fn part(&mut self, part: parts::Part, message: &Message) -> String {
        match part {
            parts::Part::Plain(text) => text,
            parts::Part::Markup(text) => self.markup(&text, message),
        }
    }

    fn markup(&mut self, text: &str, message: &Message) -> String {
        markup::replace(text, |id| self.resolve(id, message))
    }

    fn resolve(&mut self, id: markup::Id, message: &Message) -> String {
        match id {
            markup::Id::User(id) => format!("@{}", self.user(id, message)),
            markup::Id::Role(id) => match self.directory.role(id) {
                Some(name) => format!("@{}", sanitise::name(&name)),
                None => "@unknown role".to_owned(),
            },
            markup::Id::Channel(id) => format!("#{}", self.channel(id, message)),
            markup::Id::Link(id) => format!("(message in #{})", self.channel(id, message)),
        }
    }

    fn user(&mut self, id: UserId, message: &Message) -> String {
        if id == self.us.user {
            return self.names.ours().to_owned();
        }
        let carried = || {
            let mention = message.mentions.iter().find(|mention| mention.id == id);
            mention.map(|mention| mention.name.to_string())
        };
        match self.directory.user(id).or_else(carried) {
            Some(raw) => self.names.assign(id.get(), &raw).to_owned(),
            None => "unknown user".to_owned(),
        }
    }

    fn channel(&self, id: ChannelId, message: &Message) -> String {
        let carried = || {
            let channels = &message.extras.as_deref()?.mention_channels;
            channels
                .iter()
                .find(|(channel, _)| *channel == id)
                .map(|(_, name)| name.to_string())
        };
        let name = self.directory.channel(id).or_else(carried);
        name.map_or_else(
            || "unknown channel".to_owned(),
            |name| sanitise::name(&name),
        )
    }
}

/// Who speaks. One webhook may post under many names, each another speaker.
fn speaker(message: &Message) -> u64 {
    let id = message.author.id.get();
    if !message.author.webhook {
        return id;
    }
    let mut hasher = DefaultHasher::new();
    (id, &message.author.name).hash(&mut hasher);
    hasher.finish()
}
