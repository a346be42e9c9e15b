//! Links and conversations by the definitions of the corpus (Kummerfeld et al., ACL 2019), on
//! chats that people annotated, names as text.
//!
//! Link F: each annotated message is linked with what it answers, or with itself if it begins
//! something new; the harmonic mean of precision and recall of the links. The others compare the
//! conversations that the links of all annotated messages of a file make: `VI` is 100 less the
//! variation of information in percent of its bound, `1-1` the share of messages in common if
//! each conversation is matched with one of the other side, the best way; `exact F` counts
//! conversations of two messages and more that are the same on both sides.

use std::collections::BTreeMap;

use clew_context::engine::conversation::group::group;
use clew_context::engine::conversation::sample;
use clew_context::engine::conversation::weights::LEARNT;

use super::chats::{Chat, WINDOW};

/// Sums over files: of the picks, and of the conversations that they make.
#[derive(Default, Clone)]
pub(crate) struct Links {
    right: f64,
    made: f64,
    marked: f64,
    messages: f64,
    /// The sum of `n log n` over the sizes of conversations, of both sides and of what a pair of
    /// them has in common.
    sizes: [f64; 3],
    matched: f64,
    same: f64,
    conversations: f64,
}

impl Links {
    pub(crate) fn join(&mut self, other: &Self) {
        self.right += other.right;
        self.made += other.made;
        self.marked += other.marked;
        self.messages += other.messages;
        for (sum, more) in self.sizes.iter_mut().zip(other.sizes) {
            *sum += more;
        }
        self.matched += other.matched;
        self.same += other.same;
        self.conversations += other.conversations;
    }

    pub(crate) fn line(&self) -> String {
        let all = self.messages;
        let [made, marked, both] = self.sizes;
        let variation = (made + marked - 2.0 * both) / all;
        let picked = self.made + self.marked;
        let picks = if picked > 0.0 {
            format!("link F {:.1}, ", 200.0 * self.right / picked)
        } else {
            String::new()
        };
        format!(
            "{picks}VI {:.1}, 1-1 {:.1}, exact F {:.1}",
            100.0 * (1.0 - variation / all.log2()),
            100.0 * self.matched / all,
            200.0 * self.same / self.conversations
        )
    }
}

/// What the picks of a chat's annotated messages come to.
pub(crate) fn of(chat: &Chat) -> Links {
    let mut links = Links::default();
    let annotated = |index: &usize| chat.messages[*index].answers.is_some();
    let annotated: Vec<usize> = (0..chat.messages.len()).filter(annotated).collect();
    let (mut made, mut marked) = (Groups::default(), Groups::default());
    for index in annotated {
        let said = &chat.messages[index];
        let answers = said.answers.as_deref().unwrap_or_default();
        if answers.is_empty() && !said.begins {
            continue;
        }
        let pick = pick(chat, index);
        links.made += 1.0;
        links.marked += answers.len().max(1) as f64;
        let right = pick.map_or(answers.is_empty(), |pick| answers.contains(&pick));
        links.right += if right { 1.0 } else { 0.0 };
        made.add(index, pick.as_slice());
        marked.add(index, answers);
    }
    compare(&made, &marked, &mut links);
    links
}

/// A way to group all messages of a chat: each one's conversation, as the index of its first.
type Grouping = fn(&Chat) -> Vec<usize>;

/// How conversations are made of a chat's messages without a query.
pub(crate) const GROUPINGS: [(&str, Grouping); 2] = [
    ("grouping", |chat| group(&chat.utterances())),
    ("grouping by pauses", by_pauses),
];
/// A pause that ends a conversation, in minutes: of 1, 2, 3, 5, 10 and 20 the one with the best
/// VI on the development files.
const PAUSE_MIN: i64 = 1;

fn by_pauses(chat: &Chat) -> Vec<usize> {
    let mut first = 0;
    let messages = chat.messages.iter().enumerate().map(|(index, said)| {
        let before = chat.messages[index.saturating_sub(1)].at;
        if said.at.since(before) > PAUSE_MIN * 60_000 {
            first = index;
        }
        first
    });
    messages.collect()
}

/// What the conversations that a grouping makes of a chat come to.
pub(crate) fn grouped(chat: &Chat, grouping: Grouping) -> Links {
    let mut links = Links::default();
    let (mut made, mut marked) = (Groups::default(), Groups::default());
    let firsts = grouping(chat);
    for (index, said) in chat.messages.iter().enumerate() {
        made.join(index, &[firsts[index]]);
        let Some(answers) = &said.answers else {
            continue;
        };
        if !answers.is_empty() || said.begins {
            marked.add(index, answers);
        }
    }
    compare(&made, &marked, &mut links);
    links
}

/// The message that this one most probably answers; `None` if it begins something new.
fn pick(chat: &Chat, index: usize) -> Option<usize> {
    let picks = sample(&chat.window(index, WINDOW), &LEARNT)?.picks;
    let begins = 1.0 - picks.iter().map(|(_, share)| share).sum::<f32>();
    let surest = picks.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let (earlier, _) = surest.filter(|(_, share)| *share > begins)?;
    Some(index.saturating_sub(WINDOW) + earlier)
}

/// Messages joined to conversations; those that are not annotated join, but do not count.
#[derive(Default)]
struct Groups {
    parent: BTreeMap<usize, usize>,
    messages: Vec<usize>,
}

impl Groups {
    fn add(&mut self, message: usize, answers: &[usize]) {
        self.messages.push(message);
        self.join(message, answers);
    }

    fn join(&mut self, message: usize, answers: &[usize]) {
        for answered in answers {
            let (one, other) = (self.root(message), self.root(*answered));
            self.parent.insert(one.max(other), one.min(other));
        }
    }

    fn root(&self, message: usize) -> usize {
        let mut at = message;
        while let Some(next) = self.parent.get(&at).filter(|next| **next != at) {
            at = *next;
        }
        at
    }
}

fn compare(made: &Groups, marked: &Groups, links: &mut Links) {
    // How many messages each pair of conversations has in common, and each conversation has.
    let mut both: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    let mut sizes: [BTreeMap<usize, f64>; 2] = Default::default();
    for message in &marked.messages {
        let roots = [made.root(*message), marked.root(*message)];
        *both.entry((roots[0], roots[1])).or_default() += 1.0;
        for (sizes, root) in sizes.iter_mut().zip(roots) {
            *sizes.entry(root).or_default() += 1.0;
        }
    }
    let longer = |size: &&f64| **size > 1.0;
    let same = both.iter().filter(|((one, other), common)| {
        longer(common) && sizes[0][one] + sizes[1][other] - 2.0 * **common < 0.5
    });
    links.same += same.count() as f64;
    links.messages += marked.messages.len() as f64;
    for (at, sizes) in sizes.iter().enumerate() {
        links.conversations += sizes.values().filter(longer).count() as f64;
        links.sizes[at] += sizes.values().map(|size| size * size.log2()).sum::<f64>();
    }
    links.sizes[2] += both.values().map(|size| size * size.log2()).sum::<f64>();
    let [rows, columns] = sizes.map(|sizes| sizes.into_keys().collect::<Vec<_>>());
    let weight = |row: usize, column: usize| {
        let pair = rows.get(row).zip(columns.get(column));
        let common = pair.and_then(|(row, column)| both.get(&(*row, *column)));
        common.copied().unwrap_or(0.0)
    };
    links.matched += heaviest(rows.len().max(columns.len()), weight);
}

/// The sum of the heaviest matching of as many rows and columns (the Hungarian method: rows join
/// one after the other, each along the cheapest path).
fn heaviest(size: usize, weight: impl Fn(usize, usize) -> f64) -> f64 {
    const NOBODY: usize = usize::MAX;
    let (mut of_row, mut of_column) = (vec![0.0; size], vec![0.0; size + 1]);
    // The row of each column; the last column stands for the row that joins.
    let mut rows = vec![NOBODY; size + 1];
    for row in 0..size {
        rows[size] = row;
        let mut at = size;
        let mut slack = vec![f64::INFINITY; size];
        let mut from = vec![size; size];
        let mut seen = vec![false; size + 1];
        while rows[at] != NOBODY {
            seen[at] = true;
            let (row, mut least, mut next) = (rows[at], f64::INFINITY, size);
            for column in (0..size).filter(|column| !seen[*column]) {
                let cost = -weight(row, column) - of_row[row] - of_column[column];
                if cost < slack[column] {
                    (slack[column], from[column]) = (cost, at);
                }
                if slack[column] < least {
                    (least, next) = (slack[column], column);
                }
            }
            for column in 0..=size {
                if seen[column] {
                    of_row[rows[column]] += least;
                    of_column[column] -= least;
                } else {
                    slack[column] -= least;
                }
            }
            at = next;
        }
        while at != size {
            rows[at] = rows[from[at]];
            at = from[at];
        }
    }
    let columns = 0..size;
    columns.map(|column| weight(rows[column], column)).sum()
}

/// Checked against cases made by hand: a bench whose measure is wrong says nothing.
pub(crate) fn check() {
    let groups = |pairs: &[(usize, &[usize])]| {
        let mut groups = Groups::default();
        for (message, answers) in pairs {
            groups.add(*message, answers);
        }
        groups
    };
    // Marked: 1 2 | 3 4 | 5. Made: 1 2 | 3 | 4 5.
    let marked = groups(&[(1, &[]), (2, &[1]), (3, &[]), (4, &[3]), (5, &[])]);
    let made = groups(&[(1, &[]), (2, &[1]), (3, &[]), (4, &[]), (5, &[4])]);
    let mut links = Links {
        right: 3.0,
        made: 5.0,
        marked: 5.0,
        ..Links::default()
    };
    compare(&made, &marked, &mut links);
    // 4 of 5 match; one of two longer conversations on each side is the same; the variation of
    // information is .8 bits of at most log2(5).
    assert_eq!(links.line(), "link F 60.0, VI 65.5, 1-1 80.0, exact F 50.0");
    let weights = [[7.0, 6.0, 0.0], [6.0, 4.0, 0.0], [0.0, 5.0, 1.0]];
    let heaviest = heaviest(3, |row, column| weights[row][column]);
    assert!((heaviest - 13.0).abs() < 1e-9, "{heaviest}");
}
