//! Messages, channels and people for tests of the core: short to write, with
//! fixed ids and times.
//!
//! Message `n` is posted `n` seconds after [`START`], and its id contains that
//! time, as on Discord.

use clew_context::engine::eligible::Us;
use clew_context::model::{
    Attachment, Author, Channel, ChannelId, ChannelKind, Embed, Extras, GuildId, Mention, Message,
    MessageFlags, MessageId, MessageKind, Proxies, Reference, ReferenceKind, Referenced, RoleId,
    ThreadState, UnixMillis, UserId,
};

/// 2026-01-02 10:00 UTC.
pub(crate) const START: UnixMillis = UnixMillis(1_767_348_000_000);
pub(crate) const GUILD: GuildId = GuildId::new(77);
/// A text channel.
pub(crate) const GENERAL: ChannelId = ChannelId::new(500);
pub(crate) const FORUM: ChannelId = ChannelId::new(600);
pub(crate) const OUR_ROLE: RoleId = RoleId::new(8_000);
pub(crate) const OTHER_ROLE: RoleId = RoleId::new(8_001);

/// An author.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Person {
    pub(crate) id: u64,
    pub(crate) name: &'static str,
    pub(crate) bot: bool,
    pub(crate) webhook: bool,
}

const fn person(id: u64, name: &'static str, bot: bool, webhook: bool) -> Person {
    Person {
        id,
        name,
        bot,
        webhook,
    }
}

pub(crate) const ADA: Person = person(11, "Ada", false, false);
pub(crate) const BOB: Person = person(12, "Bob", false, false);
pub(crate) const EVE: Person = person(13, "Eve", false, false);
/// The bot itself.
pub(crate) const CLEW: Person = person(90, "Clew", true, false);
/// Another bot.
pub(crate) const DICE: Person = person(91, "Dice", true, false);
/// A webhook.
pub(crate) const ALERT: Person = person(92, "Alertmanager", false, true);
const PEOPLE: [Person; 6] = [ADA, BOB, EVE, CLEW, DICE, ALERT];

impl Person {
    pub(crate) const fn user(self) -> UserId {
        UserId::new(self.id)
    }

    pub(crate) fn author(self) -> Author {
        Author {
            id: self.user(),
            name: self.name.into(),
            bot: self.bot,
            webhook: self.webhook,
            application: None,
        }
    }
}

pub(crate) fn us() -> Us {
    Us {
        user: CLEW.user(),
        name: CLEW.name.to_owned(),
        roles: vec![OUR_ROLE],
        proxies: Proxies::default(),
    }
}

/// The id of message `n`.
pub(crate) const fn id(n: u64) -> MessageId {
    MessageId::first_at(UnixMillis(START.0 + (n * 1_000).cast_signed()))
}

/// The `n` of a message.
pub(crate) fn number(id: MessageId) -> u64 {
    let since = id.created().since(START);
    u64::try_from(since / 1_000).unwrap_or(0)
}

/// A message of type 0 in [`GENERAL`]; users and roles named in the text are mentioned.
pub(crate) fn said(n: u64, who: Person, text: &str) -> Message {
    Message {
        id: id(n),
        channel: GENERAL,
        guild: Some(GUILD),
        kind: MessageKind::Default,
        author: who.author(),
        timestamp: id(n).created(),
        edited: None,
        flags: MessageFlags(0),
        content: text.into(),
        reference: None,
        referenced: Referenced::Absent,
        mentions: PEOPLE
            .iter()
            .filter(|person| text.contains(&format!("<@{}>", person.id)))
            .map(|person| mention(*person))
            .collect(),
        mention_roles: [OUR_ROLE, OTHER_ROLE]
            .into_iter()
            .filter(|role| text.contains(&format!("<@&{role}>")))
            .collect(),
        extras: None,
        withheld: false,
    }
}

/// A mention of the bot, with or without further text.
pub(crate) fn asked(n: u64, who: Person, text: &str) -> Message {
    said(n, who, format!("<@{}> {text}", CLEW.id).trim())
}

fn mention(person: Person) -> Mention {
    Mention {
        id: person.user(),
        name: person.name.into(),
    }
}

/// Derives a message from another.
pub(crate) trait Shape: Sized {
    fn shaped(self, change: impl FnOnce(&mut Message)) -> Self;

    fn into_channel(self, channel: ChannelId) -> Self {
        self.shaped(|message| message.channel = channel)
    }

    /// A reply (type 19) to message `n` of its channel, which is not included.
    fn replying(self, n: u64) -> Self {
        self.shaped(|message| {
            message.kind = MessageKind::Reply;
            message.reference = Some(Reference {
                kind: ReferenceKind::Default,
                channel: Some(message.channel),
                message: Some(id(n)),
            });
        })
    }

    /// With this message as `referenced_message`.
    fn carrying(self, other: Message) -> Self {
        self.shaped(|message| message.referenced = Referenced::Known(Box::new(other)))
    }

    /// With a `referenced_message` of null.
    fn carrying_null(self) -> Self {
        self.shaped(|message| message.referenced = Referenced::Deleted)
    }

    /// Adds a reply's ping, or another mention that is not in the text.
    fn pinging(self, who: Person) -> Self {
        self.shaped(|message| {
            let mut mentions = message.mentions.to_vec();
            mentions.push(mention(who));
            message.mentions = mentions.into();
        })
    }

    fn of_type(self, number: u16) -> Self {
        self.shaped(|message| message.kind = MessageKind::from_number(number))
    }

    fn flagged(self, flags: MessageFlags) -> Self {
        self.shaped(|message| message.flags = flags)
    }

    fn edited_at(self, n: u64, text: &str) -> Self {
        self.shaped(|message| {
            message.edited = Some(id(n).created());
            message.content = text.into();
        })
    }

    fn with_extras(self, change: impl FnOnce(&mut Extras)) -> Self {
        self.shaped(|message| {
            let mut extras = message.extras.take().unwrap_or_default();
            change(&mut extras);
            message.extras = Some(extras);
        })
    }

    fn with_file(self, name: &str, kind: Option<&str>, size: u64) -> Self {
        let file = file(name, kind, size);
        self.with_extras(|extras| extras.attachments.push(file))
    }

    fn with_embed(self, title: &str, description: &str) -> Self {
        self.with_extras(|extras| {
            extras.embeds.push(Embed {
                title: Some(title.into()),
                description: Some(description.into()),
                ..Embed::default()
            });
        })
    }
}

impl Shape for Message {
    fn shaped(mut self, change: impl FnOnce(&mut Message)) -> Self {
        change(&mut self);
        self
    }
}

pub(crate) fn file(name: &str, kind: Option<&str>, size: u64) -> Attachment {
    Attachment {
        filename: name.into(),
        content_type: kind.map(Into::into),
        size,
        url: format!("https://cdn.discordapp.com/attachments/1/2/{name}").into(),
        description: None,
        text: None,
    }
}

pub(crate) fn text_channel() -> Channel {
    Channel {
        guild: Some(GUILD),
        name: "general".to_owned(),
        ..Channel::new(GENERAL, ChannelKind::Text)
    }
}

/// The id of the thread started from message `n`, or of the forum post whose
/// first message is `n`.
pub(crate) const fn thread_id(n: u64) -> ChannelId {
    ChannelId::new(id(n).get())
}

/// A public thread on message `n` of [`GENERAL`].
pub(crate) fn thread(n: u64) -> Channel {
    Channel {
        id: thread_id(n),
        kind: ChannelKind::PublicThread,
        name: "Release day".to_owned(),
        parent: Some(GENERAL),
        parent_kind: Some(ChannelKind::Text),
        parent_name: Some("general".to_owned()),
        thread: Some(ThreadState::default()),
        ..text_channel()
    }
}

/// A private thread created at `n`.
pub(crate) fn private_thread(n: u64) -> Channel {
    Channel {
        kind: ChannelKind::PrivateThread,
        ..thread(n)
    }
}

/// A post with two tags in [`FORUM`].
pub(crate) fn post(n: u64) -> Channel {
    Channel {
        name: "App crashes on start".to_owned(),
        parent: Some(FORUM),
        parent_kind: Some(ChannelKind::Forum),
        parent_name: Some("help".to_owned()),
        tags: vec!["bug".to_owned(), "android".to_owned()],
        ..thread(n)
    }
}
