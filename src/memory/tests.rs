//! Memory on its own, over stores in memory and a clock set by hand.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use crate::memory::unsaved::UnsavedTurn;
use crate::telemetry::{Lines, event::CircuitState};
use clew_context::model::{MessageId, TurnId};
use clew_store::model::{Fact, FactId, Origin, ScopeKind, StoreAddress, StoredMessage, Subject};
use clew_store::{Kind, Purge};
use futures_util::FutureExt;

mod profiles;
mod recall;
mod sources;

pub(super) const GUILD: GuildId = GuildId::new(1);
pub(super) const HERE: ChannelId = ChannelId::new(7);
pub(super) const ADA: UserId = UserId::new(10);
pub(super) const BORIS: UserId = UserId::new(20);

pub(super) struct Scene {
    pub(super) memory: Memory,
    pub(super) lines: Lines,
    pub(super) opt_outs: Arc<OptOuts>,
    time: Arc<AtomicI64>,
}

pub(super) fn settings() -> MemoryConfig {
    let day = Duration::from_hours(24);
    MemoryConfig {
        store: StoreAddress::Sqlite(PathBuf::from("clew.db")),
        scope: ScopeKind::Member,
        rolling_window: day,
        max_context_messages: 30,
        max_context_chars: 16_000,
        load_past: 30,
        recall: 4,
        in_memory_only: false,
        retention: None,
        receipts: None,
        guild_retention: day,
        agents_dir: PathBuf::new(),
        default_agent: true,
        learn: true,
        max_user_facts: 2,
        max_server_facts: 100,
        save_interval: day,
        user_profile_dir: PathBuf::new(),
        server_profile_dir: PathBuf::new(),
        dm_logs_dir: None,
        max_log_bytes: None,
    }
}

/// A memory with a separate store for conversations.
pub(super) async fn scene() -> Scene {
    scene_with(settings()).await
}

pub(super) async fn scene_with(settings: MemoryConfig) -> Scene {
    let time = Arc::new(AtomicI64::new(1_000_000_000_000));
    let clock: Clock = {
        let time = Arc::clone(&time);
        Arc::new(move || UnixMillis(time.load(Ordering::SeqCst)))
    };
    let (telemetry, lines) = Telemetry::to_memory("mem.ctx", Arc::clone(&clock));
    let stores = Stores {
        lasting: Arc::new(Store::in_memory().await.unwrap()),
        conversations: Arc::new(Store::in_memory().await.unwrap()),
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
    Scene {
        memory: memory.unwrap(),
        lines,
        opt_outs,
        time,
    }
}

pub(super) fn place(guild: GuildId, channel: ChannelId, asker: UserId) -> Place {
    Place {
        scope: Scope::of(ScopeKind::Member, Some(guild), channel, false, asker),
        agent: AgentName::default_agent(),
        guild: Some(guild),
        channel,
        asker,
        rolling_window: Duration::from_hours(24),
    }
}

impl Scene {
    pub(super) fn pass(&self, ms: i64) {
        self.time.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) fn exchange(&self, question: u64, words: &str) -> Exchange {
        Exchange {
            turn: TurnId(question),
            trigger: Some(MessageId::new(question)),
            asker_name: "Ada".to_owned(),
            words: words.to_owned(),
            target: None,
            asked: self.memory.now(),
            answered: self.memory.now(),
            answer: format!("so: {words}"),
            messages: vec![MessageId::new(question + 1)],
            tools: Vec::new(),
            sources: Vec::new(),
            inherited: Vec::new(),
            receipt: None,
        }
    }

    /// Stores a turn: a question and, with the next id, its answer.
    pub(super) async fn ask(&self, place: &Place, question: u64, words: &str) {
        let exchange = self.exchange(question, words);
        let ids = Ids::default();
        self.memory.record(&ids, place, &exchange, None).await;
    }

    /// The rows that a prompt would carry.
    pub(super) async fn rows(&self, place: &Place) -> Vec<StoredMessage> {
        let turn = TurnId(u64::MAX >> 1);
        let ids = Ids::default();
        self.memory.earlier(&ids, place, turn, "").await.history
    }

    /// The details of the events with this name.
    pub(super) fn told(&self, event: &str) -> Vec<serde_json::Value> {
        let all = self.lines.all().into_iter();
        all.filter(|one| one.event.name() == event)
            .map(|one| {
                let line: serde_json::Value = serde_json::from_str(&one.line).unwrap();
                line["detail"].clone()
            })
            .collect()
    }

    pub(super) async fn reconcile(&self, change: DiscordChange) {
        self.memory.reconcile(change);
        self.memory.reconcile_all().await;
    }

    async fn departures(&self) -> Vec<(u64, i64)> {
        let departures = self.memory.stores.lasting.departures().await.unwrap();
        let of = |(guild, at): (GuildId, UnixMillis)| (guild.get(), at.0);
        departures.into_iter().map(of).collect()
    }
}

fn words(rows: &[StoredMessage]) -> Vec<&str> {
    rows.iter().map(|row| row.content.as_str()).collect()
}

fn channel_deleted(channel: ChannelId) -> DiscordChange {
    let guild = Some(GUILD);
    DiscordChange::ChannelDeleted { guild, channel }
}

fn deleted(id: u64) -> DiscordChange {
    DiscordChange::Deleted {
        guild: Some(GUILD),
        channel: HERE,
        ids: vec![MessageId::new(id)],
    }
}

#[tokio::test]
async fn what_is_purged_is_told_and_what_is_not_is_not() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "saffron").await;
    s.ask(&here, 20, "ginger").await;
    s.reconcile(deleted(99)).await;
    assert_eq!(s.told("purged").len(), 0);
    s.reconcile(deleted(10)).await;
    let told = s.told("purged");
    assert_eq!((told.len(), &told[0]["entries"]), (1, &2.into()));
    assert_eq!(words(&s.rows(&here).await), ["ginger", "so: ginger"]);
}

#[tokio::test]
async fn nothing_is_said_of_before_if_no_rows_are_wanted_or_the_asker_opted_out() {
    let here = place(GUILD, HERE, ADA);
    let s = scene_with(MemoryConfig {
        max_context_messages: 0,
        ..settings()
    });
    let s = s.await;
    s.ask(&here, 10, "saffron").await;
    assert_eq!(s.rows(&here).await, []);
    let s = scene().await;
    s.ask(&here, 10, "saffron").await;
    assert_eq!(s.rows(&here).await.len(), 2);
    // Nor what somebody else said in a shared thread.
    let in_thread = |asker| Place {
        scope: Scope::Thread {
            guild: GUILD,
            channel: HERE,
        },
        ..place(GUILD, HERE, asker)
    };
    s.ask(&in_thread(BORIS), 20, "ginger").await;
    assert_eq!(s.rows(&in_thread(ADA)).await.len(), 2);
    s.opt_outs.set([ADA].into_iter().collect());
    assert_eq!(s.rows(&here).await, []);
    assert_eq!(s.rows(&in_thread(ADA)).await, []);
}

/// A turn that is not stored yet is reconciled in the queue.
#[tokio::test]
async fn what_waits_for_its_store_is_mended_at_once() {
    let (channel, guild, user) = (HERE, GUILD, ADA);
    let edit = Edit {
        message: MessageId::new(10),
        words: Some("  ginger ".to_owned()),
        at: None,
    };
    let ids = vec![MessageId::new(11)];
    for (change, left) in [
        (deleted(10), vec![]),
        (DiscordChange::Unknown { channel, ids }, vec!["saffron"]),
        (channel_deleted(HERE), vec![]),
        (DiscordChange::MemberLeft { guild, user }, vec![]),
        (
            DiscordChange::Edited {
                guild: Some(GUILD),
                channel,
                edit,
            },
            vec!["ginger", "so: saffron"],
        ),
        (
            DiscordChange::GuildLeft(GUILD),
            vec!["saffron", "so: saffron"],
        ),
    ] {
        let s = scene().await;
        let memory = &s.memory;
        let place = place(GUILD, HERE, ADA);
        let exchange = s.exchange(10, "saffron");
        let rows = history::rows(&place, &exchange, memory.limits());
        let turn = UnsavedTurn::new(
            Ids::default(),
            memory.now(),
            &place.agent,
            rows.clone(),
            None,
        );
        memory.unsaved.keep(turn.unwrap());
        memory.reconcile(change.clone());
        let mut rows = Vec::new();
        let (scope, agent) = (place.scope, &place.agent);
        memory
            .unsaved
            .add_to(&mut rows, scope, agent, UnixMillis(0));
        assert_eq!(words(&rows), left, "{change:?}");
    }
}

/// What lost its room is hidden, and Discord is asked for it.
#[tokio::test]
async fn what_of_a_flood_is_not_kept_is_made_up_for() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "saffron").await;
    s.pass(1_000);
    assert_eq!(s.rows(&here).await.len(), 2);
    for id in 30..32 {
        s.memory.reconcile(DiscordChange::Edited {
            guild: Some(GUILD),
            channel: HERE,
            edit: Edit {
                message: MessageId::new(id),
                words: Some("x".repeat(3 << 20)),
                at: None,
            },
        });
    }
    let told = s.told("changes_dropped");
    assert_eq!((told.len(), &told[0]["changes"]), (1, &2.into()));
    s.memory.reconcile_all().await;
    let due = s.memory.doubts.due().now_or_never().unwrap().hand_over();
    assert_eq!(due, [10, 11].map(|id| (HERE, MessageId::new(id))));
    assert_eq!(s.rows(&here).await, []);
}

/// Only servers of the shard, and not those noted before.
#[tokio::test]
async fn servers_that_a_shard_no_longer_has_were_left() {
    let s = scene().await;
    let [even, gone, odd, before] = [4, 6, 5, 8].map(|id| GuildId::new(id << 22 | 3));
    for (number, guild) in [even, gone, odd, before].into_iter().enumerate() {
        let question = 10 * (number as u64 + 1);
        s.ask(&place(guild, HERE, ADA), question, "saffron").await;
    }
    let now = s.memory.now().0;
    s.reconcile(DiscordChange::GuildLeft(before)).await;
    s.pass(1_000);
    let connected = |guilds| DiscordChange::Connected {
        shard: 0,
        shards: 2,
        guilds,
    };
    s.reconcile(connected(Vec::new())).await;
    assert_eq!(s.departures().await, [(before.get(), now)]);
    s.reconcile(connected(vec![even])).await;
    let mut departures = s.departures().await;
    departures.sort_unstable();
    // A gap, which both connections are, has a time of its own.
    let since = s.memory.now().0;
    assert!(since > now + 1_000);
    let expected = [(gone.get(), since), (before.get(), now)];
    assert_eq!(departures, expected);
    s.reconcile(DiscordChange::GuildJoined(gone)).await;
    assert_eq!(s.departures().await, [(before.get(), now)]);
}

/// The databases' integers end at `i64::MAX`.
#[test]
fn an_id_is_one_for_every_database() {
    for _ in 0..100 {
        assert!(facts::new_id().0 <= i64::MAX.cast_unsigned());
    }
}

#[tokio::test]
async fn who_is_erased_is_gone_from_every_store() {
    let s = scene().await;
    s.ask(&place(GUILD, HERE, ADA), 10, "saffron").await;
    let subject = Subject::User(ADA);
    let remembered = s.memory.remember(subject, "figs", Origin::Everywhere, ADA);
    remembered.await.unwrap().unwrap();
    let kept = s.memory.kept_of(ADA).await.unwrap();
    assert_eq!(kept.total(), 3);
    let gone = s.memory.erase(ADA).await.unwrap();
    assert_eq!(gone.total(), 3);
    let purge = Purge::User(ADA);
    assert_eq!(s.memory.purge(&purge).await.unwrap().total(), 0);
}

#[tokio::test]
async fn an_opt_out_holds_at_once_until_an_opt_in() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "saffron").await;
    let gone = s.memory.opt_out(ADA).await.unwrap();
    assert_eq!(gone.total(), 2);
    assert!(s.memory.opted_out(ADA) && !s.memory.opted_out(BORIS));
    s.ask(&here, 20, "ginger").await;
    s.memory.opt_in(ADA).await.unwrap();
    assert!(!s.memory.opted_out(ADA));
    assert_eq!(s.rows(&here).await, []);
    s.ask(&here, 30, "cinnamon").await;
    assert_eq!(s.rows(&here).await.len(), 2);
}

/// A process that was killed right after it had noted an opt-out purged nothing.
#[tokio::test]
async fn an_opt_out_that_was_broken_off_is_finished() {
    let s = scene().await;
    let (of_ada, of_boris) = (place(GUILD, HERE, ADA), place(GUILD, HERE, BORIS));
    s.ask(&of_ada, 10, "saffron").await;
    s.ask(&of_boris, 20, "ginger").await;
    let noted = s
        .memory
        .stores
        .lasting
        .set_opt_out(ADA, Some(UnixMillis(1)));
    noted.await.unwrap();
    assert_eq!(s.memory.kept_of(ADA).await.unwrap().total(), 3);
    s.memory.finish_opt_outs().await.unwrap();
    let kept = s.memory.kept_of(ADA).await.unwrap();
    assert_eq!(kept.iter().collect::<Vec<_>>(), [(Kind::OptOuts, 1)]);
    assert_eq!(s.memory.kept_of(BORIS).await.unwrap().total(), 2);
}

/// What the store does not take now waits, and is counted as lost if the process
/// ends first.
#[tokio::test]
async fn a_turn_waits_for_a_store_that_hung() {
    let s = scene().await;
    let memory = &s.memory;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "saffron").await;
    assert!(memory.recovery.notified().now_or_never().is_none());
    memory.drop_unsaved();
    assert_eq!(s.told("turns_dropped").len(), 0);
    let hung = circuit::Sides {
        write: CircuitState::Open,
        ..circuit::Sides::default()
    };
    memory.found(&memory.stores.conversations, circuit::Seen::default(), hung);
    s.ask(&here, 20, "ginger").await;
    assert!(memory.recovery.notified().now_or_never().is_some());
    assert_eq!(memory.unsaved.len(), 1);
    assert_eq!(s.told("recorded").len(), 1);
    let expected = ["saffron", "so: saffron", "ginger", "so: ginger"];
    assert_eq!(words(&s.rows(&here).await), expected);
    memory.drop_unsaved();
    let told = s.told("turns_dropped");
    assert_eq!((told.len(), &told[0]["turns"]), (1, &1.into()));
}

/// It is a new turn, marked as restored and the newest there; what may not be read
/// stays out.
#[tokio::test]
async fn what_is_restored_stands_as_new_and_once() {
    let s = scene().await;
    let there = ChannelId::new(8);
    let [here, elsewhere] = [HERE, there].map(|channel| place(GUILD, channel, ADA));
    // More than a prompt carries.
    for question in 1..=20 {
        s.ask(&here, question * 10, "saffron").await;
    }
    s.ask(&elsewhere, 500, "ginger").await;
    // A thread belongs to its members, but what Ada said there is hers.
    let thread = Scope::Thread {
        guild: GUILD,
        channel: HERE,
    };
    let in_thread = Place {
        scope: thread,
        ..here.clone()
    };
    s.ask(&in_thread, 600, "anise").await;
    let before = s.rows(&here).await;
    let saved = s.memory.save(&here, Some("herbs"), None).await.unwrap();
    assert_eq!(saved.message_count, 44);
    for place in [&here, &elsewhere, &in_thread] {
        s.memory.delete_conversation(place).await.unwrap();
    }
    s.pass(1_000);
    s.ask(&here, 700, "cinnamon").await;
    s.pass(1_000);
    let restore = async || {
        let restored = s
            .memory
            .restore(&here, &saved.id, |channel| channel == HERE);
        let restored = restored.await.unwrap();
        (restored.messages, restored.present, restored.forbidden)
    };
    assert_eq!(restore().await, (42, 0, 2));
    assert_eq!(restore().await, (0, 42, 2));
    assert_eq!(s.rows(&elsewhere).await, []);
    assert_eq!(words(&s.rows(&in_thread).await), ["anise", "so: anise"]);
    let nobody = s.memory.restore(&here, &saved.id, |_| false).await;
    assert!(matches!(nobody, Err(RestoreError::Forbidden)));

    let rows = s.rows(&here).await;
    assert_eq!((rows.len(), words(&rows)[0]), (30, "saffron"));
    let now = s.memory.now();
    let turns: BTreeSet<TurnId> = before.iter().map(|row| row.turn).collect();
    for row in &rows {
        assert_eq!(row.restored_from.as_ref(), Some(&saved.id));
        assert_eq!(row.timestamp, now);
        assert!(!turns.contains(&row.turn) && row.turn.0 <= i64::MAX.cast_unsigned());
    }
}

/// Each time apart moves the clock ahead: one is enough for all.
#[tokio::test]
async fn the_clock_stays_however_many_channels_wait() {
    let s = scene().await;
    for channel in (100..200).map(ChannelId::new) {
        s.memory.reconcile(DiscordChange::Deleted {
            guild: Some(GUILD),
            channel,
            ids: vec![MessageId::new(1)],
        });
    }
    let before = s.memory.now().0;
    assert_eq!(s.memory.gaps().len(), 100);
    assert_eq!(s.memory.now().0, before + 2);
}

/// Two questions in two channels, and only then the answers.
#[tokio::test]
async fn turns_that_overlapped_are_restored_whole() {
    let s = scene().await;
    let [here, there] = [HERE, ChannelId::new(8)].map(|channel| place(GUILD, channel, ADA));
    let first = s.exchange(10, "saffron");
    s.pass(1);
    let second = s.exchange(20, "ginger");
    s.pass(1);
    for (place, mut turn) in [(&here, first), (&there, second)] {
        turn.answered = s.memory.now();
        let ids = Ids::default();
        s.memory.record(&ids, place, &turn, None).await;
    }
    let saved = s.memory.save(&here, None, None).await.unwrap();
    for place in [&here, &there] {
        s.memory.delete_conversation(place).await.unwrap();
    }
    let restored = s.memory.restore(&here, &saved.id, |_| true).await;
    assert_eq!(restored.unwrap().messages, 4);
    s.reconcile(deleted(10)).await;
    let store = &s.memory.stores.conversations;
    let left = store.own_messages(ADA, &here.agent, Some(GUILD), UnixMillis(0));
    assert_eq!(words(&left.await.unwrap()), ["ginger", "so: ginger"]);
}

/// Its question is no message, its answer is one.
#[tokio::test]
async fn what_a_command_asked_is_restored_once() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    let exchange = Exchange {
        trigger: None,
        ..s.exchange(10, "saffron")
    };
    let ids = Ids::default();
    s.memory.record(&ids, &here, &exchange, None).await;
    let saved = s.memory.save(&here, None, None).await.unwrap();
    let restored = s.memory.restore(&here, &saved.id, |_| true).await.unwrap();
    assert_eq!((restored.messages, restored.present), (0, 2));
    assert_eq!(words(&s.rows(&here).await), ["saffron", "so: saffron"]);
}

/// A marker would say that they were here, and when.
#[tokio::test]
async fn nothing_is_cleared_for_who_opted_out_unless_for_everyone() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.opt_outs.set([ADA].into_iter().collect());
    let store = &s.memory.stores.conversations;
    for everyone in [false, true] {
        s.memory.clear(&here, everyone).await.unwrap();
        let cleared = store.cleared_at(&here.agent, here.guild, ADA).await;
        assert_eq!(cleared.unwrap().is_some(), everyone);
    }
}

/// Rows beyond what any prompt includes are swept.
#[tokio::test]
async fn what_is_swept_is_told() {
    let s = scene().await;
    let here = place(GUILD, HERE, ADA);
    s.ask(&here, 10, "saffron").await;
    s.memory.sweep().await;
    assert_eq!(s.told("purged").len(), 0);
    s.pass(2 * 24 * 60 * 60 * 1_000);
    s.memory.sweep().await;
    let told = s.told("purged");
    assert_eq!((told.len(), &told[0]["entries"]), (1, &2.into()));
}

/// The store works, but may have refused the turn before.
#[tokio::test]
async fn what_waits_for_a_store_that_is_well_is_stored_later() {
    let s = scene().await;
    let memory = &s.memory;
    let place = place(GUILD, HERE, ADA);
    let exchange = s.exchange(10, "saffron");
    let rows = history::rows(&place, &exchange, memory.limits());
    let turn = UnsavedTurn::new(Ids::default(), memory.now(), &place.agent, rows, None);
    memory.unsaved.keep(turn.unwrap());
    let stored = async {
        while !memory.unsaved.is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let shutdown = tokio_util::sync::CancellationToken::new();
    tokio::select! {
        biased;
        () = memory.recover(&shutdown) => unreachable!("nobody shuts it down"),
        stored = tokio::time::timeout(Duration::from_secs(20), stored) => stored.unwrap(),
    }
}

#[tokio::test]
async fn so_many_conversations_may_be_saved_in_one_place() {
    let s = scene().await;
    let (here, store) = (place(GUILD, HERE, ADA), &s.memory.stores.conversations);
    s.ask(&here, 10, "saffron").await;
    let saved = s.memory.save(&here, None, None).await.unwrap();
    let mut snapshot = store.snapshot(ADA, &saved.id).await.unwrap().unwrap();
    for number in 1..MOST_SAVED {
        let id = format!("{number:08}-1111-4111-8111-111111111111");
        snapshot.info.id = id.parse().unwrap();
        store.save_snapshot(&snapshot).await.unwrap();
    }
    let more = s.memory.save(&here, None, None).await;
    assert!(matches!(more, Err(SaveError::Full)));
    let elsewhere = place(GuildId::new(9), HERE, ADA);
    s.ask(&elsewhere, 20, "ginger").await;
    s.memory.save(&elsewhere, None, None).await.unwrap();
}
