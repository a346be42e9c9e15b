//! A message before it has an id.

use serde_json::Value;

use super::ids::Id;
use super::world::flag;

/// A message to be posted. Plain text converts into one: `simulator.post(channel,
/// author, "hello")`.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The text; `<@id>`, `<@&id>` and `@everyone` in it become mentions.
    pub content: String,
    /// The message type; `None`: 0, or 19 for a reply.
    pub kind: Option<u8>,
    /// The message of the same channel that it replies to.
    pub reply_to: Option<Id>,
    /// Whether the reply mentions the author it replies to.
    pub ping: bool,
    /// Channel and message that it forwards.
    pub forward_of: Option<(Id, Id)>,
    /// A reference that is neither a reply in this channel nor a forward: that of a
    /// pin, a crosspost or a thread starter.
    pub reference: Option<Reference>,
    /// What is sent as `referenced_message`.
    pub referenced: Referenced,
    /// Embed objects; `"type": "rich"` is added if missing.
    pub embeds: Vec<Value>,
    /// Files.
    pub attachments: Vec<File>,
    /// Names of stickers.
    pub stickers: Vec<String>,
    /// A poll: its question and its answers.
    pub poll: Option<(String, Vec<String>)>,
    /// Component objects; components v2 need the flag `1 << 15`.
    pub components: Vec<Value>,
    /// The webhook's name; the author's id is then the webhook's.
    pub webhook: Option<String>,
    /// The application that owns the webhook.
    pub application: Option<Id>,
    /// Message flags.
    pub flags: u64,
    /// When it was posted, in Unix milliseconds; `None`: now.
    pub at_ms: Option<i64>,
    /// Its id; `None`: a new one with that time.
    pub id: Option<Id>,
    /// When it was edited, in Unix milliseconds.
    pub edited_ms: Option<i64>,
    /// Whether it is pinned.
    pub pinned: bool,
}

/// The value of `referenced_message`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Referenced {
    /// As on Discord: the message, or null if it was deleted.
    #[default]
    Derived,
    /// The field is missing: Discord did not try to fetch it.
    Absent,
    /// Null although the message exists.
    Null,
    /// Another message of the channel than the one referenced.
    Other(Id),
}

/// A message reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// 0: replies and all system messages; 1: forwards.
    pub kind: u8,
    /// The channel of the message.
    pub channel: Id,
    /// The message; `None` for a thread-created notice.
    pub message: Option<Id>,
}

impl Reference {
    /// What replies and system messages refer to.
    pub(super) const fn to(channel: Id, message: Option<Id>) -> Self {
        Self {
            kind: 0,
            channel,
            message,
        }
    }
}

/// An attached file; the CDN routes serve its bytes.
#[derive(Clone, Debug)]
pub struct File {
    /// File name.
    pub name: String,
    /// MIME type.
    pub content_type: String,
    /// Contents.
    pub bytes: Vec<u8>,
    /// Alternative text.
    pub description: Option<String>,
}

impl File {
    /// A UTF-8 text file.
    pub fn text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            content_type: "text/plain; charset=utf-8".to_owned(),
            bytes: text.as_bytes().to_vec(),
            description: None,
        }
    }
}

impl Draft {
    /// A message with this text.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            ping: true,
            ..Self::default()
        }
    }

    /// A system message of this type, such as 7 (join) or 8 (boost).
    pub fn system(kind: u8) -> Self {
        Self::new("").kind(kind)
    }

    /// Sets the message type.
    #[must_use]
    pub fn kind(mut self, kind: u8) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Makes it a reply that mentions the author of the other message.
    #[must_use]
    pub fn reply_to(mut self, message: Id) -> Self {
        self.reply_to = Some(message);
        self
    }

    /// Makes the reply not mention the other message's author.
    #[must_use]
    pub fn without_ping(mut self) -> Self {
        self.ping = false;
        self
    }

    /// Makes it a forward of a message in any channel.
    #[must_use]
    pub fn forward_of(mut self, channel: Id, message: Id) -> Self {
        self.forward_of = Some((channel, message));
        self
    }

    /// Sets a reference that is neither reply nor forward.
    #[must_use]
    pub fn reference(mut self, reference: Reference) -> Self {
        self.reference = Some(reference);
        self
    }

    /// Sets a `referenced_message` other than Discord's usual one.
    #[must_use]
    pub fn referenced(mut self, referenced: Referenced) -> Self {
        self.referenced = referenced;
        self
    }

    /// Adds an embed.
    #[must_use]
    pub fn embed(mut self, embed: Value) -> Self {
        self.embeds.push(embed);
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn attachment(mut self, file: File) -> Self {
        self.attachments.push(file);
        self
    }

    /// Adds a sticker.
    #[must_use]
    pub fn sticker(mut self, name: &str) -> Self {
        self.stickers.push(name.to_owned());
        self
    }

    /// Sets a poll.
    #[must_use]
    pub fn poll(mut self, question: &str, answers: &[&str]) -> Self {
        let answers = answers.iter().map(|&answer| answer.to_owned()).collect();
        self.poll = Some((question.to_owned(), answers));
        self
    }

    /// Sets components; v2 components (text display, container) set their flag.
    #[must_use]
    pub fn components(mut self, components: Vec<Value>) -> Self {
        let v2 = |component: &Value| component["type"].as_u64().is_some_and(|kind| kind > 8);
        if components.iter().any(v2) {
            self.flags |= flag::COMPONENTS_V2;
        }
        self.components = components;
        self
    }

    /// Makes it a webhook's message, under this name; the author given is the webhook's id.
    #[must_use]
    pub fn webhook(mut self, name: &str) -> Self {
        self.webhook = Some(name.to_owned());
        self
    }

    /// Makes the webhook an application's own.
    #[must_use]
    pub fn application(mut self, application: impl Into<Id>) -> Self {
        self.application = Some(application.into());
        self
    }

    /// Adds message flags.
    #[must_use]
    pub fn flags(mut self, flags: u64) -> Self {
        self.flags |= flags;
        self
    }

    /// Sets when it was posted, in Unix milliseconds.
    #[must_use]
    pub fn at_ms(mut self, unix_ms: i64) -> Self {
        self.at_ms = Some(unix_ms);
        self
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<Id>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets when it was edited, in Unix milliseconds.
    #[must_use]
    pub fn edited_ms(mut self, unix_ms: i64) -> Self {
        self.edited_ms = Some(unix_ms);
        self
    }
}

impl From<&str> for Draft {
    fn from(content: &str) -> Self {
        Self::new(content)
    }
}

impl From<String> for Draft {
    fn from(content: String) -> Self {
        Self::new(content)
    }
}
