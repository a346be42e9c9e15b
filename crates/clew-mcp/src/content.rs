//! What a call gave, read from what the protocol allows.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::model::{Given, Image};

/// Bytes of text that one call gives at most, before the caller's own caps.
const MAX_TEXT: usize = 200_000;

/// Images that one call gives at most, and bytes of each in base64.
const MAX_IMAGES: usize = 4;
const MAX_IMAGE: usize = 4 * 1024 * 1024;

impl Given {
    /// Texts first; structured content only where there is no text, since it repeats it.
    pub(crate) fn of(result: CallToolResult) -> Self {
        let mut given = Self {
            is_error: result.is_error == Some(true),
            ..Self::default()
        };
        for block in result.content {
            given.take(block);
        }
        if given.text.is_empty()
            && let Some(value) = result.structured_content
        {
            given.push(&value.to_string());
        }
        given
    }

    fn take(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.push(&text.text),
            ContentBlock::Image(image) => {
                let fits = self.images.len() < MAX_IMAGES && image.data.len() <= MAX_IMAGE;
                if fits && image.mime_type.starts_with("image/") {
                    let (base64, mime) = (image.data, image.mime_type);
                    self.images.push(Image { base64, mime });
                } else {
                    self.left_out.push("image");
                }
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    self.push(&format!("{uri}:\n{text}"));
                }
                ResourceContents::BlobResourceContents { uri, .. } => {
                    self.push(&uri);
                    self.left_out.push("file");
                }
                _ => self.left_out.push("unknown"),
            },
            ContentBlock::ResourceLink(link) => {
                let name = link.title.unwrap_or(link.name);
                self.push(&format!("{name}: {}", link.uri));
            }
            ContentBlock::Audio(_) => self.left_out.push("audio"),
            _ => self.left_out.push("unknown"),
        }
    }

    fn push(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push_str("\n\n");
        }
        let room = MAX_TEXT.saturating_sub(self.text.len());
        let end = text.floor_char_boundary(room);
        self.text.push_str(&text[..end]);
        if end < text.len() && !self.left_out.contains(&"text") {
            self.left_out.push("text");
        }
    }
}
