//! How well the conversation one is in is found, on chats that people annotated:
//! `CLEW_CHATS=folder cargo bench -- quality`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clew_context::engine::conversation::choose::{Candidate, Rule, choose, ranked};
use clew_context::engine::conversation::weights::{LEARNT, Weights};
use clew_context::engine::conversation::{Verdict, judge_by};
use clew_context::model::Speaker;

use super::chats::{self, Chat, Query, WINDOW};

/// Characters that what is chosen must fit.
const ROOMS: [usize; 3] = [1_000, 2_000, 4_000];
/// Messages that a page holds, all that there is to choose from after a start.
const PAGE: usize = 100;
/// The same where the chat is taken for one thread.
const THREAD_ROOMS: [usize; 2] = [2_000, 8_000];
/// Of a thread the last messages that are always shown, `THREAD_CONTEXT_TAIL_COUNT`.
const TAIL: usize = 5;

/// A way to choose, of the messages before a query the newest last.
type Method<'a> = &'a (dyn Fn(&Case<'_>, usize) -> Vec<usize> + Sync);

/// Makes another chat of one.
type Change = fn(&Chat) -> Chat;

/// A query with what a method may look at.
struct Case<'a> {
    chat: &'a Chat,
    query: &'a Query,
    /// The index of the oldest message looked at.
    first: usize,
    verdicts: Vec<Verdict>,
}

/// Sums over queries.
#[derive(Clone, Copy, Default)]
struct Sums {
    conversation: (f64, f64),
    ancestors: (f64, f64),
    precision: (f64, f64),
    taken: (f64, f64),
    /// Of queries that begin something new: those that were shown nothing.
    nothing: (f64, f64),
}

impl Sums {
    fn add(&mut self, query: &Query, chosen: &BTreeSet<usize>, begins: bool) {
        if query.conversation.is_empty() {
            if begins {
                add(&mut self.nothing, if chosen.is_empty() { 1.0 } else { 0.0 });
            }
            return;
        }
        let share = |of: &BTreeSet<usize>| chosen.intersection(of).count() as f64;
        let right = share(&query.conversation);
        add(
            &mut self.conversation,
            right / query.conversation.len() as f64,
        );
        add(&mut self.taken, chosen.len() as f64);
        if !query.ancestors.is_empty() {
            add(
                &mut self.ancestors,
                share(&query.ancestors) / query.ancestors.len() as f64,
            );
        }
        if !chosen.is_empty() {
            add(&mut self.precision, right / chosen.len() as f64);
        }
    }

    fn join(&mut self, other: &Self) {
        for (one, more) in [
            (&mut self.conversation, other.conversation),
            (&mut self.ancestors, other.ancestors),
            (&mut self.precision, other.precision),
            (&mut self.taken, other.taken),
            (&mut self.nothing, other.nothing),
        ] {
            one.0 += more.0;
            one.1 += more.1;
        }
    }

    fn line(&self) -> String {
        let [conversation, ancestors, precision, taken, nothing] = [
            self.conversation,
            self.ancestors,
            self.precision,
            self.taken,
            self.nothing,
        ]
        .map(mean);
        format!("{conversation:.3}  {ancestors:.3}  {precision:.3}  {taken:5.1}  {nothing:.3}")
    }
}

fn add((sum, count): &mut (f64, f64), value: f64) {
    *sum += value;
    *count += 1.0;
}

fn mean((sum, count): (f64, f64)) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}

/// Sums by method for each chat.
fn measure(
    chats: &[&Chat],
    (window, room): (usize, usize),
    weights: &Weights,
    methods: &[(&str, Method<'_>)],
) -> Vec<Vec<Sums>> {
    each(chats, |chat| {
        let mut sums = vec![Sums::default(); methods.len()];
        for query in chat.queries() {
            let case = Case {
                chat,
                query: &query,
                first: query.message.saturating_sub(window),
                verdicts: judge_by(&chat.window(query.message, window), weights),
            };
            for (sums, (_, method)) in sums.iter_mut().zip(methods) {
                let chosen = method(&case, room);
                let begins = chat.messages[query.message].begins;
                sums.add(&query, &chosen.into_iter().collect(), begins);
            }
        }
        sums
    })
}

/// Calls `work` for each, on as many threads as there are cores; the results in order.
pub(crate) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let run = || {
            let mut results = Vec::new();
            while let Some((index, item)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                items.get(index).map(|item| (index, item))
            } {
                results.push((index, work(item)));
            }
            results
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        let results = threads.into_iter().map(|thread| thread.join().unwrap());
        results.flatten().collect()
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The newest messages, up to the first that does not fit.
fn newest(case: &Case<'_>, room: usize) -> Vec<usize> {
    let before = (case.first..case.query.message).rev();
    while_fit(case, before, room)
}

/// Those of the author and of whom the query mentions, then the newest others.
fn author_and_mentioned(case: &Case<'_>, room: usize) -> Vec<usize> {
    let messages = &case.chat.messages;
    let query = &messages[case.query.message];
    let is_theirs = |index: &usize| {
        let author = messages[*index].author;
        author == query.author || query.mentions.contains(&author)
    };
    let (theirs, others): (Vec<usize>, Vec<usize>) =
        (case.first..case.query.message).rev().partition(is_theirs);
    while_fit(case, theirs.into_iter().chain(others), room)
}

fn while_fit(case: &Case<'_>, order: impl Iterator<Item = usize>, room: usize) -> Vec<usize> {
    let mut left = room;
    let fits = |index: &usize| {
        let chars = case.chat.messages[*index].chars;
        let fits = chars <= left;
        left = if fits { left - chars } else { 0 };
        fits
    };
    order.take_while(fits).collect()
}

/// What really belongs, newest first.
fn perfect(case: &Case<'_>, room: usize) -> Vec<usize> {
    let before = (case.first..case.query.message).rev();
    let right = before.filter(|index| case.query.conversation.contains(index));
    let mut left = room;
    let mut taken = Vec::new();
    for index in right {
        let chars = case.chat.messages[index].chars;
        if chars <= left {
            left -= chars;
            taken.push(index);
        }
    }
    taken
}

fn ours(case: &Case<'_>, room: usize, rule: Rule) -> Vec<usize> {
    let messages = &case.chat.messages;
    let candidates = case.verdicts.iter().zip(&messages[case.first..]);
    let candidates: Vec<Candidate<'_>> = candidates
        .map(|(verdict, message)| Candidate {
            verdict: *verdict,
            chars: message.chars,
            speaker: Speaker::User(message.author),
        })
        .collect();
    let asker = Speaker::User(messages[case.query.message].author);
    let chosen = choose(&candidates, asker, room, rule);
    chosen.into_iter().map(|index| case.first + index).collect()
}

/// As a thread's caps drop messages: the tail stays, then the surest, up to the first that does
/// not fit.
fn surest(case: &Case<'_>, room: usize) -> Vec<usize> {
    let (first, query) = (case.first, case.query.message);
    let tail = (first..query).rev().take(TAIL);
    let surest = ranked(&case.verdicts).into_iter();
    let others = surest.map(|index| first + index);
    let others = others.filter(|index| index + TAIL < query);
    while_fit(case, tail.chain(others), room)
}

/// Prints the tables.
pub(crate) fn print() {
    println!("quality: which messages belong to the conversation one is in");
    let Some(chats) = chats::load() else {
        return;
    };
    let (aside, learnt): (Vec<&Chat>, Vec<&Chat>) = chats
        .iter()
        .partition(|chat| chats::is_kept_aside(&chat.name));
    let filled = Rule {
        precision: 0.0,
        least: 0.0,
        floor: 0.0,
        ..Rule::default()
    };
    let stopped = |case: &Case<'_>, room: usize| ours(case, room, Rule::default());
    let fill = |case: &Case<'_>, room: usize| ours(case, room, filled);
    let methods: [(&str, Method<'_>); 5] = [
        ("newest first", &newest),
        ("author and mentioned, then newest", &author_and_mentioned),
        ("conversation", &stopped),
        ("conversation, budget filled", &fill),
        ("perfect choice", &perfect),
    ];
    for (chats, what) in [(&aside, "kept aside"), (&learnt, "learnt from")] {
        for room in ROOMS {
            let of_files = table(chats, what, (WINDOW, room), &methods);
            if room == 2_000 && what == "kept aside" {
                losses(chats, &of_files);
            }
        }
    }
    for room in THREAD_ROOMS {
        let methods: [(&str, Method<'_>); 2] = [
            ("newest first", &newest),
            ("THREAD_SELECT=conversation", &surest),
        ];
        let what = "kept aside, as one thread each";
        table(&aside, what, (WINDOW, room), &methods);
    }
    let unlike: [(&str, Change); 3] = [
        ("kept aside, half of the names", |chat| chat.naming(50)),
        ("kept aside, a tenth of the names", |chat| chat.naming(10)),
        ("kept aside, one at a time, a tenth of the names", |chat| {
            chat.one_at_a_time().naming(10)
        }),
    ];
    for (what, change) in unlike {
        let changed: Vec<Chat> = aside.iter().map(|chat| change(chat)).collect();
        let changed: Vec<&Chat> = changed.iter().collect();
        table(&changed, what, (WINDOW, 2_000), &methods);
    }
    let texts: Vec<Chat> = chats.iter().map(Chat::without_mentions).collect();
    let mut communities: BTreeMap<&str, Vec<&Chat>> = BTreeMap::new();
    for chat in &texts {
        communities.entry(chat.community()).or_default().push(chat);
    }
    for (name, chats) in communities {
        for window in [WINDOW, PAGE] {
            let what = format!("of {name}, names as text, {window} messages to choose from");
            table(&chats, &what, (window, 2_000), &methods);
        }
    }
}

/// Prints what each method reaches; the sums of each file.
fn table(
    chats: &[&Chat],
    what: &str,
    bounds: (usize, usize),
    methods: &[(&str, Method<'_>)],
) -> Vec<Vec<Sums>> {
    println!("  {} files {what}, {} characters", chats.len(), bounds.1);
    println!("  {:<36} conv.  anc.   prec.  taken  nothing", "");
    let of_files = measure(chats, bounds, &LEARNT, methods);
    let mut sums = vec![Sums::default(); methods.len()];
    for file in &of_files {
        let pairs = sums.iter_mut().zip(file);
        pairs.for_each(|(sum, file)| sum.join(file));
    }
    for ((name, _), sums) in methods.iter().zip(&sums) {
        println!("  {name:<36} {}", sums.line());
    }
    of_files
}

/// What each file gains over newest first, the worst one first.
fn losses(chats: &[&Chat], of_files: &[Vec<Sums>]) {
    let gain = |sums: &Vec<Sums>| mean(sums[2].conversation) - mean(sums[0].conversation);
    let mut gains: Vec<(f64, &str)> = of_files
        .iter()
        .zip(chats)
        .map(|(sums, chat)| (gain(sums), chat.name.as_str()))
        .collect();
    gains.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    println!("  conversation recall against newest first, by file:");
    for chunk in gains.chunks(4) {
        let line: Vec<String> = chunk
            .iter()
            .map(|(gain, name)| format!("{gain:+.3} {name}"))
            .collect();
        println!("    {}", line.join("  "));
    }
}
