//! Estimates of tokens: only the server knows exactly.

use clew_context::model::ChatMessage;

/// How many bytes of UTF-8 count as one token. Plain English has four or more per
/// token; other scripts, code and numbers have fewer.
const BYTES_A_TOKEN: usize = 3;
/// An estimate of the tokens of an image: most models make between 250 and 1,600 of one.
pub const IMAGE_TOKENS: usize = 1_000;

/// An estimate of the tokens of a prompt.
pub fn tokens(prompt: &[ChatMessage]) -> usize {
    let texts = prompt.iter().flat_map(ChatMessage::texts);
    let images = prompt.iter().flat_map(ChatMessage::images);
    estimated(texts.map(str::len).sum()) + IMAGE_TOKENS * images.count()
}

/// An estimate of the tokens of so many bytes of UTF-8.
pub const fn estimated(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_A_TOKEN)
}
