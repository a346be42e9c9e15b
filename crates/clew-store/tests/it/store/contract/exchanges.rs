//! Questions and answers of a conversation by their turns, whatever their age.

use clew_context::model::TurnId;
use clew_store::model::{Scope, StoredMessage};
use clew_store::{Backend, ExchangeQuery, Exchanges};

use crate::store::build::{agent, at, default_agent, member, of_agent, texts, turn, with_tools};
use crate::store::fixture::{Fixture, needs_database, on_each_store};

on_each_store! {
    they_are_read_from_the_newest_down
    later_ones_are_read_from_the_oldest_up
    turns_are_read_by_their_ids
    other_conversations_and_agents_are_not_read
    rows_of_tools_are_not_read
}

const HERE: Scope = Scope::Member {
    guild: clew_context::model::GuildId::new(1),
    channel: clew_context::model::ChannelId::new(2),
    user: clew_context::model::UserId::new(3),
};

fn of_turns(turns: &[u64]) -> Exchanges {
    Exchanges::Turns(turns.iter().map(|turn| TurnId(*turn)).collect())
}

async fn read(store: &impl Backend, which: Exchanges, limit: usize) -> Vec<StoredMessage> {
    let query = ExchangeQuery {
        scope: HERE,
        agent: default_agent(),
        which,
        limit,
    };
    store.exchanges(&query).await.unwrap()
}

/// Turns 10, 20, 30 and 40, with ordinals from 1.
async fn four_turns(store: &impl Backend) {
    for number in 1..=4 {
        let when = at(i64::try_from(number).unwrap() * 10);
        store.append(&turn(HERE, number * 10, when)).await.unwrap();
    }
}

async fn they_are_read_from_the_newest_down<F: Fixture>(place: &F) {
    let store = place.open().await;
    four_turns(&store).await;
    let newest = read(&store, Exchanges::Below(u64::MAX), 3).await;
    assert_eq!(texts(&newest), ["answer 30", "question 40", "answer 40"]);
    let earlier = read(&store, Exchanges::Below(3), 3).await;
    assert_eq!(texts(&earlier), ["answer 10", "question 20", "answer 20"]);
    assert_eq!(read(&store, Exchanges::Below(1), 3).await, []);
}

async fn later_ones_are_read_from_the_oldest_up<F: Fixture>(place: &F) {
    let store = place.open().await;
    four_turns(&store).await;
    let later = read(&store, Exchanges::Above(2), 3).await;
    assert_eq!(texts(&later), ["question 30", "answer 30", "question 40"]);
    assert_eq!(read(&store, Exchanges::Above(4), 3).await, []);
    assert_eq!(read(&store, Exchanges::Above(u64::MAX), 3).await, []);
}

async fn turns_are_read_by_their_ids<F: Fixture>(place: &F) {
    let store = place.open().await;
    four_turns(&store).await;
    let found = read(&store, of_turns(&[30, 10, 50]), 9).await;
    let expected = ["question 10", "answer 10", "question 30", "answer 30"];
    assert_eq!(texts(&found), expected);
    assert_eq!(read(&store, of_turns(&[]), 9).await, []);
}

async fn other_conversations_and_agents_are_not_read<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(HERE, 10, at(0))).await.unwrap();
    let theirs = member(1, 2, 4);
    store.append(&turn(theirs, 20, at(1))).await.unwrap();
    let elsewhere = member(1, 5, 3);
    store.append(&turn(elsewhere, 30, at(2))).await.unwrap();
    let others = of_agent(turn(HERE, 40, at(3)), &agent("other"));
    needs_database::<F, _>(store.append(&others).await);
    for which in [
        Exchanges::Below(u64::MAX),
        Exchanges::Above(0),
        of_turns(&[10, 20, 30, 40]),
    ] {
        let found = read(&store, which, 9).await;
        assert_eq!(texts(&found), ["question 10", "answer 10"]);
    }
}

async fn rows_of_tools_are_not_read<F: Fixture>(place: &F) {
    let store = place.open().await;
    let called = with_tools(turn(HERE, 10, at(0)));
    if needs_database::<F, _>(store.append(&called).await).is_some() {
        let found = read(&store, of_turns(&[10]), 2).await;
        assert_eq!(texts(&found), ["question 10", "answer 10"]);
    }
}
