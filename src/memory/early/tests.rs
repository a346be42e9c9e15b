//! Early turns over one store that outlives its memory, as a file outlives a process.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::config::MemoryConfig;
use crate::memory::tests::{ADA, GUILD, HERE, place, settings};
use crate::memory::{DiscordChange, Settings, Stores};
use crate::telemetry::{Lines, Telemetry};
use clew_context::model::{
    Author, Clock, MessageFlags, MessageKind, OptOuts, Reference, ReferenceKind, Referenced, TurnId,
};
use clew_store::model::StoreAddress;
use clew_store::{Folders, Store};
use tempfile::TempDir;

const NOW: i64 = 1_000_000_000_000;

struct Process {
    memory: Memory,
    lines: Lines,
    opt_outs: Arc<OptOuts>,
    time: Arc<AtomicI64>,
}

async fn store(folder: &Path) -> Arc<Store> {
    let folders = Folders {
        agents: folder.join("agents"),
        users: folder.join("users"),
        servers: folder.join("servers"),
    };
    let address = StoreAddress::Sqlite(folder.join("clew.db"));
    let clock: Clock = Arc::new(|| UnixMillis(NOW));
    Arc::new(Store::open(&address, &folders, clock).await.unwrap())
}

impl Process {
    async fn start(store: &Arc<Store>) -> Self {
        Self::with(store, settings()).await
    }

    async fn with(store: &Arc<Store>, settings: MemoryConfig) -> Self {
        let time = Arc::new(AtomicI64::new(NOW));
        let clock: Clock = {
            let time = Arc::clone(&time);
            Arc::new(move || UnixMillis(time.load(Ordering::SeqCst)))
        };
        let (telemetry, lines) = Telemetry::to_memory("mem.ctx", Arc::clone(&clock));
        let stores = Stores {
            lasting: Arc::clone(store),
            conversations: Arc::clone(store),
            transcripts: None,
            outputs: None,
        };
        let opt_outs = Arc::new(OptOuts::default());
        let shared = Arc::clone(&opt_outs);
        let settings = Settings {
            memory: settings,
            answer_messages: 4,
            patience: Duration::from_secs(5),
        };
        let memory = Memory::open(stores, settings, shared, clock, telemetry).await;
        Self {
            memory: memory.unwrap(),
            lines,
            opt_outs,
            time,
        }
    }

    fn exchange(&self, question: u64, words: &str) -> Exchange {
        Exchange {
            turn: TurnId(question),
            trigger: Some(MessageId::new(question)),
            asker_name: "Ada".to_owned(),
            words: words.to_owned(),
            target: Some(MessageId::new(question)),
            asked: self.memory.now(),
            answered: self.memory.now(),
            answer: format!("so: {words}"),
            messages: Vec::new(),
            tools: Vec::new(),
            sources: Vec::new(),
            inherited: Vec::new(),
            receipt: None,
        }
    }

    async fn early(&self, exchange: &Exchange) -> Option<EarlyTurn<'_>> {
        let place = place(GUILD, HERE, ADA);
        let ids = Ids::default();
        self.memory.record_early(&ids, &place, exchange).await
    }

    async fn record(&self, exchange: &Exchange, early: Option<EarlyTurn<'_>>) {
        let posted = Exchange {
            messages: vec![MessageId::new(exchange.turn.0 + 1)],
            ..exchange.clone()
        };
        let place = place(GUILD, HERE, ADA);
        let ids = Ids::default();
        self.memory.record(&ids, &place, &posted, early).await;
    }

    /// What a prompt would carry.
    async fn prompt(&self) -> Vec<String> {
        let place = place(GUILD, HERE, ADA);
        let (ids, turn) = (Ids::default(), TurnId(u64::MAX >> 1));
        let earlier = self.memory.earlier(&ids, &place, turn, "").await;
        let rows = earlier.history.into_iter();
        rows.map(|row| row.content).collect()
    }

    async fn in_store(&self) -> usize {
        let store = &self.memory.stores.conversations;
        store.early(100).await.unwrap().len()
    }

    fn recorded(&self) -> Vec<bool> {
        let all = self.lines.all().into_iter();
        let recorded = all.filter(|one| one.event.name() == "recorded");
        let early = recorded.map(|one| {
            let line: serde_json::Value = serde_json::from_str(&one.line).unwrap();
            line["detail"]["early"].as_bool().unwrap()
        });
        early.collect()
    }

    fn is_idle(&self) -> bool {
        self.memory.unsaved.messages(HERE).is_empty()
    }
}

fn key(turn: u64) -> TurnKey {
    let place = place(GUILD, HERE, ADA);
    TurnKey {
        scope: place.scope,
        agent: place.agent,
        turn: TurnId(turn),
    }
}

fn deleted(id: u64) -> DiscordChange {
    DiscordChange::Deleted {
        guild: Some(GUILD),
        channel: HERE,
        ids: vec![MessageId::new(id)],
    }
}

#[tokio::test]
async fn an_early_turn_is_stored_and_shown_to_nobody_until_it_is_recorded() {
    let folder = TempDir::new().unwrap();
    let p = Process::start(&store(folder.path()).await).await;
    let exchange = p.exchange(10, "saffron");
    let early = p.early(&exchange).await;
    assert!(early.is_some());
    assert_eq!((p.in_store().await, p.prompt().await.len()), (2, 0));
    assert_eq!(p.memory.store_state().unsaved, 0, "it waits for no store");
    p.record(&exchange, early).await;
    assert_eq!(p.prompt().await, ["saffron", "so: saffron"]);
    assert_eq!((p.in_store().await, p.recorded()), (0, vec![true]));
    assert!(p.is_idle());
}

#[tokio::test]
async fn an_answer_that_is_not_posted_is_taken_back() {
    let folder = TempDir::new().unwrap();
    let p = Process::start(&store(folder.path()).await).await;
    let early = p.early(&p.exchange(10, "saffron")).await;
    drop(early);
    p.memory.look_after().await;
    assert_eq!((p.in_store().await, p.prompt().await.len()), (0, 0));
    assert!(p.is_idle() && p.recorded().is_empty());
    // One of which only the receipt is stored.
    let early = p.early(&p.exchange(20, "ginger")).await;
    let unanswered = Exchange {
        answer: String::new(),
        ..p.exchange(20, "ginger")
    };
    p.record(&unanswered, early).await;
    p.memory.look_after().await;
    assert_eq!((p.in_store().await, p.prompt().await.len()), (0, 0));
}

#[tokio::test]
async fn what_is_deleted_before_the_answer_is_posted_is_not_stored() {
    let folder = TempDir::new().unwrap();
    let p = Process::start(&store(folder.path()).await).await;
    let _under_way = p.memory.noted().begins(Some(TurnId(10)));
    // Before the store has it, and after.
    p.memory.reconcile(deleted(10));
    let gone = p.exchange(10, "saffron");
    let early = p.early(&gone).await;
    assert_eq!(p.in_store().await, 0);
    p.record(&gone, early).await;
    let _under_way = p.memory.noted().begins(Some(TurnId(20)));
    let later = p.exchange(20, "ginger");
    let early = p.early(&later).await;
    p.memory.reconcile(deleted(20));
    p.memory.reconcile_all().await;
    assert_eq!(p.in_store().await, 0);
    p.record(&later, early).await;
    p.memory.look_after().await;
    assert_eq!(p.prompt().await, [""; 0]);
    assert!(p.is_idle());
}

#[tokio::test]
async fn nothing_early_is_stored_of_who_opted_out_or_where_it_would_not_last() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path()).await;
    let p = Process::start(&store).await;
    p.opt_outs.set([ADA].into_iter().collect());
    assert!(p.early(&p.exchange(10, "saffron")).await.is_none());
    let s = crate::memory::tests::scene().await;
    let (ids, place) = (Ids::default(), place(GUILD, HERE, ADA));
    let exchange = p.exchange(10, "x");
    let early = s.memory.record_early(&ids, &place, &exchange).await;
    assert!(early.is_none(), "conversations are in memory only");
}

/// The clock of the runtime stands still unless everything waits, so the wait is exact.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_delays_an_answer_by_the_bound_and_no_more() {
    let folder = TempDir::new().unwrap();
    let p = Process::start(&store(folder.path()).await).await;
    let other = rusqlite::Connection::open(folder.path().join("clew.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let exchange = p.exchange(10, "saffron");
    let began = Instant::now();
    let early = p.early(&exchange).await.unwrap();
    assert_eq!(began.elapsed(), PATIENCE);
    assert_eq!(early.rows, EarlyRows::Unsure);
    other.execute_batch("ROLLBACK").unwrap();
    tokio::time::resume();
    p.record(&exchange, Some(early)).await;
    assert_eq!(p.prompt().await, ["saffron", "so: saffron"]);
    assert_eq!((p.in_store().await, p.recorded()), (0, vec![false]));
}

#[tokio::test]
async fn no_answer_waits_for_a_store_that_fails() {
    let folder = TempDir::new().unwrap();
    let p = Process::start(&store(folder.path()).await).await;
    let store = Arc::clone(&p.memory.stores.conversations);
    store.close().await.unwrap();
    let early = p.early(&p.exchange(10, "saffron")).await.unwrap();
    assert_eq!(early.rows, EarlyRows::Unsure);
    drop(early);
    assert!(
        p.early(&p.exchange(20, "ginger")).await.is_none(),
        "it fails, as is known by now"
    );
}

#[tokio::test]
async fn what_an_earlier_process_left_early_is_hidden_until_it_is_settled() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path()).await;
    let killed = Process::start(&store).await;
    for (turn, words) in [(10, "saffron"), (20, "ginger"), (30, "cumin")] {
        let early = killed.early(&killed.exchange(turn, words)).await.unwrap();
        std::mem::forget(early);
    }
    let p = Process::start(&store).await;
    p.time.fetch_add(1_000, Ordering::SeqCst);
    assert_eq!((p.in_store().await, p.prompt().await.len()), (6, 0));
    assert_eq!(p.memory.left.lock().len(), 3);
    p.memory.look_after().await;
    assert_eq!(p.prompt().await, [""; 0], "nothing is settled by itself");
    // Discord shows the first, does not show the second, and the third is deleted.
    let messages = [41, 42].map(MessageId::new);
    p.memory
        .unsaved
        .confirm(&key(10), &messages, p.memory.now());
    p.memory.unsaved.take_back(&key(20));
    p.memory.reconcile(deleted(30));
    p.memory.reconcile_all().await;
    p.memory
        .unsaved
        .confirm(&key(30), &[MessageId::new(43)], p.memory.now());
    p.memory.look_after().await;
    assert_eq!(p.prompt().await, ["saffron", "so: saffron"]);
    assert_eq!((p.in_store().await, p.recorded()), (0, vec![true]));
    let held = store.held_messages(HERE, MessageId::new(1), MessageId::new(99));
    assert_eq!(held.await.unwrap(), [10, 41, 42].map(MessageId::new));
    assert!(p.is_idle());
}

#[tokio::test]
async fn who_opted_out_meanwhile_has_nothing_settled() {
    let folder = TempDir::new().unwrap();
    let store = store(folder.path()).await;
    let killed = Process::start(&store).await;
    std::mem::forget(killed.early(&killed.exchange(10, "saffron")).await);
    store.set_opt_out(ADA, Some(UnixMillis(NOW))).await.unwrap();
    let p = Process::start(&store).await;
    assert!(p.memory.unsaved.early_rows(&key(10)).unwrap().is_empty());
    p.memory.unsaved.take_back(&key(10));
    p.memory.look_after().await;
    assert_eq!(p.in_store().await, 0);
}

/// A message of ours.
fn posted(id: u64, reply_to: Option<u64>, text: &str) -> Message {
    Message {
        id: MessageId::new(id),
        channel: HERE,
        guild: None,
        kind: MessageKind::Default,
        author: Author {
            id: UserId::new(5),
            name: "clew".into(),
            bot: true,
            webhook: false,
            application: None,
        },
        timestamp: UnixMillis(NOW),
        edited: None,
        flags: MessageFlags::default(),
        content: text.into(),
        reference: reply_to.map(|id| Reference {
            kind: ReferenceKind::Default,
            channel: Some(HERE),
            message: Some(MessageId::new(id)),
        }),
        referenced: Referenced::Absent,
        mentions: Box::default(),
        mention_roles: Box::default(),
        extras: None,
        withheld: false,
    }
}

#[tokio::test]
async fn an_answer_is_known_by_all_of_its_words_and_what_it_replies_to() {
    let folder = TempDir::new().unwrap();
    let p = Process::start(&store(folder.path()).await).await;
    let target = Some(MessageId::new(10));
    let found = |answer: &str, target, ours: &[Message]| {
        let found = p.memory.shown_by(answer, target, ours);
        found.map(|ids| ids.into_iter().map(MessageId::get).collect::<Vec<_>>())
    };
    let whole = posted(11, Some(10), "so: saffron");
    assert_eq!(
        found("so: saffron\n", target, std::slice::from_ref(&whole)),
        Some(vec![11])
    );
    // Part of it, the same words to another question, and none.
    let part = posted(11, Some(10), "so: saf");
    let other = posted(11, Some(9), "so: saffron");
    assert_eq!(found("so: saffron", target, &[part, other.clone()]), None);
    assert_eq!(found("so: saffron", target, &[]), None);
    let to_nothing = posted(13, None, "so: saffron");
    assert_eq!(found("so: saffron", target, &[to_nothing]), Some(vec![13]));
    assert_eq!(
        found("so: saffron", None, std::slice::from_ref(&other)),
        Some(vec![11])
    );
    assert_eq!(
        found(
            "so: saffron",
            target,
            &[other, posted(12, Some(10), "so: saffron")]
        ),
        Some(vec![12])
    );
    // Of two messages both, in their order.
    let long = format!("{}\n\n{}", "a".repeat(1_900), "b".repeat(1_900));
    let [first, second] = [(11, Some(10), "a"), (12, None, "b")]
        .map(|(id, reply_to, letter)| posted(id, reply_to, &letter.repeat(1_900)));
    assert_eq!(
        found(&long, target, &[first.clone(), second.clone()]),
        Some(vec![11, 12])
    );
    assert_eq!(found(&long, target, std::slice::from_ref(&first)), None);
    assert_eq!(found(&long, target, &[second, first]), None);
}
