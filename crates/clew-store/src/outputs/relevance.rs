//! Which outputs a query is about: by the words they share.

use std::cmp::Reverse;
use std::collections::HashSet;

use unicode_script::{Script, UnicodeScript as _};

use super::ContextPointer;

/// Words of fewer characters say too little.
const MIN_CHARS: usize = 3;

/// The pointers that share a word with the query, most words first; of equals
/// the newest.
pub(super) fn ranked<'a>(query: &str, pointers: &'a [ContextPointer]) -> Vec<&'a ContextPointer> {
    let query = Keywords::of(query);
    let score = |pointer: &ContextPointer| query.shared_with(&pointer.tool_description);
    let scored = pointers.iter().map(|pointer| (score(pointer), pointer));
    let mut found: Vec<_> = scored.filter(|(score, _)| *score > 0).collect();
    found.sort_by_key(|(score, pointer)| Reverse((*score, pointer.age_key())));
    found.into_iter().map(|(_, pointer)| pointer).collect()
}

/// The words of a text by which others about the same thing are found: those of at
/// least three characters; of scripts without spaces, pairs of adjacent characters.
#[derive(Debug, Clone)]
pub struct Keywords(HashSet<String>);

impl Keywords {
    /// The words of this text.
    pub fn of(text: &str) -> Self {
        Self(keywords(text))
    }

    /// How many of them another text has.
    pub fn shared_with(&self, text: &str) -> usize {
        self.0.intersection(&keywords(text)).count()
    }

    /// Whether another text has no words but these.
    pub fn cover(&self, text: &str) -> bool {
        keywords(text).is_subset(&self.0)
    }
}

/// The words of a text in lower case. Scripts that put no spaces between words
/// count by pairs of adjacent characters.
fn keywords(text: &str) -> HashSet<String> {
    let text = text.to_lowercase();
    let mut words = HashSet::new();
    for run in text.split(|one: char| !one.is_alphanumeric() && !is_mark(one)) {
        let mut word = String::new();
        let mut unspaced: Vec<char> = Vec::new();
        for one in run.chars() {
            if is_unspaced(one) {
                add_word(&mut word, &mut words);
                unspaced.push(one);
            } else if is_mark(one) && !unspaced.is_empty() {
                unspaced.push(one);
            } else {
                add_pairs(&mut unspaced, &mut words);
                word.push(one);
            }
        }
        add_word(&mut word, &mut words);
        add_pairs(&mut unspaced, &mut words);
    }
    words
}

fn add_word(word: &mut String, words: &mut HashSet<String>) {
    if word.chars().count() >= MIN_CHARS {
        words.insert(std::mem::take(word));
    }
    word.clear();
}

fn add_pairs(run: &mut Vec<char>, words: &mut HashSet<String>) {
    match run.as_slice() {
        [] => {}
        [one] => {
            words.insert(one.to_string());
        }
        run => words.extend(run.windows(2).map(|pair| pair.iter().collect())),
    }
    run.clear();
}

/// Vowel signs and tones, which belong to the letter before them.
fn is_mark(one: char) -> bool {
    matches!(one.script(), Script::Inherited) || (is_unspaced(one) && !one.is_alphanumeric())
}

fn is_unspaced(one: char) -> bool {
    matches!(
        one.script(),
        Script::Han
            | Script::Hiragana
            | Script::Katakana
            | Script::Bopomofo
            | Script::Hangul
            | Script::Thai
            | Script::Lao
            | Script::Khmer
            | Script::Myanmar
    )
}
