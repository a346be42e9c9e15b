//! What of the conversation one is in stands in the block, on chats that people annotated:
//! `CLEW_CHATS=folder cargo bench -- quality`.
//!
//! A query is an annotated message with something that it answers, asked as a mention without
//! references. Relevant is all that is connected with it by answers before it, however far back.
//! Shown is what stands in the rendered block of 2,000 characters, frames, days and marks
//! included. Recall is the share of what is relevant that is shown, precision the share of what
//! is shown that is relevant, 0 if nothing is: means over the queries of a community.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clew_context::engine::block;
use clew_context::engine::chain::ChainLink;
use clew_context::engine::eligible::Us;
use clew_context::engine::frame;
use clew_context::engine::render::{Nobody, Renderer};
use clew_context::engine::select::{
    Gathered, GatheredThread, LinkedSelection, PlaceSelection, Selector,
};
use clew_context::model::{
    Author, BlockEntry, ChannelId, Limits, Message, MessageFlags, MessageId, MessageKind, Proxies,
    Reference, ReferenceKind, Referenced, ThreadSelect, UserId,
};

use super::chats::{self, Chat, Query, WINDOW};
use super::links::{self, Links};

/// Characters of a block.
const ROOM: usize = 2_000;
/// Lines of a page, joins included: all that there is after a start.
const PAGE: usize = 100;
/// An id of ours that nobody in a chat has.
const OURS: u64 = 1 << 40;
/// The community of which other ones are made.
const LARGEST: &str = "ubuntu";
const CHANNEL: ChannelId = ChannelId::new(1);

/// A way to fill a block: the indexes of the messages shown.
type Method = fn(&Case<'_>) -> BTreeSet<usize>;

/// Makes another chat of one.
type Change = fn(&Chat) -> Chat;

const METHODS: [(&str, Method); 9] = [
    ("newest first", newest),
    ("author and named, then newest", author_and_named),
    ("conversation", conversation),
    ("conversation, a second page", second_page),
    ("perfect choice", perfect),
    ("a reply, its chain alone", chain),
    ("a reply, the conversation around it", reply),
    ("thread, newest first", thread_newest),
    ("thread, conversation", thread_conversation),
];
/// Of the methods those of which classes are printed.
const CLASSES_OF: usize = 2;

/// A chat as the engine reads it.
struct Room<'a> {
    chat: &'a Chat,
    messages: Vec<Arc<Message>>,
    us: Us,
}

/// A query with what a method may look at: messages from `first` on.
struct Case<'a> {
    room: &'a Room<'a>,
    query: &'a Query,
    first: usize,
}

/// Sums over queries: recall and precision, of both precision where something is shown.
#[derive(Clone, Copy, Default)]
struct Sums {
    recall: f64,
    precision: f64,
    queries: f64,
    shown: f64,
    /// Queries that begin something new, and those of them that are shown anything.
    new: (f64, f64),
}

impl Sums {
    fn add(&mut self, query: &Query, shown: &BTreeSet<usize>) {
        let filled = if shown.is_empty() { 0.0 } else { 1.0 };
        if query.conversation.is_empty() {
            self.new.0 += 1.0;
            self.new.1 += filled;
            return;
        }
        let right = shown.intersection(&query.conversation).count() as f64;
        self.recall += right / query.conversation.len() as f64;
        self.precision += right / shown.len().max(1) as f64;
        self.queries += 1.0;
        self.shown += filled;
    }

    fn join(&mut self, other: &Self) {
        self.recall += other.recall;
        self.precision += other.precision;
        self.queries += other.queries;
        self.shown += other.shown;
        self.new.0 += other.new.0;
        self.new.1 += other.new.1;
    }

    fn line(&self) -> String {
        let Self {
            recall,
            precision,
            queries,
            shown,
            new: (new, filled),
        } = self;
        let share = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        format!(
            "{:.3}   {:.3}  {:.3}  {:.2}",
            share(*recall, *queries),
            share(*precision, *queries),
            share(*precision, *shown),
            share(*filled, *new)
        )
    }
}

impl<'a> Room<'a> {
    fn new(chat: &'a Chat) -> Self {
        let us = Us {
            user: UserId::new(OURS),
            name: "Clew".to_owned(),
            roles: Vec::new(),
            proxies: Proxies::default(),
        };
        let messages = (0..).zip(&chat.messages);
        let messages = messages.map(|(index, said)| {
            Arc::new(Message {
                id: id(index),
                channel: CHANNEL,
                guild: None,
                kind: MessageKind::Default,
                author: Author {
                    id: said.author,
                    name: said.name.as_str().into(),
                    bot: false,
                    webhook: false,
                    application: None,
                },
                timestamp: said.at,
                edited: None,
                flags: MessageFlags::default(),
                content: said.text.as_str().into(),
                reference: None,
                referenced: Referenced::Absent,
                mentions: Box::default(),
                mention_roles: Box::default(),
                extras: None,
                withheld: false,
            })
        });
        Self {
            chat,
            messages: messages.collect(),
            us,
        }
    }
}

fn id(index: usize) -> MessageId {
    MessageId::new(index as u64 + 1)
}

impl Case<'_> {
    fn before(&self) -> Vec<Arc<Message>> {
        self.room.messages[self.first..self.query.message].to_vec()
    }

    /// The message that it answers, the latest one.
    fn parent(&self) -> Option<usize> {
        let answers = self.room.chat.messages[self.query.message].answers.as_ref();
        answers?.iter().copied().max()
    }

    /// Whether a second page is fetched after a start.
    fn wants_more(&self) -> bool {
        let by = Selector {
            us: &self.room.us,
            trigger: &self.trigger(),
            limits: &limits(),
        };
        by.conversation_wants_more(&self.before())
    }

    /// What the block shows of these messages.
    fn block(&self, gathered: &Gathered, trigger: &Message, limits: &Limits) -> BTreeSet<usize> {
        let us = &self.room.us;
        let by = Selector {
            us,
            trigger,
            limits,
        };
        let mut renderer = Renderer::new(us, &Nobody);
        let selection = by.select(gathered);
        let linked = LinkedSelection::default();
        let block = block::build(
            selection,
            PlaceSelection::default(),
            linked,
            None,
            &mut renderer,
            limits,
        );
        let chars = frame::block(&block).chars().count();
        assert!(chars <= limits.max_chars, "{chars} characters");
        let shown = block.entries.iter().filter_map(BlockEntry::item);
        let ids = shown.map(|item| item.message.id.get());
        ids.map(|id| usize::try_from(id).unwrap() - 1).collect()
    }

    fn trigger(&self) -> Message {
        (*self.room.messages[self.query.message]).clone()
    }

    /// While their lines fit, in this order.
    fn while_fit(&self, order: impl Iterator<Item = usize>) -> BTreeSet<usize> {
        let mut left = ROOM;
        let fits = |index: &usize| {
            let chars = self.room.chat.messages[*index].chars;
            let fits = chars <= left;
            left = if fits { left - chars } else { 0 };
            fits
        };
        order.take_while(fits).collect()
    }
}

/// By default, but without a limit on age: annotated chats have pauses.
fn limits() -> Limits {
    Limits {
        max_age: None,
        lone_max_chars: ROOM,
        ..Limits::default()
    }
}

fn newest(case: &Case<'_>) -> BTreeSet<usize> {
    case.while_fit((case.first..case.query.message).rev())
}

/// Those of the author and of whom the query names, then the newest others.
fn author_and_named(case: &Case<'_>) -> BTreeSet<usize> {
    let messages = &case.room.chat.messages;
    let query = &messages[case.query.message];
    let is_theirs = |index: &usize| {
        let author = messages[*index].author;
        author == query.author || query.mentions.contains(&author)
    };
    let before = (case.first..case.query.message).rev();
    let (theirs, others): (Vec<usize>, Vec<usize>) = before.partition(is_theirs);
    case.while_fit(theirs.into_iter().chain(others))
}

/// What is relevant, the shortest first.
fn perfect(case: &Case<'_>) -> BTreeSet<usize> {
    let before = case.first..case.query.message;
    let right = before.filter(|index| case.query.conversation.contains(index));
    let mut right: Vec<usize> = right.collect();
    right.sort_by_key(|index| case.room.chat.messages[*index].chars);
    case.while_fit(right.into_iter())
}

fn conversation(case: &Case<'_>) -> BTreeSet<usize> {
    let gathered = Gathered::Conversation(case.before());
    case.block(&gathered, &case.trigger(), &limits())
}

/// The same, after a start with a second page where the conversation reaches the first one's
/// end.
fn second_page(case: &Case<'_>) -> BTreeSet<usize> {
    conversation(&Case {
        first: if case.wants_more() {
            case.room.chat.before(case.query.message, 2 * PAGE)
        } else {
            case.first
        },
        ..*case
    })
}

/// A block of a reply to what it answers; nothing if that is unknown.
fn replied(case: &Case<'_>, around: Vec<Arc<Message>>) -> BTreeSet<usize> {
    let Some(parent) = case.parent() else {
        return BTreeSet::new();
    };
    let trigger = Message {
        kind: MessageKind::Reply,
        reference: Some(Reference {
            kind: ReferenceKind::Default,
            channel: Some(CHANNEL),
            message: Some(id(parent)),
        }),
        ..case.trigger()
    };
    let parent = Arc::clone(&case.room.messages[parent]);
    let gathered = Gathered::Chain {
        links: vec![ChainLink::Message(parent)],
        cut: None,
        around,
    };
    case.block(&gathered, &trigger, &limits())
}

fn chain(case: &Case<'_>) -> BTreeSet<usize> {
    replied(case, Vec::new())
}

fn reply(case: &Case<'_>) -> BTreeSet<usize> {
    replied(case, case.before())
}

fn thread(case: &Case<'_>, thread_select: ThreadSelect) -> BTreeSet<usize> {
    let gathered = Gathered::Thread(GatheredThread {
        messages: case.before(),
        history: true,
        ..GatheredThread::default()
    });
    let limits = Limits {
        max_chars: ROOM,
        thread_select,
        ..limits()
    };
    case.block(&gathered, &case.trigger(), &limits)
}

fn thread_newest(case: &Case<'_>) -> BTreeSet<usize> {
    thread(case, ThreadSelect::Newest)
}

fn thread_conversation(case: &Case<'_>) -> BTreeSet<usize> {
    thread(case, ThreadSelect::Conversation)
}

/// Sums of what a chat's queries of a class were shown, by its name.
type Classes = BTreeMap<&'static str, (f64, f64)>;

/// What is measured of one chat: sums by method, warm and cold, and classes.
#[derive(Default)]
struct Measured {
    sums: [[Sums; METHODS.len()]; 2],
    classes: Classes,
    links: Links,
    grouped: [Links; links::GROUPINGS.len()],
    /// Queries that fetch a second page after a start, and all.
    pages: (f64, f64),
}

fn measure(chat: &Chat) -> Measured {
    let room = Room::new(chat);
    let unnamed = chat.without_mentions();
    let mut measured = Measured {
        links: links::of(&unnamed),
        grouped: links::GROUPINGS.map(|(_, grouping)| links::grouped(&unnamed, grouping)),
        ..Measured::default()
    };
    for query in chat.queries() {
        let said = &chat.messages[query.message];
        if query.conversation.is_empty() && !said.begins {
            continue;
        }
        let warm = query.message.saturating_sub(WINDOW);
        let cold = chat.before(query.message, PAGE);
        for (first, sums) in [warm, cold].into_iter().zip(&mut measured.sums) {
            let case = Case {
                room: &room,
                query: &query,
                first,
            };
            if first == cold {
                measured.pages.0 += if case.wants_more() { 1.0 } else { 0.0 };
                measured.pages.1 += 1.0;
            }
            for (index, (_, method)) in METHODS.iter().enumerate() {
                let shown = method(&case);
                sums[index].add(&query, &shown);
                if first == warm && index == CLASSES_OF && !query.conversation.is_empty() {
                    classes(&case, &shown, &mut measured.classes);
                }
            }
        }
    }
    measured
}

/// Adds the query's recall to its classes, and each relevant message to that of its distance.
fn classes(case: &Case<'_>, shown: &BTreeSet<usize>, classes: &mut Classes) {
    let mut add = |class: &'static str, value: f64| {
        let (sum, count) = classes.entry(class).or_default();
        *sum += value;
        *count += 1.0;
    };
    let Query {
        message,
        conversation,
        ..
    } = case.query;
    let messages = &case.room.chat.messages;
    let right = shown.intersection(conversation).count() as f64;
    let recall = right / conversation.len() as f64;
    let author = messages[*message].author;
    let own = (0..*message).rev().take(100);
    let own = own
        .zip(1_usize..)
        .find(|(index, _)| messages[*index].author == author);
    add(
        match own {
            Some((_, ..=10)) => "asker's last message: within 10",
            Some(_) => "asker's last message: 11 to 100 before",
            None => "asker's last message: none within 100",
        },
        recall,
    );
    add(
        match messages[*message].first_name_at() {
            Some(0) => "names somebody: first",
            Some(_) => "names somebody: elsewhere",
            None => "names somebody: no",
        },
        recall,
    );
    for relevant in conversation {
        let class = match message - relevant {
            ..=5 => "distance: 1 to 5",
            6..=20 => "distance: 6 to 20",
            21..=50 => "distance: 21 to 50",
            51..=100 => "distance: 51 to 100",
            _ => "distance: beyond",
        };
        add(class, if shown.contains(relevant) { 1.0 } else { 0.0 });
    }
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

/// Prints the tables.
pub(crate) fn print() {
    println!("quality: what of the conversation one is in stands in the block");
    links::check();
    let Some(chats) = chats::load() else {
        return;
    };
    let mut groups: BTreeMap<String, Vec<Chat>> = BTreeMap::new();
    for chat in chats {
        let name = chat.community().to_owned();
        groups.entry(name).or_default().push(chat);
    }
    let unlike: [(&str, Change); 3] = [
        ("half of the names", |chat| chat.naming(50)),
        ("a tenth of the names", |chat| chat.naming(10)),
        ("one at a time, a tenth of the names", |chat| {
            chat.one_at_a_time().naming(10)
        }),
    ];
    for (what, change) in unlike {
        let changed = groups[LARGEST].iter().map(change).collect();
        groups.insert(format!("{LARGEST}, {what}"), changed);
    }
    let mut all = Measured::default();
    for (name, chats) in &groups {
        let mut sums = Measured::default();
        for one in each(chats, measure) {
            sums.join(&one);
        }
        sums.print(name);
        if !name.contains(',') {
            all.join(&sums);
        }
    }
    all.print("all");
    all.print_classes();
}

impl Measured {
    fn join(&mut self, other: &Self) {
        let sums = self.sums.iter_mut().flatten();
        let more = other.sums.iter().flatten();
        sums.zip(more).for_each(|(sums, more)| sums.join(more));
        for (class, (sum, count)) in &other.classes {
            let all = self.classes.entry(class).or_default();
            all.0 += sum;
            all.1 += count;
        }
        self.links.join(&other.links);
        let grouped = self.grouped.iter_mut().zip(&other.grouped);
        grouped.for_each(|(sums, more)| sums.join(more));
        self.pages.0 += other.pages.0;
        self.pages.1 += other.pages.1;
    }

    fn print(&self, name: &str) {
        let [warm, cold] = &self.sums;
        let (queries, new) = (warm[0].queries, warm[0].new.0);
        println!(
            "  {name}: {queries} queries, {new} new; {}",
            self.links.line()
        );
        for ((name, _), grouped) in links::GROUPINGS.iter().zip(&self.grouped) {
            println!("  {name}: {}", grouped.line());
        }
        let second = self.pages.0 / self.pages.1;
        println!("  second pages after a start: {second:.2}");
        println!("  {:<36} recall  prec.  shown  new  | after a start", "");
        for ((method, _), (warm, cold)) in METHODS.iter().zip(warm.iter().zip(cold)) {
            println!("  {method:<36} {}  | {}", warm.line(), cold.line());
        }
    }

    fn print_classes(&self) {
        println!("  recall of {} by class", METHODS[CLASSES_OF].0);
        for (class, (sum, count)) in &self.classes {
            println!("  {class:<40} {:.3} of {count}", sum / count);
        }
    }
}
