//! Entries as values: reading all, writing them elsewhere, counting.

use clew_context::model::UserId;
use clew_store::{Backend, Kind, KindStats, Record, Records};

use crate::store::build::user;
use crate::store::fixture::{Fixture, on_each_store};
use crate::store::world::{owner, world};

on_each_store! {
    a_copy_is_equal
    records_of_one_user_are_theirs
    pages_hold_each_entry_once
    writing_again_changes_nothing
    statistics_count_what_is_there
    a_vacuum_changes_nothing
}

/// All entries of a kind, read in pages of this size.
async fn pages(
    store: &impl Backend,
    kind: Kind,
    owner: Option<UserId>,
    limit: usize,
) -> Vec<Record> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store
            .records(kind, owner, after.as_ref(), limit)
            .await
            .unwrap();
        assert!(page.records.len() <= limit);
        assert!(page.records.iter().all(|record| record.kind() == kind));
        all.extend(page.records);
        match page.next {
            Some(next) => after = Some(next),
            None => return all,
        }
    }
}

/// Everything that a store holds, in a fixed order.
pub(in crate::store) async fn everything(store: &impl Backend) -> Vec<Record> {
    let mut all = Vec::new();
    for kind in Kind::ALL {
        all.extend(pages(store, kind, None, 100).await);
    }
    sorted(all)
}

pub(in crate::store) fn sorted(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_cached_key(|record| format!("{record:?}"));
    records
}

async fn a_copy_is_equal<F: Fixture>(place: &F) {
    let store = place.open().await;
    let world = world::<F>("");
    store.write(&world).await.unwrap();
    let kept = everything(&store).await;
    assert_eq!(kept, sorted(world));
    let copy = F::fresh().await;
    let copy = copy.open().await;
    copy.write(&kept).await.unwrap();
    assert_eq!(everything(&copy).await, kept);
}

async fn records_of_one_user_are_theirs<F: Fixture>(place: &F) {
    let store = place.open().await;
    let world = world::<F>("");
    store.write(&world).await.unwrap();
    for id in [11, 12, 13] {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            found.extend(pages(&store, kind, Some(user(id)), 3).await);
        }
        let theirs = world
            .iter()
            .filter(|record| owner(record).contains(&user(id)));
        assert_eq!(sorted(found), sorted(theirs.cloned().collect()), "{id}");
    }
}

async fn pages_hold_each_entry_once<F: Fixture>(place: &F) {
    let store = place.open().await;
    store.write(&world::<F>("")).await.unwrap();
    for kind in Kind::ALL {
        let whole = pages(&store, kind, None, 1_000).await;
        for limit in [1, 2, 5] {
            assert_eq!(pages(&store, kind, None, limit).await, whole, "{kind:?}");
        }
        let none = store.records(kind, None, None, 0).await.unwrap();
        assert_eq!(none, Records::default(), "{kind:?}");
    }
}

async fn writing_again_changes_nothing<F: Fixture>(place: &F) {
    let store = place.open().await;
    let world = world::<F>("");
    store.write(&world).await.unwrap();
    store.write(&world).await.unwrap();
    assert_eq!(everything(&store).await, sorted(world));
    store.write(&[]).await.unwrap();
}

async fn statistics_count_what_is_there<F: Fixture>(place: &F) {
    let store = place.open().await;
    let count = async || {
        let stats = store.stats().await.unwrap();
        let mut kinds: Vec<_> = stats.iter().map(|stats| stats.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), stats.len(), "a kind once");
        stats
    };
    assert!(
        count()
            .await
            .iter()
            .all(|stats| *stats == KindStats::none(stats.kind))
    );
    let world = world::<F>("");
    store.write(&world).await.unwrap();
    let stats = count().await;
    for kind in Kind::ALL {
        let expected = world.iter().filter(|record| record.kind() == kind).count() as u64;
        let found = stats.iter().find(|stats| stats.kind == kind);
        assert_eq!(found.map_or(0, |stats| stats.entries), expected, "{kind:?}");
        let of_kind = world.iter().filter(|record| record.kind() == kind);
        let times: Vec<_> = of_kind.filter_map(Record::at).collect();
        let ages = found.map(|stats| (stats.oldest, stats.newest));
        let expected = (times.iter().min().copied(), times.iter().max().copied());
        assert_eq!(ages.unwrap_or_default(), expected, "{kind:?}");
        let holds_text = matches!(kind, Kind::Messages | Kind::UserFacts | Kind::ServerFacts);
        if holds_text {
            assert!(found.unwrap().bytes > 0, "{kind:?}");
        }
    }
    let sizes = store.sizes().await.unwrap();
    assert!(sizes.iter().any(|size| size.bytes > 0), "{sizes:?}");
}

async fn a_vacuum_changes_nothing<F: Fixture>(place: &F) {
    let store = place.open().await;
    let world = world::<F>("");
    store.write(&world).await.unwrap();
    store.vacuum().await.unwrap();
    assert_eq!(everything(&store).await, sorted(world));
    assert_eq!(store.sweep(crate::store::build::at(10)).await.unwrap(), 0);
}
