//! The parts of messages other than their text, as exports write them.

use serde::Deserialize;

use clew_context::model::{Attachment, Embed, EmbedField, Extras, Poll, Snapshot, UnixMillis};

/// Everything of a message except its text.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ExportExtras {
    pub(super) embeds: Vec<ExportEmbed>,
    pub(super) attachments: Vec<ExportAttachment>,
    #[serde(alias = "sticker_items")]
    pub(super) stickers: Vec<ExportSticker>,
    pub(super) components: Vec<ExportComponent>,
    pub(super) poll: Option<ExportPoll>,
    pub(super) snapshots: Vec<ExportForward>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExportEmbed {
    title: Option<Box<str>>,
    url: Option<Box<str>>,
    description: Option<Box<str>>,
    author: Option<ExportNamed>,
    provider: Option<ExportNamed>,
    footer: Option<ExportFooter>,
    fields: Vec<ExportField>,
    thumbnail: Option<ExportMedia>,
    image: Option<ExportMedia>,
    video: Option<ExportMedia>,
    images: Vec<ExportMedia>,
}

#[derive(Deserialize)]
struct ExportNamed {
    name: Option<Box<str>>,
}

#[derive(Deserialize)]
struct ExportFooter {
    text: Option<Box<str>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ExportField {
    name: Box<str>,
    value: Box<str>,
}

/// Only its presence matters.
#[derive(Deserialize)]
struct ExportMedia {}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExportAttachment {
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
pub(super) struct ExportSticker {
    name: Box<str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ExportComponent {
    label: Option<Box<str>>,
    content: Option<Box<str>>,
    placeholder: Option<Box<str>>,
    description: Option<Box<str>>,
    components: Vec<ExportComponent>,
    items: Vec<ExportComponent>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct ExportPoll {
    question: ExportText,
    answers: Vec<ExportAnswer>,
}

/// Discord nests a poll's texts; exporters write them directly.
#[derive(Deserialize)]
#[serde(untagged)]
enum ExportText {
    Plain(Box<str>),
    Nested { text: Option<Box<str>> },
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ExportAnswer {
    #[serde(alias = "poll_media")]
    text: ExportText,
    #[serde(alias = "count", alias = "votes")]
    vote_count: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ExportForward {
    content: Box<str>,
    timestamp: Option<String>,
    embeds: Vec<ExportEmbed>,
    attachments: Vec<ExportAttachment>,
    stickers: Vec<ExportSticker>,
    /// In scenarios: when the original was posted, in Unix milliseconds.
    ms: Option<i64>,
}

impl ExportExtras {
    pub(super) fn into_extras(self, unread: Vec<&'static str>) -> Extras {
        let mut component_text = Vec::new();
        for component in &self.components {
            component.texts(&mut component_text);
        }
        let files = self.attachments.into_iter();
        let snapshots = self.snapshots.into_iter().map(ExportForward::into_snapshot);
        Extras {
            embeds: self
                .embeds
                .into_iter()
                .map(ExportEmbed::into_embed)
                .collect(),
            attachments: files.map(ExportAttachment::into_attachment).collect(),
            stickers: self.stickers.into_iter().map(|one| one.name).collect(),
            poll: self.poll.map(ExportPoll::into_poll),
            snapshots: snapshots.collect(),
            component_text,
            unread,
        }
    }
}

impl ExportEmbed {
    fn into_embed(self) -> Embed {
        let media = self.thumbnail.is_some() || self.image.is_some() || self.video.is_some();
        let fields = self.fields.into_iter();
        let fields = fields.map(|ExportField { name, value }| EmbedField { name, value });
        Embed {
            provider: self.provider.and_then(|provider| provider.name),
            author: filled(self.author.and_then(|author| author.name)),
            title: filled(self.title),
            url: filled(self.url),
            description: filled(self.description),
            fields: fields.collect(),
            footer: filled(self.footer.and_then(|footer| footer.text)),
            media: media || !self.images.is_empty(),
        }
    }
}

impl ExportAttachment {
    fn into_attachment(self) -> Attachment {
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

impl ExportComponent {
    /// The texts in reading order, a component's own before its children's.
    fn texts(&self, out: &mut Vec<Box<str>>) {
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

impl Default for ExportText {
    fn default() -> Self {
        Self::Nested { text: None }
    }
}

impl ExportText {
    fn into_text(self) -> Box<str> {
        match self {
            Self::Plain(text) => text,
            Self::Nested { text } => text.unwrap_or_default(),
        }
    }
}

impl ExportPoll {
    fn into_poll(self) -> Poll {
        let answers = self.answers.into_iter();
        let answers = answers.map(|answer| (answer.text.into_text(), answer.vote_count));
        Poll {
            question: self.question.into_text(),
            answers: answers.collect(),
        }
    }
}

impl ExportForward {
    fn into_snapshot(self) -> Snapshot {
        let extras = ExportExtras {
            embeds: self.embeds,
            attachments: self.attachments,
            stickers: self.stickers,
            ..ExportExtras::default()
        };
        let extras = extras.into_extras(Vec::new());
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
