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
}

/// Declares methods that change a draft and return it.
macro_rules! setters {
    ($($(#[$doc:meta])+ $name:ident($draft:ident $(, $value:ident: $type:ty)*) => $change:expr;)+) => {
        impl Draft {$(
            $(#[$doc])+
            #[must_use]
            pub fn $name(self $(, $value: $type)*) -> Self {
                let mut $draft = self;
                $change;
                $draft
            }
        )+}
    };
}

setters! {
    /// Sets the message type.
    kind(draft, kind: u8) => draft.kind = Some(kind);
    /// Makes it a reply that mentions the author of the other message.
    reply_to(draft, message: Id) => draft.reply_to = Some(message);
    /// Makes the reply not mention the other message's author.
    without_ping(draft) => draft.ping = false;
    /// Makes it a forward of a message in any channel.
    forward_of(draft, channel: Id, message: Id) => draft.forward_of = Some((channel, message));
    /// Sets a reference that is neither reply nor forward.
    reference(draft, reference: Reference) => draft.reference = Some(reference);
    /// Sets a `referenced_message` other than Discord's usual one.
    referenced(draft, referenced: Referenced) => draft.referenced = referenced;
    /// Adds an embed.
    embed(draft, embed: Value) => draft.embeds.push(embed);
    /// Adds a file.
    attachment(draft, file: File) => draft.attachments.push(file);
    /// Adds a sticker.
    sticker(draft, name: &str) => draft.stickers.push(name.to_owned());
    /// Makes it a webhook's message, under this name; the author given is the webhook's id.
    webhook(draft, name: &str) => draft.webhook = Some(name.to_owned());
    /// Makes the webhook an application's own.
    application(draft, application: impl Into<Id>) => draft.application = Some(application.into());
    /// Adds message flags.
    flags(draft, flags: u64) => draft.flags |= flags;
    /// Sets when it was posted, in Unix milliseconds.
    at_ms(draft, unix_ms: i64) => draft.at_ms = Some(unix_ms);
    /// Sets the id.
    id(draft, id: impl Into<Id>) => draft.id = Some(id.into());
    /// Sets when it was edited, in Unix milliseconds.
    edited_ms(draft, unix_ms: i64) => draft.edited_ms = Some(unix_ms);
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
