//! What it means that a request with images is refused.

use super::Error;

/// Words by which an error names images, or a content that is not plain text.
const IMAGES: [&str; 6] = [
    "image",
    "vision",
    "modal",
    "mmproj",
    "content must be",
    "valid string",
];

/// Words about these images alone: another one may be taken.
const THESE_IMAGES: [&str; 18] = [
    "format",
    "decod",
    "corrupt",
    "download",
    "invalid image",
    "valid image",
    "image is not valid",
    "unsupported image",
    "process image",
    "process input image",
    "mime type",
    "load image",
    "identify image",
    "dimension",
    "size",
    "too large",
    "too many",
    "exceed",
];

/// The error of a request with images: [`Error::ImagesRefused`] if images are named with
/// 404 (`OpenRouter`), 500 or 501 (llama.cpp without `--mmproj`, Ollama), and of whatever
/// else a server rejects, since the same may be accepted without images.
pub(super) fn of_images(error: Error) -> Error {
    let names_images = names_images(&error);
    let by_model = names_images && !says(&error, &THESE_IMAGES);
    match error {
        Error::Rejected { message, .. } => Error::ImagesRefused { by_model, message },
        Error::ModelNotFound { message } | Error::Unavailable { message, .. } if names_images => {
            Error::ImagesRefused { by_model, message }
        }
        error => error,
    }
}

/// Whether an error names images as its reason.
pub(super) fn names_images(error: &Error) -> bool {
    says(error, &IMAGES)
}

fn says(error: &Error, words: &[&str]) -> bool {
    let objection = error.objection();
    objection.is_some_and(|(message, _)| words.iter().any(|word| message.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(status: u16, message: &str) -> Error {
        let message = message.to_owned();
        match status {
            404 => Error::ModelNotFound { message },
            500.. => Error::Unavailable {
                status: Some(status),
                retry_after: None,
                message,
                cause: None,
            },
            _ => Error::Rejected { status, message },
        }
    }

    /// What servers say: whether images are to blame, and whether the model takes none.
    #[test]
    fn refusals_of_images() {
        let none = Some(true);
        let these = Some(false);
        for (status, message, expected) in [
            (
                400,
                "Invalid content type. image_url is only supported by certain models.",
                none,
            ),
            (400, "fake is not a multimodal model", none),
            (400, "messages[1].content must be a string", none),
            (
                400,
                "messages.1.user.content.str: Input should be a valid string",
                none,
            ),
            (
                422,
                "messages[1]: unknown variant `image_url`, expected `text`",
                none,
            ),
            (404, "No endpoints found that support image input", none),
            (
                500,
                "image input is not supported - hint: you may need to provide the mmproj",
                none,
            ),
            (
                400,
                "At most 0 image(s) may be provided in one request.",
                none,
            ),
            (
                400,
                "You uploaded an unsupported image. Please make sure it is a png",
                these,
            ),
            (400, "Could not process image", these),
            (400, "Provided image is not valid.", these),
            (
                400,
                "Unable to process input image. Please retry or report in https://example.org",
                these,
            ),
            (400, "Unsupported MIME type: image/gif", these),
            (400, "Failed to load image or audio file", these),
            (400, "image exceeds 5 MB maximum", these),
            (400, "no reason", these),
            (500, "failed to decode the image", these),
            (404, "no such model", None),
            (500, "out of memory", None),
            (503, "image service is down", None),
        ] {
            let blamed = match of_images(rejected(status, message)) {
                Error::ImagesRefused { by_model, .. } => Some(by_model),
                _ => None,
            };
            assert_eq!(blamed, expected, "{status} {message}");
        }
    }
}
