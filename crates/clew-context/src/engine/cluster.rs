//! What a reader sees as one character: a letter with its marks, a joined emoji,
//! a flag (extended grapheme clusters, Unicode's annex 29). Texts are only cut
//! between clusters.

use unicode_properties::{GeneralCategoryGroup, UnicodeEmoji, UnicodeGeneralCategory};
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::charset::CharSet;

/// Most scalars in one cluster. The longest emoji in use has 10; a longer run is
/// an attack and may be cut anywhere.
pub const MAX_CLUSTER_CHARS: usize = 32;

/// Splits `text` into clusters, in order and without gaps. None is empty or has
/// more than [`MAX_CLUSTER_CHARS`] scalars.
pub fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    // What is left of a cluster that is too long.
    let mut long = "";
    std::iter::from_fn(move || {
        if long.is_empty() {
            (long, rest) = rest.split_at(first_cluster(rest));
        }
        let part;
        (part, long) = long.split_at(nth_char(long, MAX_CLUSTER_CHARS));
        (!part.is_empty()).then_some(part)
    })
}

/// The length of the first cluster, in bytes. ASCII before ASCII is one by itself,
/// except a line break of two characters; this spares most texts the tables.
fn first_cluster(text: &str) -> usize {
    match text.as_bytes() {
        [] => 0,
        [first, after @ ..] if is_alone(*first, after.first()) => 1,
        _ => text.graphemes(true).next().map_or(text.len(), str::len),
    }
}

const fn is_alone(character: u8, next: Option<&u8>) -> bool {
    let is_before_ascii = match next {
        Some(next) => next.is_ascii(),
        None => true,
    };
    character.is_ascii() && character != b'\r' && is_before_ascii
}

/// The longest prefix of `text` with at most `max_chars` scalars that ends
/// between two clusters. Empty if the first cluster is longer.
pub fn head(text: &str, max_chars: usize) -> &str {
    let most = nth_char(text, max_chars);
    if is_between(text, most) {
        return &text[..most];
    }
    // Inside a cluster: go back to its start, unless that is too far.
    let near = nth_char(text, max_chars.saturating_sub(MAX_CLUSTER_CHARS));
    let mut starts = text[near..most]
        .char_indices()
        .map(|(at, _)| near + at)
        .rev();
    let start = starts.find(|at| is_between(text, *at));
    &text[..start.unwrap_or(most)]
}

/// The longest suffix of `text` with at most `max_chars` scalars that starts
/// between two clusters.
pub fn tail(text: &str, max_chars: usize) -> &str {
    let all = text.chars().count();
    let least = nth_char(text, all.saturating_sub(max_chars));
    let rest = &text[least..];
    let far = nth_char(rest, MAX_CLUSTER_CHARS);
    let ends = rest[..far].char_indices().map(|(at, _)| least + at);
    let mut ends = ends.chain([least + far]);
    let start = ends.find(|at| is_between(text, *at));
    &text[start.unwrap_or(least)..]
}

/// The byte offset of the scalar with this number, or the length of `text`.
fn nth_char(text: &str, number: usize) -> usize {
    let found = text.char_indices().nth(number);
    found.map_or(text.len(), |(at, _)| at)
}

fn is_between(text: &str, at: usize) -> bool {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    cursor.is_boundary(text, 0).unwrap_or(true)
}

/// Whether `character` is an emoji on its own. Digits, `#` and `*` are not: they
/// are emoji only inside a keycap.
pub fn is_emoji(character: char) -> bool {
    !character.is_ascii() && character.is_emoji_char()
}

/// Whether `character` is a combining mark of any kind.
pub fn is_mark(character: char) -> bool {
    static MARKS: CharSet =
        CharSet::new(|character| character.general_category_group() == GeneralCategoryGroup::Mark);
    !character.is_ascii() && MARKS.contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(clusters(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_a_reader_takes_for_one_character_stays_whole() {
        check("", &[]);
        check("ab", &["a", "b"]);
        check("e\u{301}a", &["e\u{301}", "a"]);
        check("a\r\nb\n", &["a", "\r\n", "b", "\n"]);
        check("👨‍👩‍👧x", &["👨‍👩‍👧", "x"]);
        check("👍🏽👍", &["👍🏽", "👍"]);
        check("🇩🇪🇫🇷🇫", &["🇩🇪", "🇫🇷", "🇫"]);
        check("👨\u{200D}🇩🇪🇫", &["👨\u{200D}", "🇩🇪", "🇫"]);
        check("1\u{FE0F}\u{20E3}2", &["1\u{FE0F}\u{20E3}", "2"]);
        check("각\u{1100}\u{1161}", &["각", "\u{1100}\u{1161}"]);
        check("\u{1100}가\u{11A8}가", &["\u{1100}가\u{11A8}", "가"]);
        check("क\u{94D}\u{200D}षक", &["क\u{94D}\u{200D}ष", "क"]);
    }

    #[test]
    fn an_endless_cluster_is_cut() {
        let zalgo = format!("a{}", "\u{301}".repeat(100));
        assert!(clusters(&zalgo).all(|part| part.chars().count() <= MAX_CLUSTER_CHARS));
        assert_eq!(clusters(&zalgo).collect::<String>(), zalgo);
    }

    #[test]
    fn clusters_are_those_of_unicode() {
        let parts = [
            "a", "\r", "\n", " ", "1", "\u{301}", "\u{600}", "é", "👍", "🏽", "\u{200D}",
        ];
        let texts = (0..parts.len().pow(4)).map(|number| {
            let digits = (0..4).map(|place| number / parts.len().pow(place) % parts.len());
            digits.map(|digit| parts[digit]).collect::<String>()
        });
        for text in texts {
            let expected: Vec<&str> = text.graphemes(true).collect();
            check(&text, &expected);
        }
    }

    #[test]
    fn heads_and_tails_end_between_clusters() {
        assert_eq!(head("a👍🏽b", 2), "a");
        assert_eq!(head("a👍🏽b", 3), "a👍🏽");
        assert_eq!(tail("a👍🏽b", 2), "b");
        assert_eq!(tail("a👍🏽b", 3), "👍🏽b");
        assert_eq!(head("👍🏽", 0), "");
        assert_eq!(tail("ab", 9), "ab");
        let zalgo = format!("a{}", "\u{301}".repeat(100));
        for most in [0, 1, 40, 101] {
            assert!(head(&zalgo, most).chars().count() <= most);
            assert!(tail(&zalgo, most).chars().count() <= most);
        }
    }
}
