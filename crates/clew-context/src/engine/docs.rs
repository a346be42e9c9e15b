//! Docs: an agent's documents, whole or by passage. Pure.
//!
//! Documents longer than their budget are cut into passages once, when they are loaded. A
//! prompt then gets a list of their titles and the passages that match the question and the
//! messages around it best, as [`super::recall`] ranks.

mod split;

use std::borrow::Cow;

use super::recall::{RecallEntry, RecallIndex};
use crate::model::{AgentDoc, TurnId, UnixMillis};

use self::split::{Passage, passages};

/// What the messages around a question count, beside the question's 1.
const AROUND: f32 = 0.25;
/// The longest list of titles, in Unicode scalars.
const TITLES_CHARS: usize = 2_000;
/// What stands around a title and a text in a prompt: `# ` and line breaks.
const FRAME_CHARS: usize = 6;
/// Between a document and its headings.
pub(super) const BELOW: &str = " > ";
/// The head of the list of titles.
const LIST: &str = "Documents";
/// What stands for the text between two passages below the same heading.
const BETWEEN: &str = "\n\n[...]\n\n";
/// Between the times at which two passages count as said: a day.
const APART_MS: i64 = 86_400_000;

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
    passages: Vec<Passage>,
    /// By the passages' places.
    index: RecallIndex,
    titles: AgentDoc,
}

/// What goes into a prompt.
#[derive(Debug)]
pub struct PromptDocs<'a> {
    /// Whole documents; or a list of titles, then passages in their order.
    pub docs: Cow<'a, [AgentDoc]>,
    /// The titles of the passages: document and headings.
    pub passages: Vec<String>,
}

/// A document, or what stands below one of its headings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocSection<'a> {
    /// Document and headings.
    pub title: String,
    /// Its text.
    pub text: &'a str,
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

    /// What a prompt gets for a question and the words around it; the budget of passages is
    /// halved so often.
    pub fn for_prompt(&self, question: &str, around: &str, halvings: u32) -> PromptDocs<'_> {
        let Some(cut) = &self.cut else {
            return PromptDocs {
                docs: Cow::Borrowed(&self.all),
                passages: Vec::new(),
            };
        };
        let mut room = self.budget.checked_shr(halvings).unwrap_or_default();
        let ranked = cut.ranked(question, around);
        let fits = |at: &usize| {
            let passage = &cut.passages[*at];
            let title = passage.title(&self.all).chars().count();
            let left = room.checked_sub(title + passage.chars + FRAME_CHARS);
            room = left.unwrap_or(room);
            left.is_some()
        };
        let mut chosen: Vec<usize> = ranked.filter(fits).collect();
        chosen.sort_unstable();
        let mut docs = vec![cut.titles.clone()];
        let mut before = None;
        for at in chosen {
            let passage = &cut.passages[at];
            let (name, text) = (passage.title(&self.all), passage.text(&self.all));
            match docs.last_mut() {
                Some(last) if before.is_some() && last.name == name => {
                    let is_next = before == at.checked_sub(1);
                    last.text.push_str(if is_next { "\n\n" } else { BETWEEN });
                    last.text.push_str(text);
                }
                _ => docs.push(AgentDoc {
                    name,
                    text: text.to_owned(),
                }),
            }
            before = Some(at);
        }
        PromptDocs {
            passages: docs.iter().skip(1).map(|doc| doc.name.clone()).collect(),
            docs: Cow::Owned(docs),
        }
    }

    /// The titles of the best passages for a question, best first, with their texts.
    pub fn best(&self, question: &str, around: &str) -> Vec<DocSection<'_>> {
        let ranked = self.cut.iter().flat_map(|cut| {
            let places = cut.ranked(question, around);
            places.map(|at| &cut.passages[at])
        });
        let sections = ranked.map(|passage| DocSection {
            title: passage.title(&self.all),
            text: passage.text(&self.all),
        });
        sections.collect()
    }

    /// A document by its name, case and `.md` aside, or what stands below one of its
    /// headings. The name may be a title, as prompts show it.
    pub fn section(&self, name: &str, heading: Option<&str>) -> Option<DocSection<'_>> {
        let (name, below) = name.split_once(BELOW).unwrap_or((name, ""));
        let wanted = heading.unwrap_or(below).trim_matches([' ', '#']);
        let mut docs = self.all.iter();
        let place = docs.position(|doc| bare_name(&doc.name) == bare_name(name))?;
        let doc = &self.all[place];
        if wanted.is_empty() {
            return Some(DocSection {
                title: doc.name.clone(),
                text: &doc.text,
            });
        }
        let of_doc = self.cut.iter().flat_map(|cut| &cut.passages);
        let of_doc = of_doc.filter(|passage| passage.doc == place);
        let wanted = wanted.to_lowercase();
        let is_named = |path: &str| path == wanted || path.ends_with(&format!("{BELOW}{wanted}"));
        let find = |is_it: &dyn Fn(&str) -> bool| {
            let mut paths = of_doc.clone().flat_map(|passage| paths(&passage.headings));
            paths.find(|path| is_it(&path.to_lowercase()))
        };
        let path = find(&is_named).or_else(|| find(&|path| path.contains(&wanted)))?;
        let is_within = |passage: &&Passage| paths(&passage.headings).any(|one| one == path);
        let mut within = of_doc.skip_while(|passage| !is_within(passage));
        let first = within.next()?;
        let last = within.take_while(is_within).last().unwrap_or(first);
        Some(DocSection {
            title: format!("{}{BELOW}{path}", doc.name),
            text: doc.text[first.range.start..last.range.end].trim(),
        })
    }
}

impl CutDocs {
    fn new(docs: &[AgentDoc]) -> Self {
        let passages = passages(docs);
        let titles: Vec<String> = passages.iter().map(|one| one.title(docs)).collect();
        let entries = (0..).zip(&passages).zip(&titles);
        let entries = entries.map(|((place, passage), title)| RecallEntry {
            turn: TurnId(place),
            // Too far apart to give each other a part of their scores.
            at: UnixMillis(place.cast_signed().saturating_mul(APART_MS)),
            texts: [title.as_str()]
                .into_iter()
                .chain(passage.text(docs).lines())
                .collect(),
        });
        let entries: Vec<RecallEntry<'_>> = entries.collect();
        let mut index = RecallIndex::default();
        index.add_newer(&entries);
        let titles = AgentDoc {
            name: LIST.to_owned(),
            text: list(docs, &passages),
        };
        Self {
            passages,
            index,
            titles,
        }
    }

    /// The places of the passages that match, best first.
    fn ranked(&self, question: &str, around: &str) -> impl Iterator<Item = usize> {
        let ranked = self.index.ranked(&[(question, 1.0), (around, AROUND)]);
        let places = ranked.into_iter();
        places.filter_map(|place| usize::try_from(place.0).ok())
    }
}

/// The titles of the documents, each with some of its headings.
fn list(docs: &[AgentDoc], passages: &[Passage]) -> String {
    let mut room = TITLES_CHARS;
    let fits = |doc: &&AgentDoc| {
        let left = room.checked_sub(doc.name.chars().count() + FRAME_CHARS);
        room = left.unwrap_or(room);
        left.is_some()
    };
    let shown = docs.iter().take_while(fits).count();
    let share = room.checked_div(shown).unwrap_or_default();
    let mut lines = Vec::new();
    for (place, doc) in docs[..shown].iter().enumerate() {
        let of_doc = passages.iter().filter(|passage| passage.doc == place);
        let mut headings: Vec<&str> = Vec::new();
        let mut room = share;
        for passage in of_doc {
            // The highest is often the document's title.
            let mut parts = passage.headings.split(BELOW);
            let highest = parts.next().unwrap_or_default();
            let heading = parts.next().unwrap_or(highest);
            if heading.is_empty() || headings.contains(&heading) {
                continue;
            }
            let Some(left) = room.checked_sub(heading.chars().count() + 2) else {
                break;
            };
            room = left;
            headings.push(heading);
        }
        let colon = if headings.is_empty() { "" } else { ": " };
        lines.push(format!("- {}{colon}{}", doc.name, headings.join(", ")));
    }
    if shown < docs.len() {
        lines.push(format!("and {} more", docs.len() - shown));
    }
    lines.join("\n")
}

/// A path of headings, and those that lead to it, the highest first.
fn paths(headings: &str) -> impl Iterator<Item = &str> {
    let ends = headings.match_indices(BELOW).map(|(end, _)| end);
    ends.chain([headings.len()]).map(|end| &headings[..end])
}

fn bare_name(name: &str) -> String {
    let name = name.trim().to_lowercase();
    name.strip_suffix(".md").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests;
