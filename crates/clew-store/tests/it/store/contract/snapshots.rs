//! Saved windows: their files and their rows.

use std::fs;
use std::path::PathBuf;

use clew_context::model::GuildId;
use clew_store::Backend;
use clew_store::model::{AgentName, ContextSnapshot};

use crate::store::build::{
    agent, all_of, at, default_agent, direct, guild, member, of_agent, snapshot, snapshot_id, turn,
    user, with_tools,
};
use crate::store::fixture::{Fixture, needs_database, on_each_store};

on_each_store! {
    save_creates_session_json_file
    save_stores_metadata_in_sqlite
    save_with_custom_description
    save_does_not_clear_context
    restore_loads_saved_messages
    restore_nonexistent_id_raises
    list_sessions_returns_all_snapshots
    list_sessions_ordered_by_timestamp_desc
    a_snapshot_is_its_owners_alone
}

/// Saves it, unless the store does not support snapshots.
async fn saved<F: Fixture>(store: &F::Store, snapshot: &ContextSnapshot) -> bool {
    needs_database::<F, _>(store.save_snapshot(snapshot).await).is_some()
}

async fn listed(
    store: &impl Backend,
    guild: Option<GuildId>,
    agent: Option<&AgentName>,
    limit: usize,
) -> Vec<String> {
    let infos = store.snapshots(user(3), guild, agent, limit).await.unwrap();
    infos.into_iter().map(|info| info.summary).collect()
}

async fn save_creates_session_json_file<F: Fixture>(place: &F) {
    let store = place.open().await;
    // 2026-02-12T14:30:00Z
    let when = clew_context::model::UnixMillis(1_770_906_600_000);
    let one = snapshot(1, turn(member(1, 2, 3), 10, at(0)), when);
    if !saved::<F>(&store, &one).await {
        return;
    }
    let sessions: PathBuf = place.ground().agents().join("default/sessions");
    let files: Vec<_> = fs::read_dir(sessions)
        .unwrap()
        .map(|file| file.unwrap())
        .collect();
    assert_eq!(files.len(), 1);
    let name = files[0].file_name().into_string().unwrap();
    let expected = "20260212T143000Z_00000000-0000-4000-8000-000000000001.json";
    assert_eq!(name, expected);
    let text = fs::read_to_string(files[0].path()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["session_id"], "00000000-0000-4000-8000-000000000001");
    assert_eq!(json["description"], "description 1");
    assert_eq!(json["summary"], "summary 1");
    assert_eq!(json["message_count"], 2);
    assert_eq!(json["messages"].as_array().unwrap().len(), 2);
    for field in ["timestamp", "window_start", "window_end"] {
        assert!(json[field].is_string(), "{field}");
    }
}

async fn save_stores_metadata_in_sqlite<F: Fixture>(place: &F) {
    let store = place.open().await;
    let one = snapshot(1, turn(member(1, 2, 3), 10, at(0)), at(5));
    if saved::<F>(&store, &one).await {
        let infos = store.snapshots(user(3), Some(guild(1)), None, 50).await;
        assert_eq!(infos.unwrap(), [one.info]);
    } else {
        let listed = store.snapshots(user(3), Some(guild(1)), None, 50).await;
        needs_database::<F, _>(listed);
        needs_database::<F, _>(store.snapshot(user(3), &snapshot_id(1)).await);
    }
}

async fn save_with_custom_description<F: Fixture>(place: &F) {
    let store = place.open().await;
    let descriptions = [
        None,
        Some(String::new()),
        Some("Auth \"refactor\"\n🦀".to_owned()),
    ];
    for (number, description) in (1..).zip(descriptions) {
        let mut one = snapshot(number, turn(member(1, 2, 3), 10, at(0)), at(5));
        one.info.description = description;
        if saved::<F>(&store, &one).await {
            let back = store.snapshot(user(3), &one.info.id).await.unwrap();
            assert_eq!(back, Some(one));
        }
    }
}

async fn save_does_not_clear_context<F: Fixture>(place: &F) {
    let store = place.open().await;
    let one = turn(member(1, 2, 3), 10, at(0));
    store.append(&one).await.unwrap();
    saved::<F>(&store, &snapshot(1, one.clone(), at(5))).await;
    let window = store.window(&all_of(member(1, 2, 3))).await.unwrap();
    assert_eq!(window.len(), 2);
    let agent = default_agent();
    let cleared = store.cleared_at(&agent, Some(guild(1)), user(3)).await;
    assert_eq!(cleared.unwrap(), None);
}

async fn restore_loads_saved_messages<F: Fixture>(place: &F) {
    let store = place.open().await;
    let mut messages = with_tools(turn(member(1, 2, 3), 10, at(0)));
    messages.extend(turn(member(1, 5, 3), 20, at(10)));
    messages[0].content = "ä🦀".repeat(10_000);
    let mut one = snapshot(1, messages, at(50));
    if !saved::<F>(&store, &one).await {
        return;
    }
    let id = one.info.id.clone();
    let back = store.snapshot(user(3), &id).await.unwrap();
    assert_eq!(back.as_ref(), Some(&one));
    // Saving it again replaces it.
    one.info.summary = String::from("another");
    one.messages.truncate(4);
    one.info.message_count = 4;
    assert!(saved::<F>(&store, &one).await);
    assert_eq!(store.snapshot(user(3), &id).await.unwrap(), Some(one));
    assert_eq!(listed(&store, Some(guild(1)), None, 50).await, ["another"]);
}

async fn restore_nonexistent_id_raises<F: Fixture>(place: &F) {
    let store = place.open().await;
    let found = store.snapshot(user(3), &snapshot_id(9)).await;
    assert_eq!(needs_database::<F, _>(found).flatten(), None);
}

async fn list_sessions_returns_all_snapshots<F: Fixture>(place: &F) {
    let store = place.open().await;
    let other = agent("other");
    let here = turn(member(1, 2, 3), 10, at(0));
    let there = turn(member(2, 2, 3), 20, at(0));
    let direct = turn(direct(3), 30, at(0));
    let others = of_agent(here.clone(), &other);
    for (number, rows) in (1..).zip([here, others, there, direct]) {
        let when = at(i64::try_from(number).unwrap());
        if !saved::<F>(&store, &snapshot(number, rows, when)).await {
            return;
        }
    }
    let (here, there) = (Some(guild(1)), Some(guild(2)));
    let default = default_agent();
    assert_eq!(
        listed(&store, here, None, 50).await,
        ["summary 2", "summary 1"]
    );
    assert_eq!(
        listed(&store, here, Some(&default), 50).await,
        ["summary 1"]
    );
    assert_eq!(listed(&store, here, Some(&other), 50).await, ["summary 2"]);
    assert_eq!(listed(&store, there, None, 50).await, ["summary 3"]);
    assert_eq!(listed(&store, None, None, 50).await, ["summary 4"]);
}

async fn list_sessions_ordered_by_timestamp_desc<F: Fixture>(place: &F) {
    let store = place.open().await;
    // Saved out of order, and more than are listed.
    for number in (1..=60).map(|number| number * 37 % 61) {
        let when = at(i64::try_from(number).unwrap() * 1_000);
        let one = snapshot(number, turn(member(1, 2, 3), 10, at(0)), when);
        if !saved::<F>(&store, &one).await {
            return;
        }
    }
    let newest = |count: u64| (0..count).map(|back| format!("summary {}", 60 - back));
    let here = Some(guild(1));
    assert!(
        listed(&store, here, None, 50)
            .await
            .into_iter()
            .eq(newest(50))
    );
    assert!(
        listed(&store, here, None, 1)
            .await
            .into_iter()
            .eq(newest(1))
    );
    assert!(
        listed(&store, here, None, 1_000)
            .await
            .into_iter()
            .eq(newest(60))
    );
}

async fn a_snapshot_is_its_owners_alone<F: Fixture>(place: &F) {
    let store = place.open().await;
    let one = snapshot(1, turn(member(1, 2, 3), 10, at(0)), at(5));
    if saved::<F>(&store, &one).await {
        assert_eq!(store.snapshot(user(4), &one.info.id).await.unwrap(), None);
        let theirs = store.snapshots(user(4), Some(guild(1)), None, 50).await;
        assert_eq!(theirs.unwrap(), []);
    }
}
