//! The words of a text, alike in every script: for finding and comparing texts, not for
//! showing them. Pure.
//!
//! A word is a run of letters, digits and marks, with apostrophes inside (`don't`). Where a
//! script writes no spaces between words, each two neighbouring characters are one.

use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Scalars of a word that count; what follows in the same run is passed over.
const LONGEST: usize = 40;

/// How much of a text is looked at, which bounds the time that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordLimits {
    /// Unicode scalars of the text, from its beginning.
    pub chars: usize,
    /// Words, repeated ones included.
    pub words: usize,
}

/// Calls `each` with the words of the text, in their order: in lower case and in the
/// compatibility form NFKC, so that full-width letters equal plain ones. Each has 1 to 120
/// scalars, none of them a space or ASCII punctuation but `'`.
pub fn for_each_word(text: &str, limits: WordLimits, each: impl FnMut(&str)) {
    let mut splitter = Splitter {
        each,
        left: limits.words,
        word: String::new(),
        length: 0,
        apostrophe: false,
        last: None,
        paired: false,
    };
    let text = &text[..end_of(text, limits.chars)];
    if text.is_ascii() {
        for byte in text.bytes() {
            splitter.take(char::from(byte));
        }
    } else {
        text.nfkc().for_each(|c| splitter.take(c));
    }
    splitter.end();
}

/// FNV-1a. Two words with one hash count as one, by which nobody gains anything.
pub fn hash(word: &str) -> u64 {
    word.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The byte after the first `chars` scalars.
fn end_of(text: &str, chars: usize) -> usize {
    if text.len() <= chars {
        return text.len();
    }
    let end = text.char_indices().nth(chars);
    end.map_or(text.len(), |(end, _)| end)
}

struct Splitter<F> {
    each: F,
    /// Words that may still be given.
    left: usize,
    /// The word so far, of a script with spaces.
    word: String,
    /// Scalars of it.
    length: usize,
    /// Whether an apostrophe follows the word, which belongs to it if a letter comes next.
    apostrophe: bool,
    /// The character before, of a script without spaces.
    last: Option<char>,
    /// Whether that one is already part of a pair.
    paired: bool,
}

impl<F: FnMut(&str)> Splitter<F> {
    fn take(&mut self, c: char) {
        if self.left == 0 {
            return;
        }
        if c.is_ascii_alphanumeric() {
            self.letter(c.to_ascii_lowercase());
        } else if c == '\'' || c == '’' {
            self.apostrophe = !self.word.is_empty() && !self.apostrophe;
            if !self.apostrophe {
                self.end();
            }
        } else if c.is_ascii() {
            self.end();
        } else if is_unspaced(c) {
            self.paired(c);
        } else if c.is_alphanumeric() {
            c.to_lowercase().for_each(|c| self.letter(c));
        } else if c.general_category_group() == GeneralCategoryGroup::Mark {
            self.mark(c);
        } else {
            self.end();
        }
    }

    /// A letter or digit of a script with spaces.
    fn letter(&mut self, c: char) {
        if self.last.is_some() {
            self.end();
        }
        if self.apostrophe {
            self.apostrophe = false;
            self.push('\'');
        }
        self.push(c);
    }

    /// A mark belongs to the word before it; alone it is none. Variation selectors and the
    /// like after an emoji are such.
    fn mark(&mut self, c: char) {
        if !self.word.is_empty() && !self.apostrophe {
            self.push(c);
        }
    }

    fn push(&mut self, c: char) {
        if self.length < LONGEST {
            self.word.push(c);
            self.length += 1;
        }
    }

    /// A character of a script without spaces.
    fn paired(&mut self, c: char) {
        if let Some(last) = self.last {
            let mut pair = [0; 8];
            let first = last.encode_utf8(&mut pair).len();
            let both = first + c.encode_utf8(&mut pair[first..]).len();
            if let Ok(pair) = str::from_utf8(&pair[..both]) {
                self.give(pair);
            }
            self.paired = true;
        } else {
            self.end();
            self.paired = false;
        }
        self.last = Some(c);
    }

    /// Ends the word or the run of pairs.
    fn end(&mut self) {
        if !self.word.is_empty() {
            let word = std::mem::take(&mut self.word);
            self.give(&word);
            self.word = word;
            self.word.clear();
            self.length = 0;
        }
        self.apostrophe = false;
        if let Some(last) = self.last.take()
            && !self.paired
        {
            self.give(last.encode_utf8(&mut [0; 4]));
        }
    }

    fn give(&mut self, word: &str) {
        if self.left > 0 {
            self.left -= 1;
            (self.each)(word);
        }
    }
}

/// Whether the character is of a script that writes no spaces between words, or, as Hangul,
/// spaces that part phrases rather than words.
fn is_unspaced(c: char) -> bool {
    matches!(
        c,
        // Thai, Lao
        '\u{E01}'..='\u{E4E}' | '\u{E81}'..='\u{ECE}'
        // Myanmar, Khmer
        | '\u{1000}'..='\u{103F}' | '\u{1780}'..='\u{17D3}'
        // Iteration mark, Hiragana, Katakana
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{309F}' | '\u{30A1}'..='\u{30FA}'
        | '\u{30FC}'..='\u{30FF}'
        // Han
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{323AF}'
        // Hangul
        | '\u{AC00}'..='\u{D7A3}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: WordLimits = WordLimits {
        chars: usize::MAX,
        words: usize::MAX,
    };

    fn words(text: &str, limits: WordLimits) -> Vec<String> {
        let mut words = Vec::new();
        for_each_word(text, limits, |word| words.push(word.to_owned()));
        words
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(words(text, ALL).join(" "), expected, "{text}");
    }

    #[test]
    fn words_are_runs_of_letters_in_lower_case() {
        check("", "");
        check("Don't PANIC, it's 42!", "don't panic it's 42");
        check("'quoted' it''s rock'n'roll'", "quoted it s rock'n'roll");
        check("it’s /etc/fstab snake_case", "it's etc fstab snake case");
        check(
            "<@12> a-b https://x.example/y?z=1",
            "12 a b https x example y z 1",
        );
        check("ÉCOLE Ärger ΣΊΣΥΦΟΣ Жуки", "école ärger σίσυφοσ жуки");
    }

    #[test]
    fn forms_of_one_letter_are_alike() {
        check("ｃａｆé cafe\u{301}", "café café");
        check("ﾊﾟﾝ", "パン");
    }

    #[test]
    fn marks_belong_to_their_word() {
        check("हिन्दी में", "हिन्दी में");
        check("⚠\u{FE0F} \u{301}a", "a");
    }

    #[test]
    fn without_spaces_each_two_characters_are_one() {
        check("東京タワー", "東京 京タ タワ ワー");
        check("木 が", "木 が");
        check("iPhoneを買う2台", "iphone を買 買う 2 台");
        check("한국어 배우기", "한국 국어 배우 우기");
        check("ขอบคุณ", "ขอ อบ บค คุ ุณ");
    }

    #[test]
    fn no_more_is_looked_at_than_the_limits_allow() {
        let some = |chars, words| WordLimits { chars, words };
        assert_eq!(words("one two three", some(100, 2)), ["one", "two"]);
        assert_eq!(words("ünf zwei drei", some(6, 9)), ["ünf", "zw"]);
        assert_eq!(words("東京タワー", some(100, 2)), ["東京", "京タ"]);
        assert_eq!(words("one", some(0, 9)), Vec::<String>::new());
        let long = "x".repeat(1_000);
        assert_eq!(words(&long, ALL), ["x".repeat(LONGEST)]);
    }

    proptest! {
        #[test]
        fn words_are_short_and_split_no_further(text in "\\PC{0,60}", most in 0_usize..20) {
            let limits = WordLimits { chars: 50, words: most };
            let given = words(&text, limits);
            prop_assert!(given.len() <= most);
            for word in &given {
                prop_assert!((1..=120).contains(&word.chars().count()));
                let odd = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '\'';
                prop_assert!(!word.chars().any(odd), "{word}");
            }
        }
    }
}
