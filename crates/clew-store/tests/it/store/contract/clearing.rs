//! Where conversations start: clear markers and agents' creation.

use clew_context::model::{GuildId, UnixMillis, UserId};
use clew_store::model::{ClearKey, Scope};
use clew_store::{Asker, Backend, WindowQuery};

use crate::store::build::{agent, all_of, at, default_agent, direct, guild, member, turn, user};
use crate::store::fixture::{Fixture, on_each_store};

on_each_store! {
    clear_advances_last_clear_time
    clear_excludes_messages_before_clear_time
    clear_does_not_delete_messages_from_db
    messages_after_clear_are_included
    multiple_clears_use_most_recent
    a_marker_for_everybody_applies_to_everybody
    markers_are_separate
    clear_time_survives_restart
    an_agent_is_created_once
}

fn own(guild: Option<GuildId>, user: UserId) -> ClearKey {
    ClearKey {
        agent: default_agent(),
        guild,
        user: Some(user),
    }
}

async fn cleared(store: &impl Backend, guild: Option<GuildId>, who: u64) -> Option<UnixMillis> {
    let agent = default_agent();
    store.cleared_at(&agent, guild, user(who)).await.unwrap()
}

/// Messages since the marker that applies, as a prompt's window asks for them.
async fn since_clear(store: &impl Backend, scope: Scope) -> Vec<u64> {
    let query = WindowQuery {
        cleared: Some(Asker {
            guild: Some(guild(1)),
            user: user(3),
        }),
        ..all_of(scope)
    };
    let rows = store.window(&query).await.unwrap();
    rows.iter().map(|row| row.message.unwrap().get()).collect()
}

async fn clear_advances_last_clear_time<F: Fixture>(place: &F) {
    let store = place.open().await;
    assert_eq!(cleared(&store, Some(guild(1)), 3).await, None);
    store
        .clear(&own(Some(guild(1)), user(3)), at(5))
        .await
        .unwrap();
    assert_eq!(cleared(&store, Some(guild(1)), 3).await, Some(at(5)));
    // Direct messages are separate from servers.
    store.clear(&own(None, user(3)), at(6)).await.unwrap();
    assert_eq!(cleared(&store, None, 3).await, Some(at(6)));
    assert_eq!(cleared(&store, Some(guild(1)), 3).await, Some(at(5)));
}

async fn clear_excludes_messages_before_clear_time<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    store.append(&turn(here, 10, at(0))).await.unwrap();
    store
        .clear(&own(Some(guild(1)), user(3)), at(100))
        .await
        .unwrap();
    assert_eq!(since_clear(&store, here).await, [0; 0]);
}

async fn clear_does_not_delete_messages_from_db<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    store.append(&turn(here, 10, at(0))).await.unwrap();
    store
        .clear(&own(Some(guild(1)), user(3)), at(100))
        .await
        .unwrap();
    assert_eq!(store.window(&all_of(here)).await.unwrap().len(), 2);
    let stats = store.conversation(here, at(100)).await.unwrap();
    assert_eq!(stats.message_count, 2);
}

async fn messages_after_clear_are_included<F: Fixture>(place: &F) {
    let store = place.open().await;
    let here = member(1, 2, 3);
    store.append(&turn(here, 10, at(0))).await.unwrap();
    store
        .clear(&own(Some(guild(1)), user(3)), at(100))
        .await
        .unwrap();
    store.append(&turn(here, 20, at(200))).await.unwrap();
    assert_eq!(since_clear(&store, here).await, [20, 21]);
}

async fn multiple_clears_use_most_recent<F: Fixture>(place: &F) {
    let store = place.open().await;
    let key = own(Some(guild(1)), user(3));
    for (when, expected) in [(50, 50), (100, 100), (70, 100), (100, 100)] {
        store.clear(&key, at(when)).await.unwrap();
        assert_eq!(cleared(&store, Some(guild(1)), 3).await, Some(at(expected)));
    }
}

async fn a_marker_for_everybody_applies_to_everybody<F: Fixture>(place: &F) {
    let store = place.open().await;
    let everybody = ClearKey {
        user: None,
        ..own(Some(guild(1)), user(3))
    };
    store
        .clear(&own(Some(guild(1)), user(3)), at(50))
        .await
        .unwrap();
    store.clear(&everybody, at(30)).await.unwrap();
    assert_eq!(cleared(&store, Some(guild(1)), 3).await, Some(at(50)));
    assert_eq!(cleared(&store, Some(guild(1)), 4).await, Some(at(30)));
    store.clear(&everybody, at(60)).await.unwrap();
    assert_eq!(cleared(&store, Some(guild(1)), 3).await, Some(at(60)));
    assert_eq!(cleared(&store, Some(guild(2)), 3).await, None);
}

async fn markers_are_separate<F: Fixture>(place: &F) {
    let store = place.open().await;
    store
        .clear(&own(Some(guild(1)), user(3)), at(50))
        .await
        .unwrap();
    for (guild, who) in [(Some(guild(1)), 4), (Some(guild(2)), 3), (None, 3)] {
        assert_eq!(cleared(&store, guild, who).await, None, "{guild:?} {who}");
    }
    let other = agent("other");
    let seen = store.cleared_at(&other, Some(guild(1)), user(3)).await;
    if let Ok(seen) = seen {
        assert_eq!(seen, None);
    }
}

async fn clear_time_survives_restart<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.append(&turn(direct(3), 10, at(0))).await.unwrap();
    store.clear(&own(None, user(3)), at(50)).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    let store = place.open().await;
    assert_eq!(cleared(&store, None, 3).await, Some(at(50)));
    // And it still raises later turns' times.
    store.append(&turn(direct(3), 20, at(10))).await.unwrap();
    let query = WindowQuery {
        since: at(50),
        cleared: None,
        ..all_of(direct(3))
    };
    assert_eq!(store.window(&query).await.unwrap().len(), 2);
}

async fn an_agent_is_created_once<F: Fixture>(place: &F) {
    let store = place.open().await;
    let default = default_agent();
    assert_eq!(store.agent_created(&default, at(5)).await.unwrap(), at(5));
    assert_eq!(store.agent_created(&default, at(9)).await.unwrap(), at(5));
    assert_eq!(store.agent_created(&default, at(1)).await.unwrap(), at(5));
    if F::IS_DATABASE {
        let other = agent("other");
        assert_eq!(store.agent_created(&other, at(9)).await.unwrap(), at(9));
    }
}
