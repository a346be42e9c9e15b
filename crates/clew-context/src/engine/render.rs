//! The renderer for trigger, block, pointed-at and starter: everything a message
//! shows, as sanitised plain text, with ids replaced by names.

pub(super) mod markup;
mod parts;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::model::{
    BlockItem, BlockPlace, ChannelId, Mention, Message, OmitReason, RoleId, Speaker, UserId,
};

use super::eligible::Us;
use super::frame;
use super::sanitise::{self, UniqueNames};
use super::shorten;

/// Scalars of a message that are read at least before its middle is skipped: more
/// than Discord's longest text, 4,000. With embeds, alternative texts and a
/// forwarded message, a message can have tens of thousands.
const READ_CHARS: usize = 5_000;

/// How a line of links under an answer of ours begins, which cites messages. It is for people: a
/// model would repeat it.
pub const LINKS: &str = "-# [\\[1\\]](<";

/// A text of ours without lines of links.
pub fn without_links(text: &str) -> Cow<'_, str> {
    if !text.contains(LINKS) {
        return Cow::Borrowed(text);
    }
    let lines = text.lines().filter(|line| !line.starts_with(LINKS));
    Cow::Owned(lines.collect::<Vec<_>>().join("\n").trim_end().to_owned())
}

/// The names that those who read the answer of one turn may see: members, roles and
/// channels of the trigger's server only, and of its channels and threads those that
/// they may view now. In a direct message there are none.
pub trait Directory {
    /// A user's name as people see it.
    fn user(&self, id: UserId) -> Option<String>;
    /// The last name we saw for a user, for a mention whose name no message contains.
    fn heard(&self, _: UserId) -> Option<String> {
        None
    }
    /// A role's name.
    fn role(&self, id: RoleId) -> Option<String>;
    /// A channel's name or a thread's title.
    fn channel(&self, id: ChannelId) -> Option<String>;
}

/// Knows no names: ids stay anonymous.
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

/// Unicode scalars of all that a message shows, before its markup is replaced.
pub(super) fn shown_chars(us: &Us, message: &Message) -> usize {
    let parts = parts::all(message, us.wrote(message));
    let lines = parts.iter().map(|part| part.text().chars().count() + 1);
    lines.sum::<usize>() - 1
}

/// Turns messages into text, with one set of names for the whole prompt.
pub struct Renderer<'a> {
    us: &'a Us,
    directory: &'a dyn Directory,
    names: UniqueNames,
    /// Authors of the messages shown, with the name from their messages.
    present: HashMap<UserId, &'a str>,
}

impl<'a> Renderer<'a> {
    /// A renderer for one prompt.
    pub fn new(us: &'a Us, directory: &'a dyn Directory) -> Self {
        Self {
            us,
            directory,
            names: UniqueNames::new(&us.name),
            present: HashMap::new(),
        }
    }

    /// Lets the authors of these messages be named wherever the prompt mentions them.
    pub fn meet(&mut self, messages: impl IntoIterator<Item = &'a Message>) {
        let people = messages
            .into_iter()
            .filter(|message| !message.author.webhook && !message.author.name.is_empty());
        self.present
            .extend(people.map(|message| (message.author.id, &*message.author.name)));
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
        let speaker = number(self.us.speaker(message));
        self.names.assign(speaker, &raw).to_owned()
    }

    /// Everything the message shows; empty if there is nothing.
    pub fn message(&mut self, message: &Message) -> String {
        self.text(self.parts(message), message)
    }

    /// All that the message shows to models.
    fn parts(&self, message: &Message) -> Vec<parts::MessagePart> {
        let is_ours = self.us.wrote(message);
        let mut parts = parts::all(message, is_ours);
        if is_ours
            && let Some(parts::MessagePart::Markup(text)) = parts.first_mut()
            && let Cow::Owned(shorter) = without_links(text)
        {
            *text = shorter;
        }
        parts
    }

    /// A message as a frame shows it: with its author's name, its further lines
    /// indented, at most `max_chars` scalars.
    pub fn item(
        &mut self,
        message: Arc<Message>,
        place: BlockPlace,
        max_chars: usize,
    ) -> BlockItem {
        let (text, is_cut) = self.within(&message, max_chars);
        BlockItem {
            place,
            ours: self.us.wrote(&message),
            proxied: self.us.proxy_of(&message).is_some(),
            name: self.author(&message),
            cut: is_cut.then_some(OmitReason::MsgChars),
            text,
            message,
        }
    }

    /// What the message shows, and whether its middle was cut out. Parts far from
    /// both ends are not even rendered.
    fn within(&mut self, message: &Message, max_chars: usize) -> (String, bool) {
        let read = READ_CHARS.max(max_chars.saturating_mul(2));
        let parts::Ends { head, cut, tail } = parts::ends(self.parts(message), read);
        let head = frame::indented(&self.text(head, message));
        if cut > 0 {
            let tail = frame::indented(&self.text(tail, message));
            return (shorten::ends(&head, &tail, cut, max_chars), true);
        }
        match shorten::head_and_tail(&head, max_chars) {
            Some(shortened) => (shortened, true),
            None => (head, false),
        }
    }

    fn text(&mut self, parts: Vec<parts::MessagePart>, message: &Message) -> String {
        let mut text = String::new();
        for part in parts {
            let part = self.part(part, &message.mentions);
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
        }
        sanitise::text(&text).trim().to_owned()
    }

    /// The trigger's own words: like `message`, without mentions of us at either
    /// end. A mention within a sentence or in code is part of the text.
    pub fn trigger(&mut self, message: &Message) -> String {
        let mut own = message.clone();
        own.content = self.us.without_address(&message.content).into();
        self.message(&own)
    }

    /// Stored text, sanitised. Its mentions, kept as they were typed, get the names
    /// that may be seen now.
    pub fn stored(&mut self, words: &str) -> String {
        sanitise::text(&self.markup(words, &[]))
    }

    /// The name of somebody who wrote none of the messages shown, unique within the
    /// prompt like an author's.
    pub fn named(&mut self, id: UserId, raw: &str) -> String {
        self.names.assign(id.get(), raw).to_owned()
    }

    /// Our name.
    pub fn our_name(&self) -> &str {
        self.names.ours()
    }

    fn part(&mut self, part: parts::MessagePart, mentions: &[Mention]) -> String {
        match part {
            parts::MessagePart::Plain(text) => text,
            parts::MessagePart::Markup(text) => self.markup(&text, mentions),
        }
    }

    fn markup(&mut self, text: &str, mentions: &[Mention]) -> String {
        markup::replace(text, |id| self.resolve(id, mentions))
    }

    fn resolve(&mut self, id: markup::MarkupId, mentions: &[Mention]) -> String {
        match id {
            markup::MarkupId::User(id) => format!("@{}", self.user(id, mentions)),
            markup::MarkupId::Role(id) => match self.directory.role(id) {
                Some(name) => format!("@{}", sanitise::name(&name)),
                None => "@unknown role".to_owned(),
            },
            markup::MarkupId::Channel(id) => format!("#{}", self.channel(id)),
            markup::MarkupId::Link(id) => format!("(message in #{})", self.channel(id)),
        }
    }

    fn user(&mut self, id: UserId, mentions: &[Mention]) -> String {
        if id == self.us.user {
            return self.names.ours().to_owned();
        }
        let mentioned = || {
            let mention = mentions.iter().find(|mention| mention.id == id);
            mention.map(|mention| mention.name.to_string())
        };
        let present = || self.present.get(&id).map(|name| (*name).to_owned());
        let heard = || self.directory.heard(id);
        let known = self.directory.user(id).or_else(mentioned);
        match known.or_else(present).or_else(heard) {
            Some(raw) => self.names.assign(id.get(), &raw).to_owned(),
            None => "unknown user".to_owned(),
        }
    }

    fn channel(&self, id: ChannelId) -> String {
        self.directory.channel(id).map_or_else(
            || "unknown channel".to_owned(),
            |name| sanitise::name(&name),
        )
    }
}

/// A user's id; for those who share one, a number that differs by name as well.
fn number(speaker: Speaker<'_>) -> u64 {
    if let Speaker::User(id) = speaker {
        return id.get();
    }
    let mut hasher = DefaultHasher::new();
    speaker.hash(&mut hasher);
    hasher.finish()
}
