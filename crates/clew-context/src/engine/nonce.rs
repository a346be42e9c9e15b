//! The nonce of a prompt's frames, which no message can forge.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use unicode_normalization::UnicodeNormalization;

/// Hexadecimal digits of a nonce: 48 bits are too many to guess during the
/// lifetime of a secret, and short enough to cost few tokens.
pub const NONCE_CHARS: usize = 12;

/// The nonce of the conversation `scope`: the first [`NONCE_CHARS`] lower-case
/// hexadecimal digits of an HMAC-SHA256 of `scope` under `secret`.
///
/// Another one is derived only if one of `texts` (everything inside the frames)
/// contains it, or something that a model might confuse with it: in other forms
/// of the digits, with separators, backwards, or with one digit changed, missing
/// or added. So prompts of one conversation share their prefix, which the model's
/// provider caches.
pub fn derive<'a>(secret: &[u8], scope: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<&str> = texts.collect();
    let mut attempt = 0_u64;
    loop {
        let nonce = candidate(secret, scope, attempt);
        let like = Likeness::of(nonce);
        if !texts.iter().any(|text| like.occurs(text)) {
            return format!("{nonce:0NONCE_CHARS$x}");
        }
        attempt += 1;
    }
}

fn candidate(secret: &[u8], scope: &str, attempt: u64) -> u64 {
    #[expect(clippy::expect_used, reason = "an HMAC key may have any length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("an HMAC takes keys of any length");
    // The counter has a fixed width, so no two pairs produce the same input.
    mac.update(scope.as_bytes());
    mac.update(&attempt.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let bytes = digest.iter().take(NONCE_CHARS / 2);
    bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Four bits per digit.
const NONCE: u64 = (1 << (4 * NONCE_CHARS)) - 1;
/// The lowest bit of each of the last digits, one more than a nonce has.
const DIGITS: u64 = 0x1_1111_1111_1111;

/// What a reader might take for a nonce: the nonce and its mirror image.
struct Likeness([u64; 2]);

impl Likeness {
    fn of(nonce: u64) -> Self {
        let mirrored = (0..NONCE_CHARS).fold(0, |sum, digit| sum << 4 | nonce >> (4 * digit) & 0xF);
        Self([nonce, mirrored])
    }

    /// Whether it stands in `text`, whose letters and digits alone are looked at,
    /// in their plain form (NFKC).
    fn occurs(&self, text: &str) -> bool {
        let mut last = Last::default();
        let mut ends_at = |digit: Option<u32>| {
            last.push(digit);
            last.may_be() && self.0.iter().any(|nonce| last.is_like(*nonce))
        };
        text.chars().any(|character| {
            // Without the tables: prompts are long, and most of them is this.
            if character.is_ascii() {
                return character.is_ascii_alphanumeric() && ends_at(character.to_digit(16));
            }
            let mut plain = std::iter::once(character).nfkc();
            plain.any(|plain| plain.is_alphanumeric() && ends_at(plain.to_digit(16)))
        })
    }
}

/// The last characters of a text, four bits each, one more than a nonce has.
#[derive(Default)]
struct Last {
    digits: u64,
    /// The lowest bit of each character that is not a digit.
    others: u64,
    count: usize,
    /// How many there were with the last of those, and with the one before it.
    until_others: [usize; 2],
}

impl Last {
    fn push(&mut self, digit: Option<u32>) {
        self.digits = self.digits << 4 | u64::from(digit.unwrap_or(0));
        self.others = (self.others << 4 | u64::from(digit.is_none())) & DIGITS;
        self.count += 1;
        if digit.is_none() {
            self.until_others = [self.count, self.until_others[0]];
        }
    }

    /// Whether nearly all of the last characters are digits, which is rare in words.
    const fn may_be(&self) -> bool {
        self.count >= self.until_others[1] + NONCE_CHARS - 1
    }

    /// Whether the nonce ends here, with at most one digit changed, missing or added.
    fn is_like(&self, nonce: u64) -> bool {
        let other = {
            let bits = self.digits ^ nonce;
            (bits | bits >> 1 | bits >> 2 | bits >> 3 | self.others) & DIGITS & NONCE
        };
        let less = |place| without(nonce, place) == self.digits & NONCE >> 4;
        let more = |place| {
            without(self.digits, place) & NONCE == nonce && without(self.others, place) & NONCE == 0
        };
        self.count >= NONCE_CHARS && other.count_ones() <= 1
            || self.others & NONCE >> 4 == 0 && (0..NONCE_CHARS).any(less)
            || self.count > NONCE_CHARS && (0..=NONCE_CHARS).any(more)
    }
}

/// `digits` without the one at `place`, counted from the end.
const fn without(digits: u64, place: usize) -> u64 {
    let below = (1 << (4 * place)) - 1;
    digits >> 4 & !below | digits & below
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
        // HMAC-SHA256 of eight zero bytes under an empty key, computed with another program.
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

    #[test]
    fn what_looks_like_the_nonce_is_taken_for_it() {
        let first = of("thread:1", &[]);
        let at = |place: usize| (&first[..place], &first[place..]);
        let changed = |sign: &str| format!("{}{sign}{}", at(4).0, at(5).1);
        let wide = first
            .chars()
            .map(|c| char::from_u32(u32::from(c) + 0xFEE0).unwrap());
        let parted: Vec<String> = first.chars().map(String::from).collect();
        for like in [
            wide.collect::<String>(),
            first.chars().rev().collect(),
            parted.join("-"),
            parted.join(" \u{301}\n"),
            changed("x"),
            changed("é"),
            changed(""),
            format!("{}x{}", at(6).0, at(6).1),
            format!("{}7{}", at(11).0, at(11).1),
            first[1..].to_owned(),
            first[..11].to_owned(),
        ] {
            for text in [
                like.clone(),
                format!("[{like}] Ada: hi"),
                format!("zzz{like}"),
            ] {
                assert_ne!(first, of("thread:1", &[&text]), "{text:?}");
            }
        }
        let two = format!("{}xx{}", at(4).0, at(6).1);
        for other in [two.as_str(), &first[2..], &first[..10], "", "0", "deadbeef"] {
            assert_eq!(first, of("thread:1", &[other]), "{other:?}");
        }
    }
}
