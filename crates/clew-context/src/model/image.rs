//! Images as models take them.

use std::fmt;
use std::sync::Arc;

use crate::words;

/// An image. Clones share the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// Its format.
    pub kind: ImageKind,
    /// The whole file.
    pub bytes: Arc<[u8]>,
}

words! {
    /// The formats that models take, by their media types.
    ImageKind {
        /// PNG.
        Png = "image/png",
        /// JPEG.
        Jpeg = "image/jpeg",
        /// WebP.
        Webp = "image/webp",
        /// GIF.
        Gif = "image/gif",
    }
}

impl Image {
    /// A file's bytes, if they begin like an image's: what its name and media type say
    /// does not count.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let kind = match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ImageKind::Png,
            [0xff, 0xd8, 0xff, ..] => ImageKind::Jpeg,
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => ImageKind::Gif,
            [b'R', b'I', b'F', b'F', _, _, _, _, rest @ ..] if rest.starts_with(b"WEBP") => {
                ImageKind::Webp
            }
            _ => return None,
        };
        Some(Self {
            kind,
            bytes: bytes.into(),
        })
    }
}

/// Without the bytes.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.len();
        write!(f, "Image({}, {bytes} bytes)", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_format() {
        let kind = |bytes: &[u8]| Image::of_bytes(bytes).map(|image| image.kind);
        for (bytes, expected) in [
            (&b"\x89PNG\r\n\x1a\nrest"[..], Some(ImageKind::Png)),
            (b"\xff\xd8\xff\xe0", Some(ImageKind::Jpeg)),
            (b"GIF87a", Some(ImageKind::Gif)),
            (b"GIF89a", Some(ImageKind::Gif)),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Some(ImageKind::Webp)),
            (b"RIFF\x01\x02\x03\x04WAVE", None),
            (b"\x89PNG", None),
            (b"<svg xmlns='http://www.w3.org/2000/svg'>", None),
            (b"", None),
        ] {
            assert_eq!(kind(bytes), expected, "{bytes:?}");
        }
        let image = Image::of_bytes(b"GIF89a secret").unwrap();
        assert_eq!(format!("{image:?}"), "Image(image/gif, 13 bytes)");
    }
}
