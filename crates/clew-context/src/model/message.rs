//! A message, lean: what routing, selecting and rendering need of Discord's
//! message object, and nothing else.

use super::{ChannelId, GuildId, MessageId, RoleId, UnixMillis, UserId};

/// One message of any author and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id; ids order messages.
    pub id: MessageId,
    /// The channel or thread it stands in.
    pub channel: ChannelId,
    /// The server, where the source says it (never in fetched pages).
    pub guild: Option<GuildId>,
    /// Discord's message type.
    pub kind: MessageKind,
    /// Who wrote it.
    pub author: Author,
    /// When it was posted.
    pub timestamp: UnixMillis,
    /// When it was last edited by a person or bot (`edited_timestamp`).
    pub edited: Option<UnixMillis>,
    /// Discord's message flags.
    pub flags: MessageFlags,
    /// The text as typed, up to 4,000 characters.
    pub content: Box<str>,
    /// What it points at, of whatever kind.
    pub reference: Option<Reference>,
    /// The message it points at, as the source carried it.
    pub referenced: Referenced,
    /// Users mentioned, with the names the source carried. A reply ping is
    /// among them.
    pub mentions: Box<[Mention]>,
    /// Roles mentioned.
    pub mention_roles: Box<[RoleId]>,
    /// Everything that most messages lack.
    pub extras: Option<Box<Extras>>,
    /// Its author opted out ([`OptedOut`](super::OptedOut)): its words were
    /// taken out, and it is never shown.
    pub withheld: bool,
}

/// Who wrote a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The user's, bot's or webhook's id.
    pub id: UserId,
    /// The name people see: server nickname, else global name, else username.
    pub name: Box<str>,
    /// Discord's `bot` flag.
    pub bot: bool,
    /// Posted through a webhook (its id is then the author's).
    pub webhook: bool,
}

/// Discord's message types, as far as a rule of ours names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// Type 0.
    Default,
    /// Type 19.
    Reply,
    /// Type 20, the answer to a slash command.
    ChatInputCommand,
    /// Type 21, first in a thread that hangs on a message.
    ThreadStarter,
    /// Type 23, the answer to a message or user command.
    ContextMenuCommand,
    /// Any other type: joins, pins, boosts, thread notices.
    System(u16),
}

impl MessageKind {
    /// From Discord's number.
    pub const fn from_number(number: u16) -> Self {
        match number {
            0 => Self::Default,
            19 => Self::Reply,
            20 => Self::ChatInputCommand,
            21 => Self::ThreadStarter,
            23 => Self::ContextMenuCommand,
            other => Self::System(other),
        }
    }

    /// Discord's number.
    pub const fn number(self) -> u16 {
        match self {
            Self::Default => 0,
            Self::Reply => 19,
            Self::ChatInputCommand => 20,
            Self::ThreadStarter => 21,
            Self::ContextMenuCommand => 23,
            Self::System(other) => other,
        }
    }

    /// Types 0 and 19: written by somebody, can be a trigger or a target.
    pub const fn is_conversation(self) -> bool {
        matches!(self, Self::Default | Self::Reply)
    }
}

/// Discord's message flags, the bits that a rule of ours reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageFlags(pub u32);

impl MessageFlags {
    /// Its links show no previews.
    pub const SUPPRESS_EMBEDS: Self = Self(1 << 2);
    /// Seen by one user only.
    pub const EPHEMERAL: Self = Self(1 << 6);
    /// "... is thinking".
    pub const LOADING: Self = Self(1 << 7);

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Ephemeral and loading messages of our own come back as
    /// `MESSAGE_CREATE`; they never enter window, block, store or routing.
    pub const fn is_private(self) -> bool {
        self.intersects(Self(Self::EPHEMERAL.0 | Self::LOADING.0))
    }
}

/// `message_reference`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Reply or forward.
    pub kind: ReferenceKind,
    /// The channel of the message pointed at, where said.
    pub channel: Option<ChannelId>,
    /// The message pointed at; absent on some system messages.
    pub message: Option<MessageId>,
}

/// `message_reference.type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// 0: replies, and many system messages.
    Default,
    /// 1: a forward.
    Forward,
    /// A type this version does not know.
    Other(u8),
}

/// `referenced_message`, which may be absent, null or an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Referenced {
    /// Not carried: it may exist, fetch it.
    #[default]
    Absent,
    /// Null: Discord says it was deleted.
    Deleted,
    /// Carried; it does not carry its own referenced message.
    Known(Box<Message>),
}

/// A user mentioned in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// Whom.
    pub id: UserId,
    /// The name people see, as far as the source knew it.
    pub name: Box<str>,
}

/// What a message carries beside its text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// Embeds in order.
    pub embeds: Vec<Embed>,
    /// Uploaded files in order.
    pub attachments: Vec<Attachment>,
    /// Sticker names.
    pub stickers: Vec<Box<str>>,
    /// A poll.
    pub poll: Option<Poll>,
    /// The forwarded message (Discord sends at most one snapshot).
    pub snapshots: Vec<Snapshot>,
    /// Text of components (v2 text displays, section texts, button labels,
    /// select placeholders, media descriptions) in reading order, a line each.
    pub component_text: Vec<Box<str>>,
    /// Parts that could not be read, by field name.
    pub unread: Vec<&'static str>,
}

impl Extras {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An embed, the texts of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Embed {
    /// Provider name, such as a site's.
    pub provider: Option<Box<str>>,
    /// Author line.
    pub author: Option<Box<str>>,
    /// Title.
    pub title: Option<Box<str>>,
    /// Link of the title.
    pub url: Option<Box<str>>,
    /// Body.
    pub description: Option<Box<str>>,
    /// Name and value pairs.
    pub fields: Vec<EmbedField>,
    /// Footer line.
    pub footer: Option<Box<str>>,
    /// It shows an image, video or thumbnail.
    pub media: bool,
}

/// One field of an embed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedField {
    /// Its heading.
    pub name: Box<str>,
    /// Its text.
    pub value: Box<str>,
}

/// An uploaded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// The file's name.
    pub filename: Box<str>,
    /// Media type, where Discord knows it.
    pub content_type: Option<Box<str>>,
    /// Bytes.
    pub size: u64,
    /// Where it can be fetched.
    pub url: Box<str>,
    /// Alternative text.
    pub description: Option<Box<str>>,
    /// The file's text, once it has been fetched for a prompt.
    pub text: Option<Box<str>>,
}

/// A poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// What is asked.
    pub question: Box<str>,
    /// The answers, each with its votes where counted.
    pub answers: Vec<(Box<str>, Option<u64>)>,
}

/// A forwarded message's content (`message_snapshots`); Discord does not say
/// who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The text as typed.
    pub content: Box<str>,
    /// When the original was posted.
    pub timestamp: Option<UnixMillis>,
    /// Its embeds, files, stickers and so on.
    pub extras: Option<Box<Extras>>,
    /// Its author is known to have opted out: its words were taken out.
    pub withheld: bool,
}

impl Message {
    /// A person wrote it: type 0 or 19, not a bot, no webhook.
    pub fn is_human(&self) -> bool {
        self.kind.is_conversation() && !self.author.bot && !self.author.webhook
    }

    /// The message it replies to, if the reference is an edge of a reply
    /// chain: only type 19 with a default reference within the same channel
    /// is one. System messages, crossposts and forwards carry references too.
    pub fn replies_to(&self) -> Option<MessageId> {
        let reference = self.reference.as_ref()?;
        let same_channel = reference
            .channel
            .is_none_or(|channel| channel == self.channel);
        let edge = self.kind == MessageKind::Reply
            && reference.kind == ReferenceKind::Default
            && same_channel;
        if edge { reference.message } else { None }
    }

    /// The message carried along, if it belongs here: the one that a reply names,
    /// in the same channel, or the one that the thread hangs on and bears the id
    /// of. Others are of other channels, which not everybody who reads this one
    /// may view.
    pub fn carried(&self) -> Option<&Message> {
        let Referenced::Known(message) = &self.referenced else {
            return None;
        };
        let belongs = if self.kind == MessageKind::ThreadStarter {
            message.id == self.channel.starter()
        } else {
            let reference = self.reference.as_ref()?;
            let is_same = |channel| channel == self.channel;
            reference.kind == ReferenceKind::Default
                && reference.message == Some(message.id)
                && reference.channel.is_none_or(is_same)
                && is_same(message.channel)
        };
        belongs.then_some(message)
    }

    /// Takes the carried message out, so that each can be kept on its own.
    pub fn take_carried(&mut self) -> Option<Message> {
        let matches = self.carried().is_some();
        match std::mem::take(&mut self.referenced) {
            Referenced::Known(message) if matches => Some(*message),
            Referenced::Known(_) => None,
            other => {
                self.referenced = other;
                None
            }
        }
    }

    /// Bytes it occupies beside its text, about.
    fn overhead(&self) -> usize {
        let mentions: usize = self
            .mentions
            .iter()
            .map(|mention| size_of::<Mention>() + mention.name.len())
            .sum();
        size_of::<Self>() + mentions + self.author.name.len() + 8 * self.mention_roles.len()
    }

    /// Bytes it occupies with its text and parts, about.
    pub fn weight(&self) -> usize {
        let extras = self.extras.as_deref().map_or(0, Extras::weight);
        self.overhead() + self.content.len() + extras
    }
}

impl Extras {
    /// Bytes it occupies, about.
    pub fn weight(&self) -> usize {
        let embeds: usize = self.embeds.iter().map(Embed::weight).sum();
        let files: usize = self
            .attachments
            .iter()
            .map(|file| size_of::<Attachment>() + file.filename.len() + file.url.len())
            .sum();
        let snapshots: usize = self
            .snapshots
            .iter()
            .map(|snapshot| {
                size_of::<Snapshot>()
                    + snapshot.content.len()
                    + snapshot.extras.as_deref().map_or(0, Extras::weight)
            })
            .sum();
        let lines: usize = self.component_text.iter().map(|line| 16 + line.len()).sum();
        size_of::<Self>() + embeds + files + snapshots + lines
    }
}

impl Embed {
    fn weight(&self) -> usize {
        let texts = [
            &self.provider,
            &self.author,
            &self.title,
            &self.url,
            &self.description,
        ];
        let texts: usize = texts
            .iter()
            .filter_map(|text| text.as_deref())
            .map(str::len)
            .sum();
        let fields: usize = self
            .fields
            .iter()
            .map(|field| 32 + field.name.len() + field.value.len())
            .sum();
        size_of::<Self>() + texts + fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_windowed_message_is_lean() {
        assert!(size_of::<Message>() <= 256, "{}", size_of::<Message>());
    }
}
