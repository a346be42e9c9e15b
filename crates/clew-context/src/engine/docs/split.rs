//! Cuts documents into passages: at headings (`#`), then at blank lines and around blocks of
//! code, and within one of those only if it is longer than a passage may be.

use std::ops::Range;

use super::BELOW;
use crate::model::AgentDoc;

/// The longest passage, in Unicode scalars: some hundred words, about one thing.
const LONGEST: usize = 1_200;
/// The longest path of headings, in Unicode scalars.
const HEADINGS_CHARS: usize = 200;
/// From so many passages on headings cut no more, which bounds what they take in memory.
const MOST_BY_HEADING: usize = 4_096;

/// A part of a document.
#[derive(Debug)]
pub(super) struct Passage {
    /// The document's place.
    pub(super) doc: usize,
    /// The headings above it, the highest first.
    pub(super) headings: String,
    /// Its bytes in the document.
    pub(super) range: Range<usize>,
}

impl Passage {
    /// Its text, named after document and headings.
    pub(super) fn titled(&self, docs: &[AgentDoc]) -> AgentDoc {
        let AgentDoc { name, text } = &docs[self.doc];
        let mut name = name.split_whitespace().collect::<Vec<_>>().join(" ");
        if !self.headings.is_empty() {
            name.push_str(BELOW);
            name.push_str(&self.headings);
        }
        AgentDoc {
            name,
            text: bare(&text[self.range.clone()]).to_owned(),
        }
    }
}

/// The passages of documents, in their order.
pub(super) fn passages(docs: &[AgentDoc]) -> Vec<Passage> {
    let mut all = Vec::new();
    for (doc, AgentDoc { text, .. }) in docs.iter().enumerate() {
        let mut splitter = Splitter {
            doc,
            text,
            headings: Vec::new(),
            block: 0..0,
            passage: 0..0,
            passages: &mut all,
        };
        splitter.split();
    }
    all
}

/// A document that is being cut.
struct Splitter<'a> {
    doc: usize,
    text: &'a str,
    /// Those above, with their levels.
    headings: Vec<(usize, &'a str)>,
    /// The paragraph or block of code so far.
    block: Range<usize>,
    /// The passage so far, without it.
    passage: Range<usize>,
    passages: &'a mut Vec<Passage>,
}

impl Splitter<'_> {
    fn split(&mut self) {
        let text = self.text;
        let mut fence = None;
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            let start = end;
            end += line.len();
            let is_code = fence.is_some();
            if let Some(open) = fence {
                fence = (!closes(line, open)).then_some(open);
            } else if let Some((level, title)) = heading(line)
                && self.passages.len() < MOST_BY_HEADING
            {
                self.end_passage();
                self.headings.retain(|(above, _)| *above < level);
                self.headings.push((level, title));
                continue;
            } else {
                fence = fence_of(line);
            }
            let is_blank = line.trim().is_empty();
            if !is_code && (fence.is_some() || is_blank) {
                self.end_block();
                if is_blank {
                    continue;
                }
            }
            if self.block.is_empty() {
                self.block.start = start;
            }
            self.block.end = end;
            if is_code && fence.is_none() {
                self.end_block();
            }
        }
        self.end_passage();
    }

    /// Adds the block to the passage, or begins another one with it.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return;
        }
        if self.passage.is_empty() {
            self.passage = block.start..block.start;
        }
        let both = self.passage.start..block.end;
        if bare(&self.text[both.clone()]).chars().count() <= LONGEST {
            self.passage = both;
            return;
        }
        let text = self.text[block.clone()].trim_end();
        let mut rest = block.start..block.start + text.len();
        while !rest.is_empty() {
            self.push();
            let text = &self.text[rest.clone()];
            let most = text.char_indices().nth(LONGEST);
            let end = most.map_or(text.len(), |(most, _)| {
                let at_line = text[..most].rfind('\n');
                let end = at_line.or_else(|| text[..most].rfind(' '));
                end.map_or(most, |end| end + 1)
            });
            self.passage = rest.start..rest.start + end;
            rest.start += end;
        }
    }

    fn end_passage(&mut self) {
        self.end_block();
        self.push();
    }

    fn push(&mut self) {
        let range = std::mem::take(&mut self.passage);
        if bare(&self.text[range.clone()]).is_empty() {
            return;
        }
        let headings = self.headings.iter().map(|(_, title)| *title);
        let headings: Vec<&str> = headings.filter(|title| !title.is_empty()).collect();
        let headings = headings.join(BELOW);
        self.passages.push(Passage {
            doc: self.doc,
            headings: headings.chars().take(HEADINGS_CHARS).collect(),
            range,
        });
    }
}

/// Without blank lines around it.
fn bare(text: &str) -> &str {
    text.trim_end().trim_start_matches(['\r', '\n'])
}

/// A heading's level and words.
fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with([' ', '\t', '\r', '\n']);
    is_heading.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

/// What a block of code begins with, and how often.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|mark| "`~".contains(*mark))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    (length >= 3 && !rest.contains('`')).then_some((mark, length))
}

fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let line = line.trim();
    line.len() >= length && line.chars().all(|one| one == mark)
}
