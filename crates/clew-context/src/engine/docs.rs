//! Docs: an agent's documents, whole or by passage. Pure.
//!
//! Documents longer than their budget are cut into passages once, when they are loaded. A
//! prompt then gets a list of their titles and the passages that match the question and the
//! messages around it best, as [`super::recall`] ranks.

mod split;

use std::borrow::Cow;
use std::iter;

use super::recall::{Ranking, RecallIndex};
use crate::model::AgentDoc;

use self::split::passages;

/// How often a passage's title counts.
const TITLE: usize = 3;
/// How passages are weighed. They are alike in length, unless little stands below a heading.
const RANKING: Ranking = Ranking {
    length: 0.75,
    rarity: 1.0,
    beside: [0.0; 4],
    least: 0.05,
};
/// Words with which people ask, and which few documents use: their rarity says nothing.
const ASKING: &str = " able also any anybody anything but can't come don't each else ever every \
    find get give goes got happens help here i'd i'll i'm i've into isn't keep know let like look \
    made make makes many mean might much must need never nothing now off one only other out \
    possible put same see some somebody something somehow start still take than them then these \
    thing things those tried try up us use used using very want wants way while without won't \
    work works ";
/// The longest list of titles, in Unicode scalars.
const TITLES_CHARS: usize = 2_000;
/// Of that, the most for one of many documents.
const TITLE_CHARS: usize = 40;
/// What stands around a title and a text in a prompt: `# ` and line breaks.
const FRAME_CHARS: usize = 6;
/// Between a document and its headings.
pub(super) const BELOW: &str = " > ";

/// An agent's documents.
#[derive(Debug, Default)]
pub struct Docs {
    all: Vec<AgentDoc>,
    budget: usize,
    /// None if they go in whole.
    cut: Option<CutDocs>,
}

#[derive(Debug)]
struct CutDocs {
    /// Named after document and headings.
    passages: Vec<AgentDoc>,
    /// By the passages' places.
    index: RecallIndex,
    titles: AgentDoc,
}

/// Equal texts within an equal budget are cut alike.
impl PartialEq for Docs {
    fn eq(&self, other: &Self) -> bool {
        (&self.all, self.budget) == (&other.all, other.budget)
    }
}

impl Eq for Docs {}

impl Docs {
    /// Documents of which a prompt gets at most `budget` Unicode scalars beside the titles.
    pub fn new(all: Vec<AgentDoc>, budget: usize) -> Self {
        let chars: usize = all.iter().map(|doc| doc.text.chars().count()).sum();
        let cut = (chars > budget).then(|| CutDocs::new(&all));
        Self { all, budget, cut }
    }

    /// All of them.
    pub fn all(&self) -> &[AgentDoc] {
        &self.all
    }

    /// How much of them a prompt gets, in Unicode scalars.
    pub const fn budget(&self) -> usize {
        self.budget
    }

    /// Whether prompts get passages of them.
    pub const fn are_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// What a prompt gets: whole documents; or the list of titles, then passages in their
    /// order, within the budget halved so often. `words` are the question and what stands
    /// around it.
    pub fn for_prompt(
        &self,
        halvings: u32,
        words: impl FnOnce() -> (String, String),
    ) -> Cow<'_, [AgentDoc]> {
        let Some(cut) = &self.cut else {
            return Cow::Borrowed(&self.all);
        };
        let (question, around) = words();
        let mut room = self.budget.checked_shr(halvings).unwrap_or_default();
        let mut chosen = self.best(&question, &around);
        chosen.retain(|(_, doc)| {
            let chars = doc.name.chars().count() + doc.text.chars().count() + FRAME_CHARS;
            let left = room.checked_sub(chars);
            room = left.unwrap_or(room);
            left.is_some()
        });
        chosen.sort_unstable_by_key(|(place, _)| *place);
        let passages = chosen.into_iter().map(|(_, doc)| doc);
        let given = [&cut.titles].into_iter().chain(passages);
        Cow::Owned(given.cloned().collect())
    }

    /// The passages that match a question and the words around it, best first, with their
    /// places; each is named after its document and headings.
    pub fn best(&self, question: &str, around: &str) -> Vec<(usize, &AgentDoc)> {
        let question = asked_for(question);
        let matches = self.cut.iter().flat_map(|cut| {
            let places = cut.index.ranked(&question, around, RANKING);
            let places = places.into_iter();
            places.map(|place| (place, &cut.passages[place]))
        });
        matches.collect()
    }

    /// A document by its name, case and `.md` aside; with ` > ` and a heading what stands below
    /// that; else the passages that match these words.
    pub fn read(&self, asked: &str) -> Option<AgentDoc> {
        let title = asked.to_lowercase();
        let (name, heading) = title.split_once(BELOW).unwrap_or((&title, ""));
        let bare = |name: &str| name.trim().trim_end_matches(".md").to_owned();
        let mut docs = self.all.iter();
        let doc = docs.find(|doc| bare(&doc.name.to_lowercase()) == bare(name));
        if let Some(doc) = doc.filter(|_| heading.is_empty()) {
            return Some(doc.clone());
        }
        let passages = || self.cut.iter().flat_map(|cut| &cut.passages);
        let all = passages().flat_map(|passage| paths(&passage.name));
        let named = all.filter(|path| {
            let path = doc.and_then(|doc| path.strip_prefix(doc.name.as_str()));
            path.is_some_and(|path| path.to_lowercase().contains(heading))
        });
        // The shortest has the fewest other words.
        let path = named.min_by_key(|path| path.len());
        let is_below = |one: &&AgentDoc| paths(&one.name).any(|name| Some(name) == path);
        let found = || self.for_prompt(0, || (asked.to_owned(), String::new()));
        let texts: Vec<String> = match path {
            Some(_) => passages().filter(is_below).map(shown).collect(),
            None => found().iter().skip(1).map(shown).collect(),
        };
        (!texts.is_empty()).then(|| AgentDoc {
            name: path.unwrap_or(asked).to_owned(),
            text: texts.join("\n\n"),
        })
    }
}

/// A passage as prompts show it.
fn shown(passage: &AgentDoc) -> String {
    format!("# {}\n\n{}", passage.name, passage.text)
}

impl CutDocs {
    fn new(docs: &[AgentDoc]) -> Self {
        let passages = passages(docs);
        let texts = passages.iter().map(|doc| {
            let name = iter::repeat_n(doc.name.as_str(), TITLE);
            name.chain(doc.text.lines()).collect()
        });
        let index = RecallIndex::of_texts(texts);
        let titles = AgentDoc {
            name: "Documents".to_owned(),
            text: list(docs, &passages),
        };
        Self {
            passages,
            index,
            titles,
        }
    }
}

/// The words of a question that say what it is about.
fn asked_for(question: &str) -> String {
    let words = question.split_whitespace().filter(|word| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        !ASKING.contains(&format!(" {} ", word.to_lowercase().replace('’', "'")))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The names of the documents, each with as many of its headings as there is room for.
fn list(docs: &[AgentDoc], passages: &[AgentDoc]) -> String {
    let share = (TITLES_CHARS / docs.len().max(1)).max(TITLE_CHARS);
    let shown = docs.len().min(TITLES_CHARS / share);
    let lines = docs[..shown].iter().map(|doc| {
        let titles = passages.iter().filter_map(|one| one.name.split_once(BELOW));
        let of_doc = titles.filter(|(name, _)| *name == doc.name);
        // The highest is often the document's title.
        let headings = of_doc.filter_map(|(_, path)| path.splitn(3, BELOW).take(2).last());
        let mut headings: Vec<&str> = headings.collect();
        headings.dedup();
        let line = format!("- {}: {}", doc.name, headings.join(", "));
        let line = line.trim_end_matches(": ").chars();
        line.take(share - 1).collect::<String>()
    });
    let mut lines: Vec<String> = lines.collect();
    if shown < docs.len() {
        lines.push(format!("and {} more", docs.len() - shown));
    }
    lines.join("\n")
}

/// A title, and those that lead to it, the document first.
fn paths(title: &str) -> impl Iterator<Item = &str> {
    let ends = title.match_indices(BELOW).map(|(end, _)| end);
    ends.chain([title.len()]).map(|end| &title[..end])
}

#[cfg(test)]
mod tests;
