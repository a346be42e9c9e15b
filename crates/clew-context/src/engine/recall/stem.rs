//! Terms: hashes of the stems of words. English endings are taken off, so that "camped"
//! finds "camping"; words of other scripts and languages stay as they are.

use std::sync::LazyLock;

use super::alike;
use crate::engine::words::{self, WordLimits};
use crate::model::UnixMillis;

/// English words that hold talk together and say nothing of what is asked for. In other
/// languages they count little for being common.
const PASSED_OVER: [&str; 81] = [
    "a", "about", "an", "and", "are", "as", "at", "be", "been", "by", "can", "could", "did", "do",
    "does", "for", "from", "had", "has", "have", "he", "her", "his", "how", "i", "in", "is", "it",
    "its", "me", "my", "not", "of", "on", "or", "our", "she", "should", "that", "the", "their",
    "they", "this", "to", "was", "we", "were", "what", "when", "where", "which", "who", "whom",
    "why", "will", "with", "would", "you", "your", "whose", "am", "again", "but", "continue", "go",
    "hello", "hi", "if", "just", "more", "no", "ok", "please", "say", "so", "tell", "thank",
    "thanks", "there", "think", "yes",
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Endings, with what stands for each; the first that fits goes.
const ENDINGS: [(&str, &str); 8] = [
    ("ies", "y"),
    ("sses", "ss"),
    ("ing", ""),
    ("ied", "y"),
    ("ed", ""),
    ("es", ""),
    ("s", ""),
    ("ly", ""),
];
/// Letters that stay of a word when an ending goes.
const LEAST: usize = 3;

/// The different terms of a question, but for words that only hold it together.
pub(super) fn terms_of(question: &str, limits: WordLimits) -> Vec<u32> {
    let mut terms = Vec::new();
    words::for_each_word(question, limits, |word| {
        if !PASSED_OVER.contains(&bare(word)) {
            terms.push(term(word));
        }
    });
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Calls `each` with the term of each word.
pub(super) fn each_term(text: &str, limits: WordLimits, mut each: impl FnMut(u32)) {
    words::for_each_word(text, limits, |word| each(term(word)));
}

/// The term of a text's first word, 0 without words.
pub(super) fn first_term(text: &str) -> u32 {
    let mut first = 0;
    let limits = WordLimits {
        chars: text.len(),
        words: 1,
    };
    words::for_each_word(text, limits, |word| first = term(word));
    first
}

/// The term of the month in which something was said, in English, as people ask for it.
pub(super) fn month(at: UnixMillis) -> Option<u32> {
    Some(term(MONTHS[at.month()? - 1]))
}

/// Whether it is the term of a word that only holds a question together.
pub(super) fn is_passed_over(one: u32) -> bool {
    static TERMS: LazyLock<Vec<u32>> = LazyLock::new(|| PASSED_OVER.map(term).to_vec());
    TERMS.contains(&one)
}

fn term(word: &str) -> u32 {
    alike::of(own_term(word))
}

/// The term of a word itself.
pub(super) fn own_term(word: &str) -> u32 {
    let bare = bare(word);
    let hash = if bare.len() > LEAST && bare.bytes().all(|byte| byte.is_ascii_lowercase()) {
        words::hash(&stem(bare))
    } else {
        words::hash(bare)
    };
    // Both halves of it.
    let folded = (hash ^ (hash >> 32)) & u64::from(u32::MAX);
    u32::try_from(folded).unwrap_or_default()
}

/// Without what follows an apostrophe: "Ada's" is "ada".
fn bare(word: &str) -> &str {
    word.split_once('\'').map_or(word, |(before, _)| before)
}

/// Of an ASCII word in lower case.
fn stem(word: &str) -> String {
    let mut stem = word.to_owned();
    for (ending, instead) in ENDINGS {
        let Some(rest) = word.strip_suffix(ending) else {
            continue;
        };
        if rest.len() >= LEAST {
            rest.clone_into(&mut stem);
            stem.push_str(instead);
            break;
        }
    }
    if let [.., before, last] = stem.as_bytes()
        && stem.len() > LEAST
        && before == last
        && !b"lsz".contains(last)
    {
        stem.pop();
    }
    if stem.len() > LEAST && stem.ends_with('e') {
        stem.pop();
    }
    if stem.len() > LEAST && stem.ends_with('y') {
        stem.pop();
        stem.push('i');
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: WordLimits = WordLimits {
        chars: usize::MAX,
        words: usize::MAX,
    };

    #[track_caller]
    fn alike(words: &[&str]) {
        let stems: Vec<u32> = words.iter().map(|word| term(word)).collect();
        assert!(stems.iter().all(|one| *one == stems[0]), "{words:?}");
    }

    #[test]
    fn forms_of_a_word_have_one_term() {
        alike(&["camp", "camps", "camped", "camping"]);
        alike(&["running", "runs", "run"]);
        alike(&["pottery", "pottery's"]);
        alike(&["story", "stories"]);
        alike(&["bake", "baked", "baking"]);
        alike(&["buy", "bought", "buying", "purchases"]);
        alike(&["child", "children", "kids"]);
    }

    #[test]
    fn other_words_have_others() {
        let words = [
            "bus", "bed", "sing", "kiss", "is", "жуки", "東京", "京都", "café",
        ];
        let terms: std::collections::BTreeSet<u32> = words.iter().map(|word| term(word)).collect();
        assert_eq!(terms.len(), words.len());
    }

    #[test]
    fn words_that_hold_a_question_together_are_passed_over() {
        assert_eq!(terms_of("What did you do with it?", ALL), [0; 0]);
        assert_eq!(terms_of("When did Ada's camping end, Ada?", ALL).len(), 3);
    }
}
