//! What is purged while it is on its way into or out of a store stays purged; also the bounds of a
//! conversation. Each future is paused where it first waits for the store, so that the event comes at exactly
//! that point. If the store answers before the future waits, the attempt shows nothing and is made again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clew::memory::{DiscordChange, Edit, Exchange, Memory, Place, RestoreError, Stores};
use clew::telemetry::{Ids, Telemetry};
use clew_context::model::{
    ChannelId, ContentSource, GuildId, MessageId, OptOuts, TurnId, UnixMillis, UserId, fixed_clock,
};
use clew_store::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Origin, Scope, ScopeKind,
    StoreAddress, StoredMessage, Subject,
};
use clew_store::{Folders, Store, WindowQuery};
use futures_util::poll;
use tempfile::TempDir;
use tokio::time::timeout;

use super::place::settings;
use crate::support::START;

const GUILD: GuildId = GuildId::new(1);
const CHANNEL: ChannelId = ChannelId::new(2);
const ADA: UserId = UserId::new(10);
const BORIS: UserId = UserId::new(20);

struct Scene {
    memory: Memory,
    store: Arc<Store>,
    _folder: TempDir,
}

async fn scene() -> Scene {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let folders = Folders {
        agents: path.join("agents"),
        users: path.join("users"),
        servers: path.join("servers"),
    };
    let address = StoreAddress::Sqlite(path.join("clew.db"));
    let store = Store::open(&address, &folders, fixed_clock(START)).await;
    let store = Arc::new(store.unwrap());
    let (telemetry, _) = Telemetry::to_memory("mem.ctx", fixed_clock(START));
    let stores = Stores {
        lasting: Arc::clone(&store),
        conversations: Arc::clone(&store),
        transcripts: None,
        outputs: None,
    };
    let settings = settings();
    let opt_outs = Arc::new(OptOuts::default());
    let clock = fixed_clock(START);
    let memory = Memory::open(stores, settings, opt_outs, clock, telemetry).await;
    Scene {
        memory: memory.unwrap(),
        store,
        _folder: folder,
    }
}

fn place(asker: UserId) -> Place {
    Place {
        scope: Scope::of(ScopeKind::Member, Some(GUILD), CHANNEL, false, asker),
        agent: AgentName::default_agent(),
        guild: Some(GUILD),
        channel: CHANNEL,
        asker,
        rolling_window: Duration::from_hours(24),
    }
}

/// A turn whose messages have the ids 7 and 8.
fn exchange(asked: UnixMillis) -> Exchange {
    Exchange {
        turn: TurnId(7),
        trigger: Some(MessageId::new(7)),
        asker_name: "Ada".to_owned(),
        words: "hello".to_owned(),
        target: None,
        asked,
        answered: asked,
        answer: "hi".to_owned(),
        messages: vec![MessageId::new(8)],
        tools: Vec::new(),
        sources: Vec::new(),
        inherited: Vec::new(),
        receipt: None,
    }
}

impl Scene {
    /// All stored messages of somebody's conversation.
    async fn stored(&self, asker: UserId) -> Vec<StoredMessage> {
        let query = WindowQuery {
            scope: place(asker).scope,
            agent: AgentName::default_agent(),
            since: UnixMillis(0),
            cleared: None,
            with_tools: true,
            limit: 100,
        };
        self.store.window(&query).await.unwrap()
    }
}

/// Stores Ada's turn while something happens; returns the number of rows stored.
async fn recorded_during(event: impl Fn(&Memory)) -> usize {
    loop {
        let s = scene().await;
        let (ids, place, exchange) = (Ids::default(), place(ADA), exchange(START));
        let mut record = pin!(s.memory.record(&ids, &place, &exchange, None));
        if poll!(&mut record).is_pending() {
            event(&s.memory);
            record.await;
            return s.stored(ADA).await.len();
        }
    }
}

#[tokio::test]
async fn what_is_purged_while_a_turn_is_stored_stays_purged() {
    assert_eq!(recorded_during(|_| ()).await, 2);
    let left = |memory: &Memory| {
        let (guild, user) = (GUILD, ADA);
        memory.reconcile(DiscordChange::MemberLeft { guild, user });
    };
    assert_eq!(recorded_during(left).await, 0, "a member who left");
    let gone = |memory: &Memory| {
        memory.reconcile(DiscordChange::ChannelDeleted {
            guild: Some(GUILD),
            channel: CHANNEL,
        });
    };
    assert_eq!(recorded_during(gone).await, 0, "a deleted channel");
}

/// Then it is not known what of the turn was deleted.
#[tokio::test]
async fn a_turn_whose_server_deletes_too_much_is_not_stored() {
    for (guild, kept) in [(GuildId::new(9), 2), (GUILD, 0)] {
        let s = scene().await;
        let under_way = s.memory.noted().begins(Some(TurnId(7)));
        for first in (0..70_000_u64).step_by(100) {
            s.memory.reconcile(DiscordChange::Deleted {
                guild: Some(guild),
                channel: ChannelId::new(9),
                ids: (first..first + 100)
                    .map(|id| MessageId::new(1_000 + id))
                    .collect(),
            });
        }
        let (ids, place) = (Ids::default(), place(ADA));
        s.memory.record(&ids, &place, &exchange(START), None).await;
        drop(under_way);
        assert_eq!(s.stored(ADA).await.len(), kept, "{guild}");
    }
}

/// The question or the answer is deleted while the turn still runs, when the store has nothing of it yet.
#[tokio::test]
async fn what_is_deleted_before_a_turn_is_stored_is_not_stored() {
    for (id, kept) in [(7, 0), (8, 1), (9, 2)] {
        let s = scene().await;
        s.memory.reconcile(DiscordChange::Deleted {
            guild: Some(GUILD),
            channel: CHANNEL,
            ids: vec![MessageId::new(id)],
        });
        s.memory.reconcile_all().await;
        let (ids, place) = (Ids::default(), place(ADA));
        s.memory.record(&ids, &place, &exchange(START), None).await;
        assert_eq!(s.stored(ADA).await.len(), kept, "message {id}");
    }
    let s = scene().await;
    s.memory.erase(ADA).await.unwrap();
    let (ids, place) = (Ids::default(), place(ADA));
    let before = UnixMillis(START.0 - 1);
    s.memory.record(&ids, &place, &exchange(before), None).await;
    assert_eq!(s.stored(ADA).await.len(), 0, "asked before it was erased");
}

/// Facts that were read before the purge and arrive after it.
#[tokio::test]
async fn facts_that_are_being_read_do_not_outlive_their_purge() {
    while !facts_are_purged_while_they_are_read().await {}
}

/// Returns whether the purge came while they were read.
async fn facts_are_purged_while_they_are_read() -> bool {
    let s = scene().await;
    let subject = Subject::User(ADA);
    let origin = Origin::Everywhere;
    let remembered = s.memory.remember(subject, "likes figs", origin, ADA);
    let fact = remembered.await.unwrap().unwrap().fact;
    // Drops what is held in memory, then puts the fact back into the store.
    s.memory.erase(ADA).await.unwrap();
    s.store
        .put_facts(std::slice::from_ref(&fact))
        .await
        .unwrap();
    let mut read = pin!(s.memory.facts_of(subject));
    let is_reading = poll!(&mut read).is_pending();
    if is_reading {
        s.memory.erase(ADA).await.unwrap();
        assert_eq!(read.await.unwrap(), []);
        assert_eq!(s.memory.facts_of(subject).await.unwrap(), []);
    }
    is_reading
}

/// The stored time of the agent's creation limits what is read, even if an earlier clear is known.
#[tokio::test]
async fn nothing_older_than_its_agent_is_read() {
    let elsewhere = scene().await;
    let (ids, her) = (Ids::default(), place(ADA));
    elsewhere
        .memory
        .record(&ids, &her, &exchange(START), None)
        .await;
    let mut rows = elsewhere.stored(ADA).await;
    for cleared in [None, Some(UnixMillis(START.0 - 500))] {
        for (began, count) in [(START.0 - 1_000, 2), (START.0 - 50, 0)] {
            let s = scene().await;
            let place = place(ADA);
            let agent = &place.agent;
            let noted = s.store.agent_created(agent, UnixMillis(began)).await;
            assert_eq!(noted.unwrap(), UnixMillis(began));
            if let Some(at) = cleared {
                let key = ClearKey {
                    agent: agent.clone(),
                    guild: Some(GUILD),
                    user: Some(ADA),
                };
                s.store.clear(&key, at).await.unwrap();
            }
            let asked = UnixMillis(START.0 - 100);
            for row in &mut rows {
                row.timestamp = asked;
            }
            s.store.append(&rows).await.unwrap();
            let read = s.memory.earlier(&ids, &place, TurnId(9), "").await.history;
            assert_eq!(read.len(), count, "{cleared:?} {began}");
        }
    }
}

/// A snapshot is restored, and only then Discord tells of an edit that nobody heard of: of
/// words that the answer was made from, or from before it was made.
#[tokio::test]
async fn a_missed_edit_of_a_source_reaches_what_was_restored() {
    const MINUTE_MS: i64 = 60_000;
    let source = ContentSource {
        guild: Some(GUILD),
        channel: ChannelId::new(3),
        message: Some(MessageId::new(5)),
        author: Some(BORIS),
    };
    for (minutes_ago, left) in [(30, 1), (90, 2)] {
        let s = scene().await;
        let (ids, place) = (Ids::default(), place(ADA));
        let asked = UnixMillis(START.0 - 60 * MINUTE_MS);
        let question = MessageId::first_at(asked).get();
        let exchange = Exchange {
            trigger: Some(MessageId::new(question)),
            messages: vec![MessageId::new(question + 1)],
            sources: vec![source],
            ..exchange(asked)
        };
        s.memory.record(&ids, &place, &exchange, None).await;
        let saved = s.memory.save(&place, None, None).await.unwrap();
        s.memory.delete_conversation(&place).await.unwrap();
        let restored = s.memory.restore(&place, &saved.id, |_| true).await;
        assert_eq!(restored.unwrap().messages, 2);
        assert_eq!(s.stored(ADA).await.len(), 2);
        s.memory.reconcile(DiscordChange::Edited {
            guild: Some(GUILD),
            channel: source.channel,
            edit: Edit {
                message: MessageId::new(5),
                words: Some("other words".to_owned()),
                at: Some(UnixMillis(START.0 - minutes_ago * MINUTE_MS)),
            },
        });
        // Carries out what waits.
        s.memory.erase(UserId::new(99)).await.unwrap();
        assert_eq!(s.stored(ADA).await.len(), left, "{minutes_ago}");
    }
}

/// The question of a restored turn is edited while it is on its way back.
#[tokio::test]
async fn an_edit_reaches_what_is_being_restored() {
    for attempt in 0.. {
        let s = scene().await;
        let (ids, place) = (Ids::default(), place(ADA));
        s.memory.record(&ids, &place, &exchange(START), None).await;
        let saved = s.memory.save(&place, None, None).await.unwrap();
        s.memory.delete_conversation(&place).await.unwrap();
        let mut restoring = pin!(s.memory.restore(&place, &saved.id, |_| true));
        // The first waits are for the marker and the snapshot, the last for the row.
        let mut polled = 0;
        while polled <= attempt && poll!(&mut restoring).is_pending() {
            polled += 1;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        s.memory.reconcile(DiscordChange::Edited {
            guild: Some(GUILD),
            channel: CHANNEL,
            edit: Edit {
                message: MessageId::new(7),
                words: Some("other words".to_owned()),
                at: Some(UnixMillis(START.0 + 1)),
            },
        });
        let is_over = polled <= attempt;
        if !is_over {
            // It waits until all is restored, or comes before anything is.
            let _ = timeout(Duration::from_millis(50), s.memory.reconcile_all()).await;
            assert_eq!(restoring.as_mut().await.unwrap().messages, 2);
        }
        s.memory.reconcile_all().await;
        let left = s.stored(ADA).await;
        assert_eq!(left[0].content, "other words", "{attempt}");
        if is_over {
            break;
        }
    }
}

/// A snapshot of Ada's with a row of Boris's, and a row of hers in his conversation.
#[tokio::test]
async fn rows_of_somebody_else_are_not_restored() {
    let s = scene().await;
    let mut exchange = exchange(START);
    exchange.asker_name = "Boris".to_owned();
    let his = place(BORIS);
    s.memory
        .record(&Ids::default(), &his, &exchange, None)
        .await;
    let rows = s.stored(BORIS).await;
    s.store.delete_conversation(his.scope).await.unwrap();
    let mut smuggled = rows.clone();
    for row in &mut smuggled {
        row.owner = ADA;
    }
    let ids = [
        "11111111-1111-4111-8111-111111111111",
        "22222222-2222-4222-8222-222222222222",
    ];
    for (id, messages) in ids.into_iter().zip([rows, smuggled]) {
        let info = ContextSnapshotInfo {
            id: id.parse().unwrap(),
            agent: AgentName::default_agent(),
            owner: ADA,
            guild: Some(GUILD),
            timestamp: START,
            description: None,
            summary: "his".to_owned(),
            message_count: messages.len(),
            window_start: UnixMillis(0),
            window_end: START,
        };
        let snapshot = ContextSnapshot { info, messages };
        s.store.save_snapshot(&snapshot).await.unwrap();
        let id = &snapshot.info.id;
        let restored = s.memory.restore(&place(ADA), id, |_| true).await;
        assert!(matches!(restored, Err(RestoreError::Forbidden)));
        assert_eq!(s.stored(ADA).await, []);
        assert_eq!(s.stored(BORIS).await, []);
    }
}
