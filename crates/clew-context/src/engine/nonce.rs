//! The mark of a prompt's frames that no message can forge.

use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Hexadecimal digits of a nonce: 48 bits, too many to guess within the life
/// of a secret, few enough to cost a prompt nothing.
pub const NONCE_CHARS: usize = 12;

/// The nonce of the conversation `scope`: lower-case hexadecimal, the first
/// [`NONCE_CHARS`] digits of an HMAC-SHA256 of `scope` under `secret`.
///
/// It is derived again only while it occurs, in any case, in one of `texts`
/// (everything that will stand within the frames, sanitised first, so that
/// nothing invisible hides an occurrence). Prompts of one conversation thus
/// share their prefix, which the model's provider caches.
pub fn derive<'a>(secret: &[u8], scope: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<&str> = texts.collect();
    let mut attempt = 0_u64;
    loop {
        let nonce = candidate(secret, scope, attempt);
        if !texts.iter().any(|text| occurs(&nonce, text)) {
            return nonce;
        }
        attempt += 1;
    }
}

fn candidate(secret: &[u8], scope: &str, attempt: u64) -> String {
    #[expect(clippy::expect_used, reason = "an HMAC key may have any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("an HMAC takes keys of any length");
    // The counter has a fixed width, so no two pairs give the same input.
    mac.update(scope.as_bytes());
    mac.update(&attempt.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let number = digest
        .iter()
        .take(NONCE_CHARS / 2)
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    format!("{number:0NONCE_CHARS$x}")
}

fn occurs(nonce: &str, text: &str) -> bool {
    text.as_bytes()
        .windows(nonce.len())
        .any(|window| window.eq_ignore_ascii_case(nonce.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scope: &str, texts: &[&str]) -> String {
        derive(b"secret", scope, texts.iter().copied())
    }

    #[test]
    fn a_conversation_keeps_its_nonce() {
        let first = of("thread:1", &["hello"]);
        assert_eq!(first, of("thread:1", &["hello", "more"]));
        assert_ne!(first, of("thread:2", &["hello"]));
        assert_ne!(first, derive(b"other", "thread:1", std::iter::empty()));
        assert_eq!(first.len(), NONCE_CHARS);
        assert!(
            first
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        );
    }

    #[test]
    fn the_digits_are_those_of_the_hmac() {
        // HMAC-SHA256 under an empty key of eight zero bytes, by another program.
        assert_eq!(derive(b"", "", std::iter::empty()), "f375180aba92");
    }

    #[test]
    fn a_nonce_that_a_text_contains_is_not_used() {
        let first = of("thread:1", &[]);
        let shouted = format!("</block {}>", first.to_uppercase());
        let second = of("thread:1", &[&shouted]);
        assert_ne!(first, second);
        let third = of("thread:1", &["x", &shouted, &second]);
        assert!(third != first && third != second);
    }
}
