//! Which images stand beside the question, and the lines that say whose each is.
//! The text of a prompt is the same with and without images.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::model::{
    Attachment, BlockItem, BlockPlace, ChannelId, ChatMessage, Image, ImageKind, ImageLimits,
    Message, MessageId,
};

use super::block::one_line;
use super::frame::{self, FrameKind};
use super::prepare::Prepared;
use super::turn::Collected;

/// The most bytes of all images of a prompt together.
pub const MAX_BYTES: u64 = 8_000_000;
/// The most scalars of a file's name that are shown.
const MAX_NAME_CHARS: usize = 100;
/// Extensions of images, for files whose media type is missing or generic.
const ENDINGS: [&str; 5] = ["png", "jpg", "jpeg", "webp", "gif"];

/// A file of a message that a prompt shows. Its name and media type say that it is an
/// image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFile {
    /// The message's channel.
    pub channel: ChannelId,
    /// The message.
    pub message: MessageId,
    /// The file.
    pub file: Attachment,
}

/// An image of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageImage {
    /// The message.
    pub message: MessageId,
    /// The file.
    pub file: Attachment,
    /// The image.
    pub image: Image,
}

/// The images that a prompt may be sent with, as far as their sizes allow: those of the
/// trigger, of what it points at, of the answered message, of linked ones, then of the
/// other messages that the prompt shows, newest first.
pub fn files(collected: &Collected, prepared: &Prepared, limits: &ImageLimits) -> Vec<ImageFile> {
    let mut room = MAX_BYTES;
    let files = shown(collected, prepared).into_iter();
    let files = files.flat_map(|message| {
        let files = message.extras.iter().flat_map(|extras| extras.files());
        files.map(move |file| (message, file))
    });
    let fitting = files.filter(|(_, file)| {
        let fits = is_image(file) && file.size <= limits.image_bytes && file.size <= room;
        room -= if fits { file.size } else { 0 };
        fits
    });
    let fitting = fitting.take(limits.images);
    fitting
        .map(|(message, file)| ImageFile {
            channel: message.channel,
            message: message.id,
            file: file.clone(),
        })
        .collect()
}

/// The prompt with those of the images whose messages it shows, if they still have the files.
pub fn with_images(
    collected: &Collected,
    prepared: &Prepared,
    images: &[MessageImage],
) -> Vec<ChatMessage> {
    let (mut lines, mut shown) = (String::new(), Vec::new());
    for one in images {
        let Some(whose) = whose(collected, prepared, one) else {
            continue;
        };
        let name = one_line(&one.file.filename, MAX_NAME_CHARS);
        let number = shown.len() + 1;
        lines.push_str(&format!("{number}: \"{name}\" of {whose}\n"));
        shown.push(one.image.clone());
    }
    let mut messages = prepared.prompt.messages.clone();
    if let Some(question) = messages.pop_if(|_| !shown.is_empty()) {
        let nonce = &prepared.prompt.nonce;
        let (head, lines) = (
            "The images beside this text, in order:",
            lines.replace(nonce, ""),
        );
        let framed = frame::headed(head, FrameKind::Images, nonce, &lines);
        messages.push(ChatMessage::WithImages {
            content: format!("{}\n\n{framed}", question.content()),
            images: shown,
        });
    }
    messages
}

/// The messages that the prompt shows, the first of which matter most.
fn shown<'a>(collected: &'a Collected, prepared: &'a Prepared) -> Vec<&'a Message> {
    let items = prepared.adopted.iter().chain(prepared.block.items());
    // What is pinned stands there for every question.
    let items = items.filter(|item| item.place != BlockPlace::Pinned);
    let mut items: Vec<&BlockItem> = items.collect();
    items.sort_by_key(|item| (rank(item.place), Reverse(item.message.id)));
    let messages = items.into_iter().map(|item| &*item.message);
    let mut seen = BTreeSet::new();
    std::iter::once(&**collected.trigger())
        .chain(messages)
        .filter(|message| seen.insert(message.id))
        .collect()
}

const fn rank(place: BlockPlace) -> u8 {
    match place {
        BlockPlace::PointedAt => 0,
        BlockPlace::Target => 1,
        BlockPlace::Linked => 2,
        BlockPlace::Starter
        | BlockPlace::Tail
        | BlockPlace::History
        | BlockPlace::Chain
        | BlockPlace::LinkContext
        | BlockPlace::Pinned
        | BlockPlace::Conversation(_) => 3,
    }
}

/// Where an image comes from, in the words of the prompt; `None` if the prompt does not
/// show that message with the file.
fn whose(collected: &Collected, prepared: &Prepared, image: &MessageImage) -> Option<String> {
    let has_file = |message: &Message| {
        let mut files = message.extras.iter().flat_map(|extras| extras.files());
        files.any(|file| file.is_same(&image.file))
    };
    let trigger = collected.trigger();
    if image.message == trigger.id {
        return has_file(trigger).then(|| format!("{}'s question", prepared.asker));
    }
    let mut items = prepared.adopted.iter().chain(prepared.block.items());
    let item = items.find(|item| item.message.id == image.message && has_file(&item.message))?;
    let posted = item.message.timestamp.minute();
    Some(format!("{}'s message of {posted} UTC", item.name))
}

/// Whether a file claims to be an image; its bytes tell whether it is one.
fn is_image(file: &Attachment) -> bool {
    file.claims_to_be(|kind| ImageKind::from_word(kind).is_some(), &ENDINGS)
}
