//! Discord's message object.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::extras::{self, Carried};
use super::part::{self, Count, List, Object, Part, Text, note};
use super::wire::{WireMember, WireMessage, WireReference, WireReferenced, WireUser};
use super::{Incoming, NotAPage, ReadPage, Unreadable, WhyUnreadable};
use crate::model::{
    ApplicationId, Attachment, Author, ChannelKind, Extras, Mention, Message, MessageFlags,
    MessageKind, Reference, ReferenceKind, Referenced, UnixMillis, UserId,
};

/// Reads one message of a page, a single fetch or an event.
///
/// # Errors
/// [`Unreadable`] without an id, channel or author.
pub fn message(json: &str) -> Result<Message, Unreadable> {
    authored(parse(json)?)
}

fn authored(wire: WireMessage<'_>) -> Result<Message, Unreadable> {
    if wire.author_id().is_none() {
        return Err(wire.unreadable(WhyUnreadable::Author));
    }
    convert(wire, referenced)
}

/// Reads the `d` of a `MESSAGE_CREATE` or `MESSAGE_UPDATE`.
///
/// # Errors
/// [`Unreadable`] without an id or channel. An event without an author can be
/// read, but is not [`complete`](Incoming::complete).
pub fn incoming(json: &str) -> Result<Incoming, Unreadable> {
    let mut wire = parse(json)?;
    let channel_kind = wire.channel_type.get();
    let has_content = matches!(wire.content, Part::Read(_));
    let complete = has_content && wire.author_id().is_some();
    let roles = match &mut wire.member {
        Part::Read(member) => std::mem::take(&mut member.roles),
        Part::Absent | Part::Null | Part::Unread => Part::Absent,
    };
    let mut unread = Vec::new();
    let are_told = matches!(roles, Part::Read(_));
    let roles = roles.elements("member", &mut unread);
    let mut message = convert(wire, referenced)?;
    let are_told = message.author.webhook || are_told && unread.is_empty();
    if !unread.is_empty() {
        let extras = message.extras.get_or_insert_default();
        for name in unread {
            note(name, &mut extras.unread);
        }
    }
    Ok(Incoming {
        message,
        channel_kind: channel_kind.map(ChannelKind::from_number),
        roles: are_told.then_some(roles),
        complete,
        has_content,
    })
}

/// Reads an answer of Get Channel Messages, element by element and in any order;
/// returns the messages oldest first.
///
/// # Errors
/// [`NotAPage`] if it is not a JSON array. A message that cannot be read is not
/// an error: its id, if any, is returned separately.
pub fn page(json: &[u8]) -> Result<ReadPage, NotAPage> {
    // Nearly always everything is as expected; then one pass suffices.
    let read: Vec<Result<Message, Unreadable>> =
        if let Ok(objects) = serde_json::from_slice::<Vec<Object<WireMessage<'_>>>>(json) {
            let wires = objects.into_iter().map(|object| object.0);
            wires.map(authored).collect()
        } else {
            let elements: Vec<&RawValue> = serde_json::from_slice(json).map_err(NotAPage)?;
            let elements = elements.into_iter().map(RawValue::get);
            elements.map(message).collect()
        };
    let mut page = ReadPage {
        elements: read.len(),
        ..ReadPage::default()
    };
    for element in read {
        match element {
            Ok(message) => page.messages.push(message),
            Err(error) => page.unreadable.extend(error.id),
        }
    }
    page.messages.sort_unstable_by_key(|message| message.id);
    page.messages.dedup_by_key(|message| message.id);
    page.unreadable.sort_unstable();
    Ok(page)
}

/// Reads a single file, as the option of a command has it.
///
/// # Errors
/// [`Unreadable`] if it is no JSON object, has no address, or its name or size cannot be read.
pub fn attachment(json: &str) -> Result<Attachment, Unreadable> {
    let unreadable = Unreadable::of(WhyUnreadable::Json);
    let mut unread = Vec::new();
    let wire = part::read(json).map_err(|_| unreadable)?;
    let file = extras::attachment(wire, &mut unread);
    let is_whole = unread.is_empty() && !file.url.is_empty();
    is_whole.then_some(file).ok_or(unreadable)
}

/// Reads the messages of an answer of Get Channel Pins, the last pinned first. Those that cannot
/// be read are left out.
///
/// # Errors
/// [`NotAPage`] if it has no list of pins.
pub fn pins(json: &[u8]) -> Result<Vec<Message>, NotAPage> {
    let page: WirePins<'_> = serde_json::from_slice(json).map_err(NotAPage)?;
    let objects = page.items.iter().map(|pin| message(pin.message.get()));
    Ok(objects.filter_map(Result::ok).collect())
}

#[derive(Deserialize)]
struct WirePins<'a> {
    #[serde(borrow)]
    items: Vec<WirePin<'a>>,
}

#[derive(Deserialize)]
struct WirePin<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
}

fn parse(json: &str) -> Result<WireMessage<'_>, Unreadable> {
    let unreadable = Unreadable::of(WhyUnreadable::Json);
    // serde's derive would accept an array as an object with its fields in order.
    if !json.trim_ascii_start().starts_with('{') {
        return Err(unreadable);
    }
    part::read(json).map_err(|_| unreadable)
}

impl<R> WireMessage<'_, R> {
    fn author_id(&self) -> Option<UserId> {
        match &self.author {
            Part::Read(author) => author.id.get(),
            Part::Absent | Part::Null | Part::Unread => None,
        }
    }

    fn unreadable(&self, reason: WhyUnreadable) -> Unreadable {
        Unreadable {
            id: self.id.get(),
            channel: self.channel_id.get(),
            reason,
        }
    }
}

/// `referenced` converts the message it replies to, and notes if that cannot be read.
fn convert<R: Default>(
    mut wire: WireMessage<'_, R>,
    referenced: impl FnOnce(Part<R>, &mut Vec<&'static str>) -> Referenced,
) -> Result<Message, Unreadable> {
    let Some(id) = wire.id.get() else {
        return Err(wire.unreadable(WhyUnreadable::Id));
    };
    let Some(channel) = wire.channel_id.get() else {
        return Err(wire.unreadable(WhyUnreadable::Channel));
    };
    let mut extras = Extras::default();
    let unread = &mut extras.unread;
    let referenced = referenced(std::mem::take(&mut wire.referenced_message), unread);
    let author = author(&mut wire, unread);
    let message = Message {
        id,
        channel,
        guild: wire.guild_id.noting("guild_id", unread),
        kind: kind(wire.r#type, unread),
        author,
        timestamp: time(wire.timestamp, "timestamp", unread).unwrap_or_else(|| id.created()),
        edited: time(wire.edited_timestamp, "edited_timestamp", unread),
        flags: flags(wire.flags, unread),
        content: wire
            .content
            .noting("content", unread)
            .map(Into::into)
            .unwrap_or_default(),
        reference: wire
            .message_reference
            .noting("message_reference", unread)
            .map(|raw| reference(&raw, unread)),
        referenced,
        mentions: mentions(wire.mentions, unread),
        mention_roles: wire.mention_roles.elements("mention_roles", unread).into(),
        extras: None,
        withheld: false,
    };
    extras.poll = wire
        .poll
        .noting("poll", unread)
        .map(|raw| extras::poll(raw, unread));
    let snapshots = wire.message_snapshots.elements("message_snapshots", unread);
    extras.snapshots = snapshots
        .into_iter()
        .filter_map(|raw| extras::snapshot(raw, unread))
        .collect();
    let carried = Carried {
        embeds: wire.embeds,
        attachments: wire.attachments,
        sticker_items: wire.sticker_items,
        components: wire.components,
    };
    carried.into_extras(&mut extras);
    Ok(Message {
        extras: (!extras.is_empty()).then(|| Box::new(extras)),
        ..message
    })
}

/// The author, with the name the server shows.
fn author<R>(wire: &mut WireMessage<'_, R>, unread: &mut Vec<&'static str>) -> Author {
    let user = std::mem::take(&mut wire.author).noting("author", unread);
    let user = user.unwrap_or_default();
    let member = std::mem::take(&mut wire.member).noting("member", unread);
    let webhook = std::mem::take(&mut wire.webhook_id).noting("webhook_id", unread);
    // The response to an interaction is formally posted through a webhook: the
    // webhook's id is the application's, and the author is the bot itself.
    let application = wire.application_id.get();
    let answers_interaction = webhook.map(UserId::get) == application.map(ApplicationId::get);
    let is_webhook = webhook.is_some() && !answers_interaction;
    Author {
        id: user.id.get().unwrap_or(UserId::new(0)),
        bot: user.bot.get().unwrap_or(false),
        name: name(user, member),
        webhook: is_webhook,
        application: application.filter(|_| is_webhook),
    }
}

/// Nickname, else display name, else username.
fn name(user: WireUser<'_>, member: Option<WireMember<'_>>) -> Box<str> {
    let nick = member.and_then(|member| member.nick.get());
    [nick, user.global_name.get(), user.username.get()]
        .into_iter()
        .flatten()
        .find(|name| !name.0.is_empty())
        .map(Into::into)
        .unwrap_or_default()
}

/// A type that cannot be read does not count as conversation.
fn kind(part: Part<u16>, unread: &mut Vec<&'static str>) -> MessageKind {
    match part {
        Part::Read(number) => MessageKind::from_number(number),
        Part::Absent | Part::Null => MessageKind::Default,
        Part::Unread => {
            note("type", unread);
            MessageKind::System(u16::MAX)
        }
    }
}

/// The low 32 bits, which hold every flag we use.
fn flags(part: Part<Count>, unread: &mut Vec<&'static str>) -> MessageFlags {
    let bits = part.noting("flags", unread).map_or(0, |flags| flags.0);
    MessageFlags(u32::try_from(bits & u64::from(u32::MAX)).unwrap_or(0))
}

fn time(
    part: Part<Text<'_>>,
    name: &'static str,
    unread: &mut Vec<&'static str>,
) -> Option<UnixMillis> {
    let text = part.noting(name, unread)?;
    let time = UnixMillis::parse(&text.0);
    if time.is_none() {
        note(name, unread);
    }
    time
}

fn reference(raw: &WireReference, unread: &mut Vec<&'static str>) -> Reference {
    let kind = match raw.r#type {
        Part::Read(number) => ReferenceKind::from_number(number),
        Part::Absent | Part::Null => ReferenceKind::Default,
        Part::Unread => {
            note("message_reference", unread);
            ReferenceKind::Other(u8::MAX)
        }
    };
    Reference {
        kind,
        channel: raw.channel_id.noting("message_reference", unread),
        message: raw.message_id.noting("message_reference", unread),
    }
}

/// Distinguishes absent, null and an object. An object that cannot be read counts
/// as absent: the message can be fetched.
fn referenced(part: Part<WireReferenced<'_>>, unread: &mut Vec<&'static str>) -> Referenced {
    if matches!(part, Part::Null) {
        return Referenced::Deleted;
    }
    let Some(wire) = part.noting("referenced_message", unread).flatten() else {
        return Referenced::Absent;
    };
    let wire = *wire.0;
    let known = wire.author_id().is_some();
    let message = known.then(|| convert(wire, |_, _| Referenced::Absent));
    let Some(Ok(message)) = message else {
        note("referenced_message", unread);
        return Referenced::Absent;
    };
    Referenced::Known(Box::new(message))
}

fn mentions(part: Part<List<WireUser<'_>>>, unread: &mut Vec<&'static str>) -> Box<[Mention]> {
    let mut users = part.elements("mentions", unread);
    users
        .iter_mut()
        .filter_map(|user| {
            let Some(id) = user.id.get() else {
                note("mentions", unread);
                return None;
            };
            let mut user = std::mem::take(user);
            let member = std::mem::take(&mut user.member).get();
            Some(Mention {
                id,
                name: name(user, member),
            })
        })
        .collect()
}
