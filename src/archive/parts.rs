//! The parts of messages other than their text, as exports write them.

use serde::Deserialize;

use clew_context::model::{Attachment, Embed, EmbedField, Extras, Poll, Snapshot, UnixMillis};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WireEmbed {
    title: Option<Box<str>>,
    url: Option<Box<str>>,
    description: Option<Box<str>>,
    author: Option<WireNamed>,
    provider: Option<WireNamed>,
    footer: Option<WireFooter>,
    fields: Vec<WireField>,
    thumbnail: Option<WireMedia>,
    image: Option<WireMedia>,
    video: Option<WireMedia>,
    images: Vec<WireMedia>,
}

#[derive(Deserialize)]
struct WireNamed {
    name: Option<Box<str>>,
}

#[derive(Deserialize)]
struct WireFooter {
    text: Option<Box<str>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WireField {
    name: Box<str>,
    value: Box<str>,
}

/// Only its presence matters.
#[derive(Deserialize)]
struct WireMedia {}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WireAttachment {
    #[serde(alias = "filename")]
    file_name: Box<str>,
    #[serde(alias = "size")]
    file_size_bytes: u64,
    url: Box<str>,
    #[serde(alias = "content_type")]
    content_type: Option<Box<str>>,
    description: Option<Box<str>>,
}

#[derive(Deserialize)]
pub(super) struct WireSticker {
    pub(super) name: Box<str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WireComponent {
    label: Option<Box<str>>,
    content: Option<Box<str>>,
    placeholder: Option<Box<str>>,
    description: Option<Box<str>>,
    components: Vec<WireComponent>,
    items: Vec<WireComponent>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct WirePoll {
    question: WireText,
    answers: Vec<WireAnswer>,
}

/// Discord nests a poll's texts; exporters write them directly.
#[derive(Deserialize)]
#[serde(untagged)]
enum WireText {
    Plain(Box<str>),
    Nested { text: Option<Box<str>> },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct WireAnswer {
    #[serde(alias = "poll_media")]
    text: WireText,
    #[serde(alias = "count", alias = "votes")]
    vote_count: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WireForward {
    content: Box<str>,
    timestamp: Option<String>,
    embeds: Vec<WireEmbed>,
    attachments: Vec<WireAttachment>,
    stickers: Vec<WireSticker>,
    /// In scenarios: when the original was posted, in Unix milliseconds.
    ms: Option<i64>,
}

impl WireEmbed {
    pub(super) fn into_embed(self) -> Embed {
        let media = self.thumbnail.is_some() || self.image.is_some() || self.video.is_some();
        Embed {
            provider: self.provider.and_then(|provider| provider.name),
            author: filled(self.author.and_then(|author| author.name)),
            title: filled(self.title),
            url: filled(self.url),
            description: filled(self.description),
            fields: self
                .fields
                .into_iter()
                .map(|field| EmbedField {
                    name: field.name,
                    value: field.value,
                })
                .collect(),
            footer: filled(self.footer.and_then(|footer| footer.text)),
            media: media || !self.images.is_empty(),
        }
    }
}

impl WireAttachment {
    pub(super) fn into_attachment(self) -> Attachment {
        Attachment {
            filename: self.file_name,
            content_type: self.content_type,
            size: self.file_size_bytes,
            url: self.url,
            description: filled(self.description),
            text: None,
        }
    }
}

impl WireComponent {
    /// The texts in reading order, a component's own before its children's.
    pub(super) fn texts(&self, out: &mut Vec<Box<str>>) {
        let own = [
            &self.label,
            &self.content,
            &self.placeholder,
            &self.description,
        ];
        out.extend(own.into_iter().filter_map(|text| filled(text.clone())));
        for child in self.components.iter().chain(&self.items) {
            child.texts(out);
        }
    }
}

impl Default for WireText {
    fn default() -> Self {
        Self::Nested { text: None }
    }
}

impl WireText {
    fn into_text(self) -> Box<str> {
        match self {
            Self::Plain(text) => text,
            Self::Nested { text } => text.unwrap_or_default(),
        }
    }
}

impl WirePoll {
    pub(super) fn into_poll(self) -> Poll {
        Poll {
            question: self.question.into_text(),
            answers: self
                .answers
                .into_iter()
                .map(|answer| (answer.text.into_text(), answer.vote_count))
                .collect(),
        }
    }
}

impl WireForward {
    pub(super) fn into_snapshot(self) -> Snapshot {
        let embeds = self.embeds.into_iter().map(WireEmbed::into_embed);
        let files = self.attachments.into_iter();
        let extras = Extras {
            embeds: embeds.collect(),
            attachments: files.map(WireAttachment::into_attachment).collect(),
            stickers: self.stickers.into_iter().map(|one| one.name).collect(),
            ..Extras::default()
        };
        let written = self.timestamp.as_deref().and_then(UnixMillis::parse);
        Snapshot {
            withheld: false,
            content: self.content,
            timestamp: written.or(self.ms.map(UnixMillis)),
            extras: (!extras.is_empty()).then(|| Box::new(extras)),
        }
    }
}

/// Exports write an empty string where Discord has none.
fn filled(text: Option<Box<str>>) -> Option<Box<str>> {
    text.filter(|text| !text.is_empty())
}
