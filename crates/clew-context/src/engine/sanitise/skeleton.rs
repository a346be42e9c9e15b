//! The skeleton of a name: the same for names that a reader could confuse.
//!
//! A small part of Unicode's technical standard 39 (confusables), for Latin
//! letters: case, marks, width, mathematical and circled forms, and similar
//! letters of other scripts.

use std::collections::HashMap;
use std::sync::LazyLock;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::engine::charset::CharSet;
use crate::engine::cluster::is_mark;

/// `name` without case, marks, spaces and punctuation, with look-alikes unified.
/// Never empty for a name with a visible character.
pub(super) fn skeleton(name: &str) -> String {
    let letters: String = name
        .chars()
        .filter(|c| counts(*c))
        .flat_map(folded)
        .collect();
    if letters.is_empty() {
        return name.to_lowercase();
    }
    letters
}

/// The skeletons of the words of `name`, split at spaces and punctuation.
pub(super) fn words(name: &str) -> impl Iterator<Item = String> {
    name.split(|c: char| !counts(c) && !is_mark(c))
        .filter(|word| !word.is_empty())
        .map(skeleton)
}

/// Whether `character` distinguishes names.
fn counts(character: char) -> bool {
    use GeneralCategoryGroup as Group;
    static COUNTING: CharSet = CharSet::new(|character| {
        !matches!(
            character.general_category_group(),
            Group::Mark | Group::Separator | Group::Punctuation | Group::Other
        )
    });
    COUNTING.contains(character)
}

fn folded(character: char) -> impl Iterator<Item = char> {
    narrow(character)
        .to_lowercase()
        .filter(|c| counts(*c))
        .map(look_alike)
}

/// The plain letter or digit for a compatibility form.
fn narrow(character: char) -> char {
    let code = u32::from(character);
    match code {
        0xFF01..=0xFF5E => offset(0x21, code - 0xFF01),
        // Mathematical letters, upper and lower case; the digits follow below.
        0x1D400..=0x1D6A3 => offset(0x61, (code - 0x1D400) % 26),
        0x1D7CE..=0x1D7FF => offset(0x30, (code - 0x1D7CE) % 10),
        0x24B6..=0x24CF => offset(0x61, code - 0x24B6),
        0x24D0..=0x24E9 => offset(0x61, code - 0x24D0),
        0x1F110..=0x1F129 => offset(0x61, code - 0x1F110),
        0x1F130..=0x1F149 => offset(0x61, code - 0x1F130),
        0x1F150..=0x1F169 => offset(0x61, code - 0x1F150),
        0x1F170..=0x1F189 => offset(0x61, code - 0x1F170),
        0x1F1E6..=0x1F1FF => offset(0x61, code - 0x1F1E6),
        _ => character,
    }
}

fn offset(base: u32, place: u32) -> char {
    char::from_u32(base + place).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// One lower-case letter for all that look like it, with or without accents. `i`,
/// `l` and `1` count as the same, and so do `o` and `0`: in many typefaces they
/// are.
fn look_alike(lower: char) -> char {
    if lower.is_ascii_lowercase() && lower != 'i' {
        return lower;
    }
    LETTERS.get(&lower).copied().unwrap_or(lower)
}

/// [`LOOK_ALIKES`] inverted.
static LETTERS: LazyLock<HashMap<char, char>> = LazyLock::new(|| {
    let mut letters = HashMap::new();
    for (letter, like) in LOOK_ALIKES {
        for character in like.chars() {
            letters.entry(character).or_insert(letter);
        }
    }
    letters
});

/// Latin with diacritics, Greek, Cyrillic, Armenian, Cherokee, small capitals and
/// letter-like symbols.
const LOOK_ALIKES: [(char, &str); 26] = [
    ('a', "àáâãäåāăąǎǟǡǻȁȃȧạảấầẩẫậắằẳẵặḁаαɑᴀӑӓåɐ"),
    ('b', "ḃḅḇƀɓьЬвβʙв"),
    ('c', "çćĉċčḉƈсϲᴄⅽċ"),
    ('d', "ďđḋḍḏḑḓɖɗԁᴅⅾժ"),
    ('e', "èéêëēĕėęěȅȇȩẹẻẽếềểễệḕḗḙḛḝеёєεɛᴇℯҽӗ"),
    ('f', "ḟƒſꜰғ"),
    ('g', "ĝğġģǧǵḡɠɡɢցԍ"),
    ('h', "ĥħḣḥḧḩḫẖһնнʜℎ"),
    ('j', "ĵǰјʝᴊϳ"),
    ('k', "ķĸǩḱḳḵƙкκᴋқ"),
    ('l', "iìíîïĩīĭįıǐȉȋɨḭḯỉịіїιɪℹ1|ĺļľłŀḷḹḻḽʟⅼӏⅰɩℓ"),
    ('m', "ḿṁṃмᴍⅿɱ"),
    ('n', "ñńņňŉŋǹṅṇṉṋոռɴηпƞ"),
    ('o', "òóôõöøōŏőơǒǫǭǿȍȏȫȭȯȱọỏốồổỗộớờởỡợṍṏṑṓоοσօᴏ0ө"),
    ('p', "ṕṗƥрρᴘ"),
    ('q', "ԛզɋգ"),
    ('r', "ŕŗřȑȓṙṛṝṟɍгᴦʀᴙя"),
    ('s', "śŝşšșṡṣṥṧṩßѕꜱʂ"),
    ('t', "ţťŧțṫṭṯṱẗƭтτᴛ"),
    ('u', "ùúûüũūŭůűųưǔǖǘǚǜȕȗụủứừửữựṳṵṷṹṻυսᴜцʋ"),
    ('v', "ṽṿѵνᴠⅴ"),
    ('w', "ŵẁẃẅẇẉẘԝѡωᴡաɯшщ"),
    ('x', "ẋẍхχⅹ×"),
    ('y', "ýÿŷȳẏẙỳỵỷỹƴуүγʏўӯ"),
    ('z', "źżžẑẓẕƶᴢʐ"),
    ('ε', "зӡɜ3"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_equal() {
        for name in [
            "clew",
            "CLEW",
            "С l е w",
            "ｃｌｅｗ",
            "𝓒𝓵𝓮𝔀",
            "ⓒⓛⓔⓦ",
            "🅲🅻🅴🆆",
            "ⒸⓁⒺⓌ",
            "🄒🄛🄔🄦",
            "🄲🄻🄴🅆",
            "🅒🅛🅔🅦",
            "🇨 🇱 🇪 🇼",
            "C.l-e_w",
            "çĺéŵ",
            "c1ew",
            "CIew",
        ] {
            assert_eq!(skeleton(name), "clew", "{name}");
        }
    }

    /// The first and last letter of each alphabet that Unicode encodes more than once.
    #[test]
    fn letters_of_every_form_are_plain_ones() {
        for (forms, plain) in [
            ("ａｚＡＺ", "azaz"),
            ("𝐀𝐙𝐚𝐳𝚊𝚣", "azazaz"),
            ("ⒶⓏⓐⓩ", "azaz"),
            ("🄐🄩🄰🅉🅐🅩🅰🆉", "azazazaz"),
            ("🇦🇿", "az"),
            ("𝟎𝟗𝟘𝟡𝟢𝟫𝟬𝟵𝟶𝟿", "0909090909"),
        ] {
            assert_eq!(skeleton(forms), skeleton(plain), "{forms}");
        }
    }

    #[test]
    fn different_names_differ() {
        let names = [
            "clew", "crew", "日本", "中国", "🔥", "💧", "!", "?", "2", "4",
        ];
        for (index, one) in names.iter().enumerate() {
            for other in &names[index + 1..] {
                assert_ne!(skeleton(one), skeleton(other));
            }
        }
    }

    #[test]
    fn words_are_parted_by_spaces_and_punctuation() {
        let parts: Vec<String> = words("The-Real  Cle\u{301}w (bot)").collect();
        assert_eq!(parts, ["the", "real", "clew", "bot"]);
    }
}
