//! Whom a text names without mentioning them: at its beginning, or anywhere in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound;

use super::Utterance;
use crate::model::Speaker;

/// The longest name that is looked for, in scalars: Discord's longest is 32.
const LONGEST: usize = 40;
/// The shortest name that is found within a text, in scalars...
const SHORTEST: usize = 3;
/// ...and the shortest beginning of one.
const SHORTEST_PART: usize = 4;
/// The words of a text that are looked at.
const MOST_WORDS: usize = 60;
/// Whoever is named within a text wrote one of so many messages before it.
const RECENT: usize = 40;

/// Whether a text begins with a name, known or not: `ann: hello`, `@ann hello`.
pub(super) fn addresses(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    first.ends_with([':', ',']) || first.starts_with(['@', '<'])
}

/// The people whom each message names, by their numbers: who stands at its beginning, then who
/// stands within it. `authors` are the numbers of those who wrote, below `people`.
///
/// Within a text a name is a word that is one, or the beginning of only one. A word that stands
/// in any text whose author had not heard of its bearer for a while is a word, no name; of who is
/// `absent` others have heard.
pub(super) fn named(
    utterances: &[Utterance<'_>],
    authors: &[usize],
    people: usize,
    absent: Option<Absent<'_>>,
) -> Vec<Vec<usize>> {
    let mut names = Names::default();
    if let Some(absent) = absent {
        names.add(absent.name, absent.person, 0);
    }
    for (at, (utterance, author)) in utterances.iter().zip(authors).enumerate() {
        names.add(utterance.name, *author, at);
    }
    let mut last: Vec<Option<usize>> = vec![None; people];
    let mut uses: Vec<(usize, String, usize)> = Vec::new();
    let mut words: HashSet<String> = HashSet::new();
    let mut named: Vec<Vec<usize>> = Vec::with_capacity(utterances.len());
    for (at, (utterance, author)) in utterances.iter().zip(authors).enumerate() {
        let text = utterance.text.trim_start();
        let addressed = names.addressed(text, at);
        named.push(addressed.iter().map(|(person, _)| *person).collect());
        let within = &text[addressed.map_or(0, |(_, end)| end)..];
        names.within(within, |word, person| {
            if person == *author {
                return;
            }
            let is_absent = absent.is_some_and(|one| one.person == person && at >= one.from);
            if is_absent || last[person].is_some_and(|last| at - last <= RECENT) {
                uses.push((at, word.to_owned(), person));
            } else {
                words.insert(word.to_owned());
            }
        });
        last[*author] = Some(at);
    }
    for (at, word, person) in uses {
        if !words.contains(&word) {
            named[at].push(person);
        }
    }
    named
}

/// Which texts, oldest first, name somebody who missed those from the `from`th on: at their
/// beginning, or anywhere unless others used the name as a word before.
pub fn naming(
    utterances: &[Utterance<'_>],
    (whom, name): (Speaker<'_>, &str),
    from: usize,
) -> Vec<bool> {
    let mut people = HashMap::from([(whom, 0)]);
    let authors = utterances.iter().map(|utterance| {
        let next = people.len();
        *people.entry(utterance.speaker).or_insert(next)
    });
    let authors: Vec<usize> = authors.collect();
    let absent = Absent {
        person: 0,
        name,
        from,
    };
    let named = named(utterances, &authors, people.len(), Some(absent));
    named.iter().map(|named| named.contains(&0)).collect()
}

/// Somebody who perhaps wrote nothing, and has not read what was written from a message on.
#[derive(Clone, Copy)]
pub(super) struct Absent<'a> {
    person: usize,
    name: &'a str,
    from: usize,
}

/// Names in lower case: whose each is, and since which message. A name is whose it was first, so
/// that nobody takes one over.
#[derive(Default)]
struct Names(BTreeMap<String, (usize, usize)>);

impl Names {
    fn add(&mut self, name: &str, person: usize, at: usize) {
        if name.chars().count() <= LONGEST && !self.0.contains_key(name) {
            self.0.entry(name.to_lowercase()).or_insert((person, at));
        }
    }

    /// Whose name stands at the beginning, and where it ends: `ann: ...`, `ann, ...` or
    /// `@ann ...`.
    fn addressed(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        let (name, is_marked) = match text.strip_prefix('@') {
            Some(name) => (name, true),
            None => (text, false),
        };
        let ends = name.char_indices().take(LONGEST + 1);
        let ends = ends.filter(|(_, c)| matches!(c, ':' | ',') || is_marked && c.is_whitespace());
        let ends = ends.map(|(end, _)| end);
        let whole = (is_marked && name.chars().nth(LONGEST).is_none()).then_some(name.len());
        ends.chain(whole).find_map(|end| {
            let (person, since) = self.0.get(&name[..end].to_lowercase())?;
            (*since < at).then_some((*person, text.len() - name.len() + end))
        })
    }

    /// Calls `each` with each word in lower case that may be a name, and whose.
    fn within(&self, text: &str, mut each: impl FnMut(&str, usize)) {
        let is_between = |c: char| c.is_whitespace() || ",:;!?()<>\"".contains(c);
        let mut word = String::new();
        for typed in text
            .split(is_between)
            .filter(|typed| !typed.is_empty())
            .take(MOST_WORDS)
        {
            let typed = typed.trim_matches(['@', '.', '\'', '*', '`']);
            let typed = typed.strip_suffix("'s").unwrap_or(typed);
            word.clear();
            word.extend(typed.chars().take(LONGEST).flat_map(char::to_lowercase));
            if let Some(person) = self.meant(&word) {
                each(&word, person);
            }
        }
    }

    fn meant(&self, word: &str) -> Option<usize> {
        let length = word.chars().take(SHORTEST_PART).count();
        if length < SHORTEST {
            return None;
        }
        let from = (Bound::Included(word), Bound::Unbounded);
        let mut names = self.0.range::<str, _>(from);
        let (name, (person, _)) = names.next()?;
        if name == word {
            return Some(*person);
        }
        let mut others = names.take_while(|(name, _)| name.starts_with(word));
        let is_part = length == SHORTEST_PART && name.starts_with(word);
        (is_part && others.all(|(_, (other, _))| other == person)).then_some(*person)
    }
}
