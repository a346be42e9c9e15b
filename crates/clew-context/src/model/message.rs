//! A slim message: only those fields of Discord's message object that routing,
//! selecting and rendering need.

use super::number::numbered;
use super::{ApplicationId, ChannelId, GuildId, MessageId, RoleId, UnixMillis, UserId};

/// A message of any type, by any author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id; ids sort by time.
    pub id: MessageId,
    /// The channel or thread it was posted in.
    pub channel: ChannelId,
    /// The server, if the source says so (fetched pages never do).
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
    /// The text as typed, at most 4,000 characters.
    pub content: Box<str>,
    /// The message it refers to: replied to, forwarded or otherwise.
    pub reference: Option<Reference>,
    /// The referenced message, if the source included it.
    pub referenced: Referenced,
    /// Mentioned users, with the names that the source included. Contains the user
    /// pinged by a reply.
    pub mentions: Box<[Mention]>,
    /// Mentioned roles.
    pub mention_roles: Box<[RoleId]>,
    /// Everything else, which most messages lack.
    pub extras: Option<Box<Extras>>,
    /// Its author opted out ([`OptedOut`](super::OptedOut)): its words were
    /// removed, and it is never shown.
    pub withheld: bool,
}

/// Who wrote a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The user's, bot's or webhook's id.
    pub id: UserId,
    /// The name people see: server nickname, else display name, else username.
    pub name: Box<str>,
    /// Discord's `bot` flag.
    pub bot: bool,
    /// Posted through a webhook, whose id is then the author's.
    pub webhook: bool,
    /// The application that owns the webhook, if one does.
    pub application: Option<ApplicationId>,
}

numbered! {
    /// Discord's message types, those that our rules distinguish.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    MessageKind: u16 {
        /// Any other type, such as joins, pins, boosts and thread notices.
        System,
        /// Written by somebody.
        Default = 0,
        /// The same, to another message.
        Reply = 19,
        /// A reply to a slash command.
        ChatInputCommand = 20,
        /// The first message of a thread started from a message.
        ThreadStarter = 21,
        /// A reply to a user or message command.
        ContextMenuCommand = 23,
    }
}

impl MessageKind {
    /// Types 0 and 19: written by somebody, so a possible trigger or target.
    pub const fn is_conversation(self) -> bool {
        matches!(self, Self::Default | Self::Reply)
    }
}

/// Discord's message flags; constants exist for the bits our rules read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MessageFlags(pub u32);

impl MessageFlags {
    /// Link previews are hidden.
    pub const SUPPRESS_EMBEDS: Self = Self(1 << 2);
    /// Visible to one user only.
    pub const EPHEMERAL: Self = Self(1 << 6);
    /// The "... is thinking" placeholder.
    pub const LOADING: Self = Self(1 << 7);

    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it is ephemeral or loading. Our own such messages come back as
    /// `MESSAGE_CREATE`, but never enter window, block, store or routing.
    pub const fn is_private(self) -> bool {
        self.intersects(Self(Self::EPHEMERAL.0 | Self::LOADING.0))
    }
}

/// `message_reference`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Reply or forward.
    pub kind: ReferenceKind,
    /// The channel of the referenced message, if given.
    pub channel: Option<ChannelId>,
    /// The referenced message; absent on some system messages.
    pub message: Option<MessageId>,
}

numbered! {
    /// `message_reference.type`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    ReferenceKind: u8 {
        /// A type this version does not know.
        Other,
        /// Replies and many system messages.
        Default = 0,
        /// A forward.
        Forward = 1,
    }
}

/// `referenced_message`, which may be absent, null or an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Referenced {
    /// Not included: it may exist and can be fetched.
    #[default]
    Absent,
    /// Null: Discord says that it was deleted.
    Deleted,
    /// Included; it does not include a referenced message of its own.
    Known(Box<Message>),
}

/// A mentioned user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The user's id.
    pub id: UserId,
    /// The name people see, if the source knew it.
    pub name: Box<str>,
}

/// What a message contains besides its text.
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
    /// Text of components (text displays, sections, button labels, select
    /// placeholders, media descriptions) in reading order, one line each.
    pub component_text: Vec<Box<str>>,
    /// Field names of the parts that could not be read.
    pub unread: Vec<&'static str>,
}

impl Extras {
    /// Whether it has nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Its files, then those of what it forwards.
    pub fn files(&self) -> impl Iterator<Item = &Attachment> {
        let snapshots = self.snapshots.iter();
        let forwarded = snapshots.filter_map(|snapshot| snapshot.extras.as_deref());
        let forwarded = forwarded.flat_map(|extras| &extras.attachments);
        self.attachments.iter().chain(forwarded)
    }
}

/// The texts of an embed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Embed {
    /// Provider name, such as a website's.
    pub provider: Option<Box<str>>,
    /// Author line.
    pub author: Option<Box<str>>,
    /// Title.
    pub title: Option<Box<str>>,
    /// Link behind the title.
    pub url: Option<Box<str>>,
    /// Body.
    pub description: Option<Box<str>>,
    /// Name and value pairs.
    pub fields: Vec<EmbedField>,
    /// Footer line.
    pub footer: Option<Box<str>>,
    /// Whether it shows an image, video or thumbnail.
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
    /// Media type, if Discord knows it.
    pub content_type: Option<Box<str>>,
    /// Size in bytes.
    pub size: u64,
    /// Where to download it.
    pub url: Box<str>,
    /// Alternative text.
    pub description: Option<Box<str>>,
    /// The file's text, once it has been fetched for a prompt.
    pub text: Option<Box<str>>,
}

impl Attachment {
    /// Whether it claims to be of these kinds: by its media type, or where that is missing or
    /// generic by its name's extension, in lower case.
    pub fn claims_to_be(&self, has_type: impl Fn(&str) -> bool, endings: &[&str]) -> bool {
        let kind = self.content_type.as_deref().unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_unknown = kind.is_empty() || kind == "application/octet-stream";
        let ending = self.filename.rsplit_once('.');
        let ending = ending.map(|(_, ending)| ending.to_ascii_lowercase());
        let has_ending = |ending: String| endings.contains(&ending.as_str());
        has_type(kind) || is_unknown && ending.is_some_and(has_ending)
    }

    /// Whether its address holds no longer: Discord signs it with an end, in seconds as `ex`, about a
    /// day after it was given (discord-api-docs, "Signed Attachment CDN URLs").
    pub fn is_stale(&self, now: UnixMillis) -> bool {
        let query = self.url.split_once('?').map_or("", |(_, query)| query);
        let end = query.split('&').find_map(|part| part.strip_prefix("ex="));
        let end = end.and_then(|end| i64::from_str_radix(end, 16).ok());
        end.is_some_and(|end| end.saturating_mul(1_000) <= now.0)
    }

    /// Whether it is the same file, at whatever address.
    pub fn is_same(&self, other: &Self) -> bool {
        self.path() == other.path()
    }

    /// Its address without what signs it.
    fn path(&self) -> &str {
        self.url.split('?').next().unwrap_or_default()
    }
}

/// A poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The question.
    pub question: Box<str>,
    /// The answers, each with its votes if they were counted.
    pub answers: Vec<(Box<str>, Option<u64>)>,
}

/// The content of a forwarded message (`message_snapshots`); Discord does not
/// include its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The text as typed.
    pub content: Box<str>,
    /// When the original was posted.
    pub timestamp: Option<UnixMillis>,
    /// Embeds, files, stickers and so on.
    pub extras: Option<Box<Extras>>,
    /// Its author is known to have opted out: the words were removed.
    pub withheld: bool,
}

impl Message {
    /// Whether a person's own account wrote it: type 0 or 19, not a bot or webhook.
    pub fn is_human(&self) -> bool {
        self.kind.is_conversation() && !self.author.bot && !self.author.webhook
    }

    /// The message it replies to, if the reference is a link of a reply chain: type
    /// 19 with a default reference in the same channel. System messages, crossposts
    /// and forwards have references too.
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

    /// The referenced message that came along, if it may be shown here: a message
    /// of the same channel that this one replies to, or the message a thread was
    /// started from, which has the thread's id. Others come from channels that
    /// readers of this one may not be able to view.
    pub fn referenced_message(&self) -> Option<&Message> {
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

    /// Takes out the included message, so that both can be kept separately.
    pub fn take_referenced_message(&mut self) -> Option<Message> {
        let matches = self.referenced_message().is_some();
        match std::mem::take(&mut self.referenced) {
            Referenced::Known(message) if matches => Some(*message),
            Referenced::Known(_) => None,
            other => {
                self.referenced = other;
                None
            }
        }
    }

    /// Approximate bytes it occupies without its text.
    fn overhead(&self) -> usize {
        let mentions: usize = self
            .mentions
            .iter()
            .map(|mention| size_of::<Mention>() + mention.name.len())
            .sum();
        size_of::<Self>() + mentions + self.author.name.len() + 8 * self.mention_roles.len()
    }

    /// Approximate bytes it occupies with its text and parts.
    pub fn weight(&self) -> usize {
        let extras = self.extras.as_deref().map_or(0, Extras::weight);
        self.overhead() + self.content.len() + extras
    }
}

impl Extras {
    /// Approximate bytes it occupies.
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
