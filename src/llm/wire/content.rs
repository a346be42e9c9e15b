//! What a message says: plain text, or text and images in parts.

use std::borrow::Cow;
use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use clew_context::model::{ChatMessage, Image};

/// The content of a message. Without images it is a string.
pub(super) struct Content<'a> {
    text: Cow<'a, str>,
    images: &'a [Image],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

/// An image's bytes as an address.
struct DataUrl<'a>(&'a Image);

impl<'a> Content<'a> {
    pub(super) fn new(message: &'a ChatMessage) -> Self {
        Self {
            text: Cow::Borrowed(message.content()),
            images: message.images(),
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        let all = self.text.to_mut();
        all.push_str("\n\n");
        all.push_str(text);
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.images.is_empty() {
            return serializer.serialize_str(&self.text);
        }
        let mut parts = serializer.serialize_seq(Some(1 + self.images.len()))?;
        parts.serialize_element(&Part::Text { text: &self.text })?;
        for image in self.images {
            let image_url = ImageUrl {
                url: DataUrl(image),
            };
            parts.serialize_element(&Part::ImageUrl { image_url })?;
        }
        parts.end()
    }
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for DataUrl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Image { kind, bytes } = self.0;
        let encoded = Base64Display::new(bytes, &STANDARD);
        write!(f, "data:{kind};base64,{encoded}")
    }
}
