//! Makes other people's text and names harmless without changing what a reader
//! sees: removes characters that are invisible, reorder the line or stack out of
//! it.
//!
//! Markup is left alone: code must survive unchanged (`Vec<String>`, `a < b &&
//! c`), so nothing is escaped here. The frame's nonce keeps texts inside their
//! frame, see [`super::nonce`].

mod names;
mod skeleton;

pub use names::{MAX_NAME_CHARS, UNNAMED, UniqueNames, name};

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::charset::CharSet;
use super::cluster::is_emoji;

/// Most line breaks in a row. No text needs more, and a thousand would push a
/// frame out of sight.
pub const MAX_NEWLINES: usize = 20;

/// Most combining marks on one character. Vietnamese needs 2, Hebrew 4, and
/// Tibetan sometimes stacks 6; more is "zalgo".
pub const MAX_MARKS: usize = 8;

/// The only flags in use that are made of tag characters: England, Scotland and
/// Wales. All other tag characters are invisible letters.
const TAG_FLAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// The base character of those flags.
const BLACK_FLAG: char = '\u{1F3F4}';

/// `raw` without control, bidirectional, zero-width, tag, filler, private-use and
/// noncharacters. Every kind of line break becomes `\n`; tabs stay. Joiners stay
/// inside emoji and between letters of scripts that need them, variation
/// selectors 15 and 16 after an emoji. [`MAX_NEWLINES`] and [`MAX_MARKS`] limit
/// line breaks and combining marks.
///
/// Idempotent.
pub fn text(raw: &str) -> String {
    let visible = if raw.bytes().all(is_plain) {
        raw.to_owned()
    } else {
        visible(raw)
    };
    bound_newlines(visible)
}

/// The same on one line, with single spaces between words: what people wrote where it must
/// not pass for something else, such as a name, a reason, or a line on a terminal.
pub fn line(raw: &str) -> String {
    let visible = text(raw);
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether `character` shows nothing: a control or format character without a
/// visible form, a blank that counts as a letter, or a noncharacter. Joiners and
/// variation selectors count as invisible.
pub fn is_invisible(character: char) -> bool {
    static INVISIBLE: CharSet = CharSet::new(shows_nothing);
    !matches!(character, '\n' | '\t' | ' '..='~') && INVISIBLE.contains(character)
}

fn shows_nothing(character: char) -> bool {
    match character {
        '\n' | '\t' | ' '..='~' => false,
        // Blanks that count as letters or marks; variation selectors, including
        // Mongolian ones; invisible operators, deprecated format characters and the
        // range reserved for more of them; noncharacters.
        '\u{34F}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{3164}'
        | '\u{FFA0}'
        | '\u{180B}'..='\u{180F}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FFF0}'..='\u{FFFB}'
        | '\u{E0000}'..='\u{E0FFF}'
        | '\u{FDD0}'..='\u{FDEF}' => true,
        _ if u32::from(character) & 0xFFFE == 0xFFFE => true,
        // Visible characters that Unicode classifies as "format".
        '\u{600}'..='\u{605}'
        | '\u{6DD}'
        | '\u{70F}'
        | '\u{890}'
        | '\u{891}'
        | '\u{8E2}'
        | '\u{110BD}'
        | '\u{110CD}' => false,
        _ => matches!(
            character.general_category(),
            GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::PrivateUse
        ),
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'~')
}

/// What has been kept so far.
#[derive(Default)]
struct VisibleText {
    text: String,
    last: Option<char>,
    marks: usize,
}

impl VisibleText {
    fn push(&mut self, character: char) {
        self.text.push(character);
        self.last = Some(character);
    }

    fn push_mark(&mut self, mark: char) {
        self.marks += 1;
        if self.marks <= MAX_MARKS {
            self.push(mark);
        }
    }

    fn push_base(&mut self, base: char) {
        self.marks = 0;
        self.push(base);
    }

    /// Whether a joiner here, before `next`, has a visible effect.
    fn takes_joiner(&self, joiner: char, next: Option<char>) -> bool {
        let (Some(last), Some(next)) = (self.last, next) else {
            return false;
        };
        let in_emoji = joiner == '\u{200D}' && (is_emoji(last) || last == '\u{FE0F}');
        (in_emoji && is_emoji(next))
            || (uses_joiners(last) && uses_joiners(next) && is_letter(next))
    }

    /// Whether a variation selector here, before `next`, belongs to an emoji.
    fn takes_selector(&self, selector: char, next: Option<char>) -> bool {
        let keycap = selector == '\u{FE0F}' && next == Some('\u{20E3}');
        match self.last {
            Some('0'..='9' | '#' | '*') => keycap,
            Some(last) => is_emoji(last),
            None => false,
        }
    }
}

fn visible(raw: &str) -> String {
    let mut kept = VisibleText {
        text: String::with_capacity(raw.len()),
        ..VisibleText::default()
    };
    let mut chars = raw.chars();
    while let Some(character) = chars.next() {
        let rest = chars.as_str();
        let next = rest.chars().next();
        match character {
            '\r' if next == Some('\n') => {}
            '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => kept.push_base('\n'),
            '\u{200C}' | '\u{200D}' => {
                if kept.takes_joiner(character, next) {
                    kept.push(character);
                }
            }
            '\u{FE0E}' | '\u{FE0F}' => {
                if kept.takes_selector(character, next) {
                    kept.push(character);
                }
            }
            BLACK_FLAG => {
                kept.push_base(character);
                if let Some(tags) = TAG_FLAGS.iter().find(|tags| rest.starts_with(**tags)) {
                    kept.text.push_str(tags);
                    chars = rest[tags.len()..].chars();
                }
            }
            _ if is_invisible(character) => {}
            _ if stacks(character) => kept.push_mark(character),
            _ => kept.push_base(character),
        }
    }
    kept.text
}

/// Whether `character` is drawn above or below the previous one.
fn stacks(character: char) -> bool {
    static STACKING: CharSet = CharSet::new(|character| {
        matches!(
            character.general_category(),
            GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark
        )
    });
    !character.is_ascii() && STACKING.contains(character)
}

fn is_letter(character: char) -> bool {
    character.general_category() == GeneralCategory::OtherLetter
}

/// Scripts in which a joiner or non-joiner changes the form of letters: Arabic
/// and related scripts, those of India, Burmese, Khmer, Mongolian.
fn uses_joiners(character: char) -> bool {
    matches!(
        character,
        '\u{600}'..='\u{DFF}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1780}'..='\u{18AF}'
            | '\u{A8E0}'..='\u{A8FF}'
            | '\u{FB50}'..='\u{FDFF}'
            | '\u{FE70}'..='\u{FEFC}'
            | '\u{11000}'..='\u{11FFF}'
    )
}

/// At most [`MAX_NEWLINES`] line breaks in a row; lines of only blanks count as
/// empty. Indentation after them stays.
fn bound_newlines(text: String) -> String {
    if text.bytes().filter(|byte| *byte == b'\n').count() <= MAX_NEWLINES {
        return text;
    }
    let mut bounded = String::with_capacity(text.len());
    let mut breaks = 0;
    for line in text.split_inclusive('\n') {
        breaks = if is_blank(line) { breaks + 1 } else { 1 };
        if breaks <= MAX_NEWLINES || !line.ends_with('\n') {
            bounded.push_str(line);
        }
    }
    bounded
}

fn is_blank(line: &str) -> bool {
    line.chars()
        .all(|character| character.is_whitespace() || character == '\u{2800}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_character_is_as_unicode_says() {
        for character in '\0'..=char::MAX {
            assert_eq!(is_invisible(character), shows_nothing(character));
        }
    }

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(text(raw), expected, "{raw:?}");
    }

    #[track_caller]
    fn survives(raw: &str) {
        check(raw, raw);
    }

    #[test]
    fn code_survives_to_the_letter() {
        survives("Vec<String>, a < b && c \"q\" 'x' \\n");
        survives("```rust\nfn main() {\n\tlet x = a[0];\n    y();  \n}\n```");
        survives("<@1> <:clew:2> </ask:3> [text](https://x.y/?a=b&c=d) ||s|| `code`");
    }

    #[test]
    fn joined_emoji_survive_to_the_letter() {
        survives("👨‍👩‍👧‍👦 🏳️‍🌈 🏴‍☠️ 👩🏽‍🚀 🧑🏿‍🤝‍🧑🏻 🇩🇪 ❤️‍🔥 👁️‍🗨️");
        survives("1️⃣ #️⃣ *️⃣ ©️ ™️ ☎︎ ☎️");
        survives("🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿");
    }

    #[test]
    fn scripts_survive_to_the_letter() {
        survives("می‌خواهم नमस्ते क्‍ष ශ්‍රී শুভ สวัสดี 日本語 Ελληνικά हिन्दी עִבְרִית");
        survives("Tiếng Việt, e\u{301}, \u{600}12");
    }

    #[test]
    fn what_is_not_seen_is_removed() {
        check("a\0b\u{7}c\u{1b}[31md\u{7f}\u{9b}e", "abc[31mde");
        check(
            "ab\u{202E}cd\u{2066}\u{2069}\u{61C}\u{200E}\u{200F}",
            "abcd",
        );
        check(
            "i\u{200B}g\u{200C}n\u{200D}o\u{2060}r\u{FEFF}e\u{AD}!",
            "ignore!",
        );
        check(
            "a\u{34F}\u{115F}\u{1160}\u{3164}\u{FFA0}\u{180E}\u{2063}\u{206A}b",
            "ab",
        );
        check("a\u{E0001}\u{E0068}\u{E0069}\u{E007F}b", "ab");
        check("🏴\u{E0075}\u{E0073}\u{E007F}x", "🏴x");
        check("a\u{FE0F}b\u{FE00}\u{E0100}c1\u{FE0F}", "abc1");
        check("😀\u{FE0F}\u{FE0F}\u{FE0E}", "😀\u{FE0F}");
        check("😀\u{200D}", "😀");
        check("😀\u{200C}😀 م\u{200C}a a\u{200C}日", "😀😀 مa a日");
        check("日\u{200C}本 م\u{200C}، a\u{200C}م", "日本 م، aم");
        check("😀\u{200D}\u{200D}😀", "😀\u{200D}😀");
        check("\u{E000}\u{F8FF}\u{FDD0}\u{FFFE}\u{1FFFF}\u{10FFFD}x", "x");
    }

    #[test]
    fn every_line_break_is_one() {
        check(
            "a\r\nb\rc\u{2028}d\u{2029}e\u{85}f\u{B}g\u{C}h",
            "a\nb\nc\nd\ne\nf\ng\nh",
        );
        check(
            &format!("a{}b", "\n".repeat(2000)),
            &format!("a{}b", "\n".repeat(20)),
        );
        check(
            &format!("a{}    b", " \n".repeat(999)),
            &format!("a{}    b", " \n".repeat(20)),
        );
        survives(&"line\n\n".repeat(100));
    }

    #[test]
    fn stacked_marks_are_bounded() {
        let zalgo = format!("h{}i", "\u{335}\u{301}".repeat(50));
        assert_eq!(text(&zalgo).chars().count(), 2 + MAX_MARKS);
    }

    #[derive(serde::Deserialize)]
    struct Hostile {
        name: String,
        content: String,
        why: String,
    }

    fn corpus() -> Vec<Hostile> {
        include_str!("../../../../fixtures/hostile/corpus.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).expect("each line of the corpus is an object"))
            .collect()
    }

    /// A list independent of the code's, so that both cannot have the same mistake.
    fn is_forbidden(character: char) -> bool {
        let code = u32::from(character);
        (character.is_control() && character != '\n' && character != '\t')
            || [0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x3164, 0xFEFF, 0xFFA0].contains(&code)
            || [
                0x180B..=0x180F,
                0x200B..=0x200F,
                0x2028..=0x202E,
                0x2060..=0x206F,
                0xE000..=0xF8FF,
                0xFDD0..=0xFDEF,
                0xFE00..=0xFE0F,
                0xFFF9..=0xFFFB,
                0xFFFE..=0xFFFF,
                0xE0000..=0x0010_FFFF,
            ]
            .iter()
            .any(|range| range.contains(&code))
    }

    /// The only invisible characters that may remain are those that joined emoji
    /// need, and only next to an emoji.
    #[track_caller]
    fn check_harmless(clean: &str, why: &str) {
        let mut last = None;
        for character in clean.chars() {
            let joins = matches!(character, '\u{200D}' | '\u{FE0F}' | '\u{FE0E}')
                && last.is_some_and(|last| is_emoji(last) || last == '\u{FE0F}');
            assert!(
                joins || !is_forbidden(character),
                "{why}: {character:?} in {clean:?}"
            );
            last = Some(character);
        }
        assert!(!clean.contains(&"\n".repeat(MAX_NEWLINES + 1)), "{why}");
        let stacked = clean
            .split(|c| !stacks(c))
            .map(|marks| marks.chars().count());
        assert!(stacked.max().unwrap_or(0) <= MAX_MARKS, "{why}");
    }

    #[test]
    fn no_hostile_text_or_name_keeps_what_is_not_seen() {
        let corpus = corpus();
        assert!(corpus.len() >= 48);
        let mut names = UniqueNames::new("Clew");
        let mut assigned = std::collections::HashSet::from(["clew".to_owned()]);
        for (id, hostile) in (1..).zip(&corpus) {
            check_harmless(&text(&hostile.content), &hostile.why);
            let name = names.assign(id, &hostile.name);
            check_harmless(name, &hostile.why);
            assert!(
                !name.contains(['\n', '[', ']', '<', '>', ':', '`']),
                "{name:?}"
            );
            assert!(!name.trim().is_empty() && name.trim() == name, "{name:?}");
            assert!(name.chars().count() <= MAX_NAME_CHARS + " (user 0001) (99)".len());
            assert!(
                assigned.insert(name.to_lowercase()),
                "{name:?} is given twice"
            );
        }
    }

    #[test]
    fn nobody_hostile_is_under_our_name_or_a_role() {
        for hostile in corpus().iter().filter(|hostile| {
            hostile.why.starts_with("our name") || hostile.why.starts_with("name of a role")
        }) {
            let mut names = UniqueNames::new("Clew");
            let name = names.assign(4321, &hostile.name);
            // Without its override character it reads as spelt, which is not our name.
            if hostile.why.contains("backwards") {
                assert_eq!(name, "welC", "{}", hostile.why);
            } else {
                assert!(name.ends_with(" (user 4321)"), "{}: {name:?}", hostile.why);
            }
        }
    }

    proptest! {
        #[test]
        fn doing_it_twice_changes_nothing(raw in "[\\PC\\n\u{200B}-\u{200F}\u{FE0F}\u{301}😀क\u{94D}1\u{20E3}]{0,40}") {
            let once = text(&raw);
            prop_assert_eq!(&text(&once), &once);
        }
    }
}
