//! How well recall finds what was said: `CLEW_CHATS=folder cargo bench -- recall`, on
//! conversations with questions (`docs/recall.md` has the form of the files). What a query
//! takes at 100,000 exchanges is measured without them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clew_context::engine::recall::{RecallEntry, RecallIndex};
use clew_context::engine::words::{WordLimits, for_each_word};
use clew_context::model::{TurnId, UnixMillis};
use serde::Deserialize;

use super::chats::files;
use super::process::{mebibytes, milliseconds};

/// How many may be recalled.
const MOST: [usize; 2] = [4, 10];
/// Exchanges that a query is timed with; each is two rows.
const EXCHANGES: [u64; 3] = [1_000, 50_000, 100_000];
/// Queries of each kind that are timed.
const QUERIES: u64 = 200;
const MINUTE: i64 = 60_000;

/// A file.
#[derive(Deserialize)]
struct Conversation {
    /// Oldest first.
    messages: Vec<Message>,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Message {
    id: String,
    author: String,
    /// As RFC 3339.
    at: String,
    text: String,
}

#[derive(Deserialize)]
struct Question {
    text: String,
    /// The ids of the messages that hold the answer.
    evidence: Vec<String>,
    /// Of which kind it is, if kinds are to be told apart.
    #[serde(default)]
    kind: String,
}

/// Ranks the messages of a conversation for a question, best first.
type Method = fn(&Index, &str) -> Vec<usize>;

const METHODS: [(&str, Method); 2] = [("BM25", by_bm25), ("recall", by_recall)];

/// How much of the evidence was found, summed up over questions: by method, among the first few.
#[derive(Default)]
struct Found {
    sums: [[f64; 2]; 2],
    questions: u32,
}

struct Index {
    recall: RecallIndex,
    plain: Plain,
}

pub(crate) fn print() {
    println!("\nrecall: share of the evidence among the first so many messages");
    if let Some(files) = files(".json") {
        print_quality(&files);
    }
    println!("\nrecall: one query, conversations of so many exchanges");
    for exchanges in EXCHANGES {
        time(exchanges);
    }
}

fn print_quality(files: &[PathBuf]) {
    let mut of_kinds: BTreeMap<String, Found> = BTreeMap::new();
    for path in files {
        let text = fs::read_to_string(path).unwrap();
        let parsed: Conversation = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let index = index(&parsed);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for question in &parsed.questions {
            let evidence: BTreeSet<&str> = question.evidence.iter().map(String::as_str).collect();
            if evidence.is_empty() {
                continue;
            }
            let shares = METHODS.map(|(_, method)| {
                let ranked = method(&index, &question.text);
                MOST.map(|most| {
                    let found = ranked.iter().take(most);
                    let found = found.filter(|at| evidence.contains(&*parsed.messages[**at].id));
                    found.count() as f64 / evidence.len() as f64
                })
            });
            for kind in ["all", &*name, &*question.kind] {
                let found = of_kinds.entry(kind.to_owned()).or_default();
                found.questions += 1;
                for (sum, share) in found.sums.iter_mut().zip(&shares) {
                    sum.iter_mut()
                        .zip(share)
                        .for_each(|(sum, share)| *sum += share);
                }
            }
        }
    }
    for (kind, found) in of_kinds.iter().filter(|(kind, _)| !kind.is_empty()) {
        print!("  {kind:<28}{:>6} questions", found.questions);
        for ((method, _), sums) in METHODS.iter().zip(found.sums) {
            let [few, many] = sums.map(|sum| sum / f64::from(found.questions));
            print!("   {method} at 4 {few:.3}, at 10 {many:.3}");
        }
        println!();
    }
}

fn index(conversation: &Conversation) -> Index {
    let mut recall = RecallIndex::default();
    let messages = (0..).zip(&conversation.messages);
    let entries: Vec<RecallEntry<'_>> = messages
        .map(|(at, message)| RecallEntry {
            turn: TurnId(at),
            at: UnixMillis::parse(&message.at).expect("a time as RFC 3339"),
            author: &message.author,
            texts: vec![&message.text],
        })
        .collect();
    recall.add_newer(&entries);
    Index {
        recall,
        plain: Plain::new(conversation),
    }
}

/// As the bot does.
fn by_recall(index: &Index, question: &str) -> Vec<usize> {
    let ever = UnixMillis(i64::MIN);
    let best = index.recall.best(question, ever, &BTreeSet::new(), MOST[1]);
    best.into_iter()
        .map(|turn| usize::try_from(turn.0).unwrap())
        .collect()
}

/// BM25 over plain words, to compare with: k1 1.2, b .75.
fn by_bm25(index: &Index, question: &str) -> Vec<usize> {
    index.plain.ranked(question)
}

struct Plain {
    /// Of each word the messages with it, and how often.
    with: HashMap<String, HashMap<usize, f64>>,
    lengths: Vec<f64>,
}

impl Plain {
    fn new(conversation: &Conversation) -> Self {
        let mut with: HashMap<String, HashMap<usize, f64>> = HashMap::new();
        let mut lengths = Vec::new();
        for (at, message) in conversation.messages.iter().enumerate() {
            let words = words(&format!("{} {}", message.author, message.text));
            lengths.push(words.len() as f64);
            for word in words {
                *with.entry(word).or_default().entry(at).or_default() += 1.0;
            }
        }
        Self { with, lengths }
    }

    fn ranked(&self, question: &str) -> Vec<usize> {
        let count = self.lengths.len() as f64;
        let average = self.lengths.iter().sum::<f64>() / count.max(1.0);
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let different: BTreeSet<String> = words(question).into_iter().collect();
        for word in different {
            let Some(with) = self.with.get(&word) else {
                continue;
            };
            let found = with.len() as f64;
            let rarity = ((count - found + 0.5) / (found + 0.5)).ln_1p();
            for (at, times) in with {
                let length = self.lengths[*at] / average;
                let held_back = 1.2 * (0.25 + 0.75 * length);
                *scores.entry(*at).or_default() += rarity * times * 2.2 / (times + held_back);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|(at, one), (of, other)| other.total_cmp(one).then(of.cmp(at)));
        ranked.into_iter().map(|(at, _)| at).collect()
    }
}

fn words(text: &str) -> Vec<String> {
    let limits = WordLimits {
        chars: usize::MAX,
        words: usize::MAX,
    };
    let mut words = Vec::new();
    for_each_word(text, limits, |word| words.push(word.to_owned()));
    words
}

/// Of exchanges of 40 words, a few words in most of them and many in few, as in a language.
fn time(exchanges: u64) {
    let texts: Vec<(String, String)> = (0..exchanges)
        .map(|at| (made(at, 12), made(at + exchanges, 28)))
        .collect();
    let entries: Vec<RecallEntry<'_>> = (0..)
        .zip(&texts)
        .map(|(at, (question, answer))| RecallEntry {
            turn: TurnId(at),
            at: UnixMillis(at.cast_signed() * 7 * MINUTE),
            author: "Ada",
            texts: vec![question, answer],
        })
        .collect();
    let began = Instant::now();
    let mut index = RecallIndex::default();
    index.add_older(&entries);
    let indexed = began.elapsed();
    let ever = UnixMillis(i64::MIN);
    let mut took: Vec<Duration> = (0..QUERIES)
        .map(|at| {
            let question = made(at * 31, 12);
            let began = Instant::now();
            let found = index.best(&question, ever, &BTreeSet::new(), MOST[0]);
            let took = began.elapsed();
            divan::black_box(found);
            took
        })
        .collect();
    took.sort_unstable();
    println!(
        "  {exchanges:>7}: median {:.2} ms, longest {:.2} ms; indexed in {:.0} ms, {:.1} MiB",
        milliseconds(took[took.len() / 2]),
        milliseconds(took[took.len() - 1]),
        milliseconds(indexed),
        mebibytes(index.bytes() as u64),
    );
}

/// A text of so many words; the n-th most frequent word is in every n-th place.
fn made(seed: u64, words: u64) -> String {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) as f64 / (1_u64 << 53) as f64
    };
    // As frequent as its rank says, among 20,000 words.
    let word = |_| format!("w{:.0}x", 20_000_f64.powf(next()).floor());
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}
