//! What a message contains besides its text.

use super::components;
use super::part::{List, Part, Text, note};
use super::wire::{
    WireAttachment, WireComponent, WireEmbed, WirePoll, WirePollAnswer, WirePollResults,
    WireSnapshot, WireTexts,
};
use crate::model::{Attachment, Embed, EmbedField, Extras, Poll, Snapshot, UnixMillis};

/// The fields that messages and forwarded messages share.
pub(super) struct Carried<'a> {
    pub(super) embeds: Part<List<WireEmbed<'a>>>,
    pub(super) attachments: Part<List<WireAttachment<'a>>>,
    pub(super) sticker_items: Part<List<WireTexts<'a>>>,
    pub(super) components: Part<List<WireComponent<'a>>>,
}

impl Carried<'_> {
    /// Converts them into `extras`.
    pub(super) fn into_extras(self, extras: &mut Extras) {
        let unread = &mut extras.unread;
        let embeds = self.embeds.elements("embeds", unread);
        extras.embeds = embeds.into_iter().map(|raw| embed(raw, unread)).collect();
        let files = self.attachments.elements("attachments", unread);
        extras.attachments = files
            .into_iter()
            .map(|raw| attachment(raw, unread))
            .collect();
        let stickers = self.sticker_items.elements("sticker_items", unread);
        extras.stickers = stickers
            .into_iter()
            .filter_map(|raw| text(raw.name))
            .collect();
        let components = self.components.elements("components", unread);
        extras.component_text = components::texts(components, unread);
    }
}

/// The string, if it is readable and not empty.
fn text(part: Part<Text<'_>>) -> Option<Box<str>> {
    part.get().filter(|text| !text.0.is_empty()).map(Into::into)
}

fn embed(raw: WireEmbed<'_>, unread: &mut Vec<&'static str>) -> Embed {
    let fields = raw.fields.elements("embeds", unread);
    Embed {
        provider: raw.provider.get().and_then(|provider| text(provider.name)),
        author: raw.author.get().and_then(|author| text(author.name)),
        title: text(raw.title),
        url: text(raw.url),
        description: text(raw.description),
        fields: fields
            .into_iter()
            .map(|field| EmbedField {
                name: text(field.name).unwrap_or_default(),
                value: text(field.value).unwrap_or_default(),
            })
            .collect(),
        footer: raw.footer.get().and_then(|footer| text(footer.text)),
        media: raw.image.is_given() || raw.video.is_given() || raw.thumbnail.is_given(),
    }
}

pub(super) fn attachment(raw: WireAttachment<'_>, unread: &mut Vec<&'static str>) -> Attachment {
    let filename = raw.filename.noting("attachments", unread);
    let url = raw.url.noting("attachments", unread);
    let size = raw.size.noting("attachments", unread);
    Attachment {
        filename: filename.map(Into::into).unwrap_or_default(),
        content_type: text(raw.content_type),
        size: size.map_or(0, |size| size.0),
        url: url.map(Into::into).unwrap_or_default(),
        description: text(raw.description),
        text: None,
    }
}

/// A poll with the votes counted so far. If there are results, an answer missing
/// from them has no votes (Discord's reference, "Poll Results Object").
pub(super) fn poll(raw: WirePoll<'_>, unread: &mut Vec<&'static str>) -> Poll {
    let results = raw.results.noting("poll", unread);
    let answers = raw.answers.elements("poll", unread);
    let counts = results.map(|results| counts(results, unread));
    let votes = |answer: &WirePollAnswer<'_>| {
        let counts = counts.as_ref()?;
        let id = answer.answer_id.get()?;
        let counted = counts.iter().find(|(counted, _)| *counted == id);
        Some(counted.map_or(0, |(_, count)| *count))
    };
    Poll {
        question: raw
            .question
            .get()
            .and_then(|question| text(question.text))
            .unwrap_or_default(),
        answers: answers
            .into_iter()
            .map(|answer| {
                let votes = votes(&answer);
                let label = answer.poll_media.get().and_then(|media| text(media.text));
                (label.unwrap_or_default(), votes)
            })
            .collect(),
    }
}

fn counts(results: WirePollResults, unread: &mut Vec<&'static str>) -> Vec<(u64, u64)> {
    let counts = results.answer_counts.elements("poll", unread);
    counts
        .into_iter()
        .filter_map(|count| Some((count.id.get()?, count.count.get()?)))
        .collect()
}

/// A forwarded message, or `None` if the snapshot has no message.
pub(super) fn snapshot(raw: WireSnapshot<'_>, unread: &mut Vec<&'static str>) -> Option<Snapshot> {
    let Some(message) = raw.message.get() else {
        note("message_snapshots", unread);
        return None;
    };
    let mut extras = Extras::default();
    let content = message.content.noting("content", &mut extras.unread);
    let carried = Carried {
        embeds: message.embeds,
        attachments: message.attachments,
        sticker_items: message.sticker_items,
        components: message.components,
    };
    carried.into_extras(&mut extras);
    Some(Snapshot {
        withheld: false,
        content: content.map(Into::into).unwrap_or_default(),
        timestamp: message
            .timestamp
            .get()
            .and_then(|text| UnixMillis::parse(&text.0)),
        extras: (!extras.is_empty()).then(|| Box::new(extras)),
    })
}
