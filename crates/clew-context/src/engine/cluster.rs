//! What a reader takes for one character: a letter with its marks, a joined
//! emoji, a flag. Texts are cut only between these.
//!
//! A simplified form of the extended grapheme clusters of Unicode's annex 29:
//! marks, variation selectors, joiners, skin tones, tags, flags, Hangul and
//! CR LF are held together; prepended characters are not.

use unicode_properties::{GeneralCategoryGroup, UnicodeEmoji, UnicodeGeneralCategory};

use super::charset::CharSet;

/// The most scalars of one cluster. The longest emoji in use has 10; a longer
/// run is an attack and may be cut anywhere.
pub const MAX_CLUSTER_CHARS: usize = 32;

/// The clusters of `text`, which concatenate to `text`. None is empty and none
/// has more than [`MAX_CLUSTER_CHARS`] scalars.
pub fn clusters(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (cluster, after) = rest.split_at(first_cluster_len(rest));
        rest = after;
        (!cluster.is_empty()).then_some(cluster)
    })
}

/// The longest prefix of `text` with at most `max_chars` scalars that ends
/// between two clusters. Empty if the first cluster is longer.
pub fn head(text: &str, max_chars: usize) -> &str {
    let (mut chars, mut end) = (0, 0);
    for cluster in clusters(text) {
        chars += cluster.chars().count();
        if chars > max_chars {
            break;
        }
        end += cluster.len();
    }
    &text[..end]
}

/// The longest suffix of `text` with at most `max_chars` scalars that starts
/// between two clusters.
pub fn tail(text: &str, max_chars: usize) -> &str {
    let mut chars = text.chars().count();
    let mut start = 0;
    for cluster in clusters(text) {
        if chars <= max_chars {
            break;
        }
        chars -= cluster.chars().count();
        start += cluster.len();
    }
    &text[start..]
}

/// Whether `character` is an emoji by itself. Digits, `#` and `*`, which are
/// emoji only inside a keycap, are not.
pub fn is_emoji(character: char) -> bool {
    !character.is_ascii() && character.is_emoji_char()
}

/// Whether `character` is a combining mark of any kind.
pub fn is_mark(character: char) -> bool {
    static MARKS: CharSet =
        CharSet::new(|character| character.general_category_group() == GeneralCategoryGroup::Mark);
    !character.is_ascii() && MARKS.contains(character)
}

fn first_cluster_len(text: &str) -> usize {
    let mut chars = text.char_indices();
    let Some((_, mut previous)) = chars.next() else {
        return 0;
    };
    let mut flag_letters = usize::from(is_flag_letter(previous));
    for (count, (index, next)) in (1..).zip(chars) {
        let pairs_up = is_flag_letter(next) && flag_letters == 1 && is_flag_letter(previous);
        if count >= MAX_CLUSTER_CHARS || !(pairs_up || joins(previous, next)) {
            return index;
        }
        flag_letters += usize::from(is_flag_letter(next));
        previous = next;
    }
    text.len()
}

/// Whether no cut may fall between the two, flags apart.
fn joins(previous: char, next: char) -> bool {
    if next.is_ascii() {
        return previous == '\r' && next == '\n';
    }
    if previous.is_ascii_control() {
        return false;
    }
    matches!(next, '\u{200C}' | '\u{200D}' | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}')
        || is_mark(next)
        || (previous == '\u{200D}' && is_emoji(next))
        || hangul_joins(previous, next)
}

fn is_flag_letter(character: char) -> bool {
    matches!(character, '\u{1F1E6}'..='\u{1F1FF}')
}

/// Hangul written as separate leading, vowel and trailing letters.
fn hangul_joins(previous: char, next: char) -> bool {
    let leading = matches!(previous, '\u{1100}'..='\u{115F}' | '\u{A960}'..='\u{A97C}');
    let syllable = matches!(previous, '\u{AC00}'..='\u{D7A3}' | '\u{1160}'..='\u{11FF}');
    match next {
        '\u{1100}'..='\u{115F}' | '\u{AC00}'..='\u{D7A3}' => leading,
        '\u{1160}'..='\u{11A7}' => leading || syllable,
        '\u{11A8}'..='\u{11FF}' => syllable,
        _ => false,
    }
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
        check("👨\u{200D}🇩🇪🇫", &["👨\u{200D}🇩🇪", "🇫"]);
        check("1\u{FE0F}\u{20E3}2", &["1\u{FE0F}\u{20E3}", "2"]);
        check("각\u{1100}\u{1161}", &["각", "\u{1100}\u{1161}"]);
        check("\u{1100}가\u{11A8}가", &["\u{1100}가\u{11A8}", "가"]);
        check("क\u{94D}\u{200D}ष", &["क\u{94D}\u{200D}", "ष"]);
    }

    #[test]
    fn an_endless_cluster_is_cut() {
        let zalgo = format!("a{}", "\u{301}".repeat(100));
        assert!(clusters(&zalgo).all(|part| part.chars().count() <= MAX_CLUSTER_CHARS));
        assert_eq!(clusters(&zalgo).collect::<String>(), zalgo);
    }

    #[test]
    fn heads_and_tails_end_between_clusters() {
        assert_eq!(head("a👍🏽b", 2), "a");
        assert_eq!(head("a👍🏽b", 3), "a👍🏽");
        assert_eq!(tail("a👍🏽b", 2), "b");
        assert_eq!(tail("a👍🏽b", 3), "👍🏽b");
        assert_eq!(head("👍🏽", 0), "");
        assert_eq!(tail("ab", 9), "ab");
    }
}
