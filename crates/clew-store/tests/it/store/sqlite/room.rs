//! Conversations in memory stay within their space, and their share of it.

use clew_context::model::{ChannelId, GuildId, UserId};
use clew_store::model::{AgentName, Scope, StoredMessage};
use clew_store::{Backend, Kind, Record, Sqlite, WindowQuery};
use futures_util::future::join_all;

use super::turn;
use crate::store::build::receipt;

const ROOM: u32 = 2 << 20;

/// A user's turn in a channel of a server, or in direct messages.
fn said(guild: Option<u64>, channel: u64, user: u64, at: u64) -> Vec<StoredMessage> {
    let mut rows = turn(user, at, &"x".repeat(800));
    let (user, channel) = (UserId::new(user), ChannelId::new(channel));
    let guild = guild.map(GuildId::new);
    for row in &mut rows {
        row.guild = guild;
        row.channel = channel;
        row.scope = match guild {
            Some(guild) => Scope::Member {
                guild,
                channel,
                user,
            },
            None => Scope::Direct(user),
        };
    }
    rows
}

async fn all(store: &Sqlite, turns: impl IntoIterator<Item = Vec<StoredMessage>>) {
    let turns: Vec<_> = turns.into_iter().collect();
    for some in turns.chunks(50) {
        for appended in join_all(some.iter().map(|turn| store.append(turn))).await {
            appended.unwrap();
        }
    }
}

/// The turns of a conversation, oldest first, all complete.
async fn kept(store: &Sqlite, like: &[StoredMessage]) -> Vec<u64> {
    let query = WindowQuery {
        scope: like[0].scope,
        agent: AgentName::default_agent(),
        since: clew_context::model::UnixMillis(0),
        cleared: None,
        with_tools: true,
        limit: usize::MAX,
    };
    let rows = store.window(&query).await.unwrap();
    let turns = rows.chunk_by(|one, next| one.turn == next.turn);
    turns
        .map(|rows| {
            assert_eq!(rows.len(), 2, "a whole turn");
            rows[0].turn.0
        })
        .collect()
}

async fn bytes(store: &Sqlite) -> u64 {
    let stats = store.stats().await.unwrap();
    let of = stats.iter().find(|stats| stats.kind == Kind::Messages);
    of.unwrap().bytes
}

#[tokio::test]
async fn a_conversation_in_memory_loses_its_oldest_turns() {
    let store = Sqlite::in_memory_of(ROOM).unwrap();
    all(&store, (1..=3_000).map(|at| said(Some(1), 2, 3, at))).await;
    assert!(bytes(&store).await <= u64::from(ROOM));
    let kept = kept(&store, &said(Some(1), 2, 3, 1)).await;
    assert!(kept.len() > 400, "most of the room is used: {}", kept.len());
    let newest: Vec<u64> = (3_001 - kept.len() as u64..=3_000).collect();
    assert_eq!(kept, newest);
}

#[tokio::test]
async fn one_person_cannot_push_out_what_others_said_in_memory() {
    let store = Sqlite::in_memory_of(ROOM).unwrap();
    // First ten users of the same server, one of another, one in direct
    // messages.
    let mut others = Vec::new();
    let places = (10..20).map(|user| (Some(1), user));
    for (guild, user) in places.chain([(Some(9), 30), (None, 31)]) {
        others.push((user * 100..user * 100 + 3).map(move |at| said(guild, 7, user, at)));
    }
    for turns in others.clone() {
        all(&store, turns).await;
    }
    // Then one user talks in forty channels.
    let talk = |channel: u64| {
        let first = 100_000 + channel * 1_000;
        (first..first + 50).map(move |at| said(Some(1), channel, 3, at))
    };
    for channel in 1..=40 {
        all(&store, talk(channel)).await;
    }
    assert!(bytes(&store).await <= u64::from(ROOM));
    for turns in others {
        let turns: Vec<_> = turns.collect();
        let ids: Vec<u64> = turns.iter().map(|turn| turn[0].turn.0).collect();
        assert_eq!(kept(&store, &turns[0]).await, ids);
    }
    let of = async |channel| {
        let like = talk(channel).next().unwrap();
        kept(&store, &like).await.len()
    };
    assert_eq!(of(1).await, 0, "the oldest conversation went first");
    assert_eq!(of(40).await, 50, "the newest is whole");
}

/// 16 KiB that pack to half of it.
fn unlike(seed: u64) -> String {
    let mut number = seed;
    let digits = std::iter::repeat_with(|| {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{:x}", number >> 60)
    });
    digits.take(16 << 10).collect()
}

#[tokio::test]
async fn a_receipt_in_memory_counts_and_goes_with_its_turn() {
    let store = Sqlite::in_memory_of(ROOM).unwrap();
    let quiet: Vec<_> = (1..=20).map(|at| said(Some(1), 7, 5, at)).collect();
    all(&store, quiet.clone()).await;
    // Another one of the same server, whose receipts are long.
    for at in 100..=700 {
        let rows = said(Some(1), 8, 6, at);
        let mut receipt = receipt(rows[0].scope, at, rows[0].timestamp, &[]);
        receipt.body = unlike(at);
        store.append(&rows).await.unwrap();
        store.write(&[Record::Receipt(receipt)]).await.unwrap();
    }
    store.append(&said(Some(1), 8, 6, 701)).await.unwrap();
    let left = kept(&store, &said(Some(1), 8, 6, 1)).await;
    let receipts = store.records(Kind::Receipts, None, None, usize::MAX).await;
    let receipts = receipts.unwrap().records.len();
    assert_eq!(
        receipts + 1,
        left.len(),
        "each is one of a turn that is left"
    );
    assert!((50..250).contains(&receipts), "{receipts}");
    let expected: Vec<u64> = (1..=20).collect();
    assert_eq!(kept(&store, &quiet[0]).await, expected);
}

#[tokio::test]
async fn one_server_cannot_push_out_what_others_said_in_memory() {
    let store = Sqlite::in_memory_of(ROOM).unwrap();
    let quiet: Vec<_> = (1..=20).map(|at| said(Some(2), 7, 5, at)).collect();
    all(&store, quiet.clone()).await;
    let crowd = (0..3_000).map(|at| said(Some(1), 8, 1_000 + at % 300, 10_000 + at));
    all(&store, crowd).await;
    assert!(bytes(&store).await <= u64::from(ROOM));
    let expected: Vec<u64> = (1..=20).collect();
    assert_eq!(kept(&store, &quiet[0]).await, expected);
}
