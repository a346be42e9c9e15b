//! One message of an export, from JSON to [`Message`].
//!
//! A message must have an id, an author's id and a time. Any other part that
//! cannot be read is left out and named in `Extras::unread`.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::error::plain;
use super::names;
use super::parts::{ExportExtras, ExportForward};
use clew_context::model::{
    Author, ChannelId, Extras, GuildId, Mention, Message, MessageFlags, MessageId, MessageKind,
    Reference, ReferenceKind, Referenced, RoleId, UnixMillis, UserId,
};

/// A message as DiscordChatExporter writes it, its parts not yet parsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportMessage<'a> {
    // Once is enough: it says how long `'a` lasts.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: Option<&'a RawValue>,
    timestamp: Option<&'a RawValue>,
    timestamp_edited: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    author: Option<&'a RawValue>,
    attachments: Option<&'a RawValue>,
    embeds: Option<&'a RawValue>,
    stickers: Option<&'a RawValue>,
    components: Option<&'a RawValue>,
    poll: Option<&'a RawValue>,
    mentions: Option<&'a RawValue>,
    reference: Option<&'a RawValue>,
    forwarded_message: Option<&'a RawValue>,
}

/// The parts that a message must have, and whom it mentions.
pub(super) struct Essentials {
    pub(super) id: MessageId,
    pub(super) kind: MessageKind,
    pub(super) author: Author,
    pub(super) mentions: Vec<Mention>,
    timestamp: UnixMillis,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportUser<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    name: Option<String>,
    nickname: Option<String>,
    discriminator: Option<&'a RawValue>,
    is_bot: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ExportReference {
    #[serde(rename = "type")]
    kind: Option<String>,
    message_id: Option<String>,
    channel_id: Option<String>,
}

impl<'a> ExportMessage<'a> {
    /// Checks that it is a JSON object.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Reads the parts that a message must have; the error says what is missing.
    pub(super) fn essentials(&self) -> Result<Essentials, String> {
        let id = unquoted(self.id).ok_or("it has no `id`")?;
        let id = id.parse().map_err(|error| format!("`id`: {error}"))?;
        let time = unquoted(self.timestamp).ok_or("it has no `timestamp`")?;
        let timestamp = UnixMillis::parse(time)
            .ok_or_else(|| format!("`timestamp`: `{time}` is not an RFC 3339 time"))?;
        let author = self.author.ok_or("it has no `author`")?;
        let author: ExportUser<'_> = serde_json::from_str(author.get())
            .map_err(|error| format!("`author`: {}", plain(&error)))?;
        Ok(Essentials {
            id,
            kind: names::message_kind(unquoted(self.kind).unwrap_or("Default")),
            author: author.into_author()?,
            mentions: mentions(self.mentions).unwrap_or_default(),
            timestamp,
        })
    }

    pub(super) fn message(
        &self,
        channel: ChannelId,
        guild: Option<GuildId>,
    ) -> Result<Message, String> {
        let essentials = self.essentials()?;
        let mut unread = Vec::new();
        if mentions(self.mentions).is_none() {
            unread.push("mentions");
        }
        let content: Option<String> = part(self.content, "content", &mut unread);
        let reference: Option<ExportReference> = part(self.reference, "reference", &mut unread);
        let extras = self.extras(unread);
        let forward = !extras.snapshots.is_empty();
        let content = restore_mentions(content.unwrap_or_default(), &essentials.mentions);
        Ok(Message {
            id: essentials.id,
            channel,
            guild,
            kind: essentials.kind,
            author: essentials.author,
            timestamp: essentials.timestamp,
            edited: unquoted(self.timestamp_edited).and_then(UnixMillis::parse),
            flags: MessageFlags::default(),
            mention_roles: mentioned_roles(&content).into(),
            content: content.into(),
            reference: reference.map(|reference| reference.into_reference(forward)),
            referenced: Referenced::Absent,
            mentions: essentials.mentions.into(),
            extras: (!extras.is_empty()).then(|| Box::new(extras)),
            withheld: false,
        })
    }

    fn extras(&self, mut unread: Vec<&'static str>) -> Extras {
        let extras = ExportExtras {
            embeds: part(self.embeds, "embeds", &mut unread),
            attachments: part(self.attachments, "attachments", &mut unread),
            stickers: part(self.stickers, "stickers", &mut unread),
            components: part(self.components, "components", &mut unread),
            poll: part(self.poll, "poll", &mut unread),
            snapshots: part::<Option<ExportForward>>(
                self.forwarded_message,
                "forwardedMessage",
                &mut unread,
            )
            .into_iter()
            .collect(),
        };
        extras.into_extras(unread)
    }
}

impl ExportUser<'_> {
    /// Exports do not mark webhooks. They are bots without a discriminator, which
    /// applications' bots still have.
    fn into_author(self) -> Result<Author, String> {
        let bot = self.is_bot.unwrap_or(false);
        let discriminator = unquoted(self.discriminator);
        Ok(Author {
            id: self.id()?,
            webhook: bot && matches!(discriminator, Some("0000" | "0")),
            application: None,
            bot,
            name: self.shown_name(),
        })
    }

    fn id(&self) -> Result<UserId, String> {
        let id = unquoted(self.id).ok_or("its author has no `id`")?;
        id.parse()
            .map_err(|error| format!("author's `id`: {error}"))
    }

    fn shown_name(self) -> Box<str> {
        let name = [self.nickname, self.name]
            .into_iter()
            .flatten()
            .find(|name| !name.trim().is_empty());
        name.unwrap_or_else(|| "unknown".to_owned()).into()
    }
}

impl ExportReference {
    /// Older exports lack the type; a forward is recognised by its content.
    fn into_reference(self, forward: bool) -> Reference {
        let kind = match self.kind.as_deref() {
            None if forward => ReferenceKind::Forward,
            None | Some("Default" | "0") => ReferenceKind::Default,
            Some("Forward" | "1") => ReferenceKind::Forward,
            Some(other) => ReferenceKind::Other(other.parse().unwrap_or(u8::MAX)),
        };
        Reference {
            kind,
            channel: self.channel_id.and_then(|id| id.parse().ok()),
            message: self.message_id.and_then(|id| id.parse().ok()),
        }
    }
}

/// A part that may be absent or null; if unreadable, it is named in `unread`.
fn part<T: DeserializeOwned + Default>(
    raw: Option<&RawValue>,
    name: &'static str,
    unread: &mut Vec<&'static str>,
) -> T {
    match raw.map(RawValue::get) {
        None | Some("null" | "[]") => T::default(),
        Some(text) => serde_json::from_str(text).unwrap_or_else(|_| {
            unread.push(name);
            T::default()
        }),
    }
}

fn mentions(raw: Option<&RawValue>) -> Option<Vec<Mention>> {
    let text = match raw.map(RawValue::get) {
        None | Some("null" | "[]") => return Some(Vec::new()),
        Some(text) => text,
    };
    let users: Vec<ExportUser<'_>> = serde_json::from_str(text).ok()?;
    users
        .into_iter()
        .map(|user| {
            Some(Mention {
                id: user.id().ok()?,
                name: user.shown_name(),
            })
        })
        .collect()
}

/// The contents of a string without escapes (ids, times, type names), or a number.
fn unquoted(raw: Option<&RawValue>) -> Option<&str> {
    let text = raw?.get();
    let text = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text);
    (text != "null").then_some(text)
}

/// Exports show mentions as `@name` unless made with `--markdown false`. They also
/// list the mentioned users, so Discord's own form can be restored: otherwise a
/// bare mention would not be recognised.
fn restore_mentions(mut content: String, mentions: &[Mention]) -> String {
    let mut by_length: Vec<&Mention> = mentions.iter().collect();
    by_length.sort_by_key(|mention| std::cmp::Reverse(mention.name.len()));
    for mention in by_length {
        let (plain, nick) = (format!("<@{}>", mention.id), format!("<@!{}>", mention.id));
        let shown = format!("@{}", mention.name);
        if !content.contains(&shown) || content.contains(&plain) || content.contains(&nick) {
            continue;
        }
        let mut restored = String::with_capacity(content.len());
        let mut rest = content.as_str();
        while let Some(at) = rest.find(&shown) {
            let end = at + shown.len();
            let longer_word = rest[end..].starts_with(|next: char| next.is_ascii_alphanumeric());
            restored.push_str(&rest[..at]);
            restored.push_str(if longer_word { &shown } else { &plain });
            rest = &rest[end..];
        }
        restored.push_str(rest);
        content = restored;
    }
    content
}

/// The roles mentioned in Discord's own form; exports do not list them.
pub(super) fn mentioned_roles(content: &str) -> Vec<RoleId> {
    let mut roles: Vec<RoleId> = Vec::new();
    for rest in content.split("<@&").skip(1) {
        let id = rest.split_once('>').and_then(|(id, _)| id.parse().ok());
        if let Some(id) = id.filter(|id| !roles.contains(id)) {
            roles.push(id);
        }
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_mentions_become_discords_again() {
        let mention = |id, name: &str| Mention {
            id: UserId::new(id),
            name: name.into(),
        };
        let both = [mention(1, "Ann"), mention(2, "Ann Bee")];
        for (content, expected) in [
            ("@Ann Bee and @Ann, hi", "<@2> and <@1>, hi"),
            ("@Annika is somebody else", "@Annika is somebody else"),
            ("<@1> said @Ann", "<@1> said @Ann"),
            ("@Annさん", "<@1>さん"),
            ("no mention: a reply's ping", "no mention: a reply's ping"),
        ] {
            assert_eq!(restore_mentions(content.to_owned(), &both), expected);
        }
    }
}
