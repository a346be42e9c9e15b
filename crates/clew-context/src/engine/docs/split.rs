//! Cuts documents into passages: at headings (`#`), then at blank lines and around blocks of
//! code, and within one of those only if it is longer than a passage may be.

use std::ops::Range;

use super::BELOW;
use crate::model::AgentDoc;

/// The longest passage, in Unicode scalars: some hundred words, about one thing.
const LONGEST: usize = 1_200;
/// The longest heading, in Unicode scalars.
const HEADING_CHARS: usize = 100;
/// From so many passages on headings cut no more, which bounds what they take in memory.
const MOST_BY_HEADING: usize = 4_096;

/// The passages of documents, in their order, each named after its document and headings.
pub(super) fn passages(docs: &[AgentDoc]) -> Vec<AgentDoc> {
    let mut all = Vec::new();
    for doc in docs {
        let mut splitter = Splitter {
            doc,
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
    doc: &'a AgentDoc,
    /// Those above, with their levels.
    headings: Vec<(usize, &'a str)>,
    /// The bytes of the paragraph or block of code so far.
    block: Range<usize>,
    /// Those of the passage so far, without it.
    passage: Range<usize>,
    passages: &'a mut Vec<AgentDoc>,
}

impl Splitter<'_> {
    fn split(&mut self) {
        // What began the block of code, in one.
        let mut fence: Option<&str> = None;
        let mut end = 0;
        for line in self.doc.text.split_inclusive('\n') {
            let start = end;
            end += line.len();
            let begins = fence_of(line).filter(|_| fence.is_none());
            let is_heading = fence.is_none() && self.passages.len() < MOST_BY_HEADING;
            if let Some((level, title)) = heading(line).filter(|_| is_heading) {
                self.end_passage();
                self.headings.retain(|(above, _)| *above < level);
                self.headings.push((level, title));
                continue;
            }
            let is_blank = fence.is_none() && line.trim().is_empty();
            if begins.is_some() || is_blank {
                self.end_block();
            }
            if is_blank {
                continue;
            }
            if self.block.is_empty() {
                self.block.start = start;
            }
            self.block.end = end;
            if fence.is_some_and(|fence| closes(line, fence)) {
                self.end_block();
                fence = None;
            }
            fence = fence.or(begins);
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
        if self.text(&both).chars().count() <= LONGEST {
            self.passage = both;
            return;
        }
        let text = self.doc.text[block.clone()].trim_end();
        let mut rest = block.start..block.start + text.len();
        while !rest.is_empty() {
            self.push();
            let text = &self.doc.text[rest.clone()];
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
        let text = self.text(&range).to_owned();
        if !text.is_empty() {
            let mut name = self.doc.name.clone();
            for (_, heading) in &self.headings {
                name.push_str(BELOW);
                name.extend(heading.chars().take(HEADING_CHARS));
            }
            self.passages.push(AgentDoc { name, text });
        }
    }

    /// Without blank lines around it.
    fn text(&self, range: &Range<usize>) -> &str {
        let text = self.doc.text[range.clone()].trim_end();
        text.trim_start_matches(['\r', '\n'])
    }
}

/// A heading's level and words.
fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with([' ', '\t', '\r', '\n']);
    let title = title.trim().trim_end_matches('#').trim_end();
    (is_heading && !title.is_empty()).then_some((level, title))
}

/// What a block of code begins with.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let rest = line.trim_start_matches(['`', '~']);
    let length = line.len() - rest.len();
    (length >= 3 && !rest.contains('`')).then_some(&line[..length])
}

/// Whether a line ends it: with as many marks or more, and nothing else.
fn closes(line: &str, fence: &str) -> bool {
    let rest = line.trim().strip_prefix(fence);
    rest.is_some_and(|rest| rest.trim_matches(['`', '~']).is_empty())
}
