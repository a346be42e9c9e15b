//! A purge removes what it covers from every kind, and nothing else.

use clew_context::model::{ContentSource, UnixMillis};
use clew_store::model::{Fact, Origin, Scope, StoredMessage, StoredReceipt, StoredRole, Subject};
use clew_store::{
    Backend, Kind, Purge, Record, SUMMARY_REMOVED, SnapshotFiles, with_edit, without,
};

use super::copying::{everything, sorted};
use crate::store::build::{at, channel, guild, member, message, snapshot, turn, user};
use crate::store::fixture::{Fixture, needs_database, on_each_store};
use crate::store::world::{FIRST_AGE, world};

on_each_store! {
    a_purge_of_a_user_removes_all_that_is_theirs
    a_purge_of_a_member_removes_what_is_theirs_from_that_server
    a_purge_of_a_server_removes_all_of_it
    a_purge_of_a_channel_removes_what_was_in_it
    a_purge_of_a_trigger_removes_its_turn
    a_purge_of_an_answer_leaves_the_question
    a_purge_of_a_part_removes_the_answer
    a_purge_of_a_linked_message_removes_the_fact
    an_edit_of_a_linked_message_removes_what_was_learnt_before
    a_change_of_a_snapshot_that_broke_off_is_finished
    a_purge_by_age_removes_only_what_is_older
    a_purge_of_nothing_removes_nothing
}

/// What a purge leaves of an entry, as [`Purge`] defines it.
fn left(purge: &Purge, record: &Record) -> Option<Record> {
    let goes = match record {
        Record::Message(row) => goes(purge, row),
        Record::Marker(key, _) => match purge {
            Purge::Guild(guild) => key.guild == Some(*guild),
            Purge::Member { guild, user } => key.guild == Some(*guild) && key.user == Some(*user),
            Purge::User(user) => key.user == Some(*user),
            Purge::Messages { .. }
            | Purge::Edited { .. }
            | Purge::Channel(_)
            | Purge::Before(_) => false,
        },
        Record::Snapshot(snapshot) => {
            let whole = match purge {
                Purge::Guild(guild) => snapshot.info.guild == Some(*guild),
                Purge::Member { guild, user } => {
                    snapshot.info.guild == Some(*guild) && snapshot.info.owner == *user
                }
                Purge::User(user) => snapshot.info.owner == *user,
                Purge::Before(time) => snapshot.info.timestamp < *time,
                Purge::Messages { .. } | Purge::Edited { .. } | Purge::Channel(_) => false,
            };
            if whole {
                return None;
            }
            return without(snapshot, |row| goes(purge, row)).map(Record::Snapshot);
        }
        Record::Receipt(receipt) => receipt_goes(purge, receipt),
        Record::Fact(fact) => fact_goes(purge, fact),
        Record::Settings(of, _) | Record::Departure(of, _) => *purge == Purge::Guild(*of),
        Record::OptOut(..) | Record::Agent(..) => false,
    };
    (!goes).then(|| record.clone())
}

fn goes(purge: &Purge, row: &StoredMessage) -> bool {
    let mut sources = row.sources.iter();
    sources.any(|source| is_made_from(purge, source, row)) || itself_goes(purge, row)
}

fn is_made_from(purge: &Purge, source: &ContentSource, row: &StoredMessage) -> bool {
    let is_in = |channel| source.channel == channel;
    match purge {
        Purge::Messages { channel, ids } => {
            is_in(*channel) && source.message.is_some_and(|id| ids.contains(&id))
        }
        Purge::Edited {
            channel,
            message,
            at,
        } => is_in(*channel) && source.message == Some(*message) && row.timestamp < *at,
        Purge::Channel(channel) => is_in(*channel),
        Purge::Guild(guild) => source.guild == Some(*guild),
        Purge::Member { guild, user } => {
            source.guild == Some(*guild) && source.author == Some(*user)
        }
        Purge::User(user) => source.author == Some(*user),
        Purge::Before(_) => false,
    }
}

fn itself_goes(purge: &Purge, row: &StoredMessage) -> bool {
    match purge {
        Purge::Edited { .. } => false,
        // The world's turns: trigger `n`, answer `n + 1`, part `n + 2`.
        Purge::Messages { channel, ids } => {
            let trigger = message(row.turn.0);
            let its = row.message.iter().chain(&row.parts);
            let named = its.chain([&trigger]).any(|id| ids.contains(id));
            named && row.channel == *channel
        }
        Purge::Channel(channel) => row.channel == *channel,
        Purge::Guild(guild) => row.guild == Some(*guild),
        Purge::Member { guild, user } => row.guild == Some(*guild) && row.owner == *user,
        Purge::User(user) => row.owner == *user,
        Purge::Before(time) => row.timestamp < *time,
    }
}

fn receipt_goes(purge: &Purge, receipt: &StoredReceipt) -> bool {
    let mut people = receipt.people.iter();
    match purge {
        Purge::Messages { channel, ids } => {
            // As in `itself_goes`.
            let trigger = receipt.turn.0;
            let mut its = (trigger..=trigger + 2).map(message);
            receipt.channel == *channel && its.any(|id| ids.contains(&id))
        }
        Purge::Edited { .. } => false,
        Purge::Channel(channel) => receipt.channel == *channel,
        Purge::Guild(guild) => {
            receipt.guild == Some(*guild) || people.any(|one| one.guild == Some(*guild))
        }
        Purge::Member { guild, user } => receipt.guild == Some(*guild) && receipt.owner == *user,
        Purge::User(user) => receipt.owner == *user || people.any(|one| one.author == Some(*user)),
        Purge::Before(time) => receipt.at < *time,
    }
}

fn fact_goes(purge: &Purge, fact: &Fact) -> bool {
    let concerns = |user| fact.subject == Subject::User(user) || fact.by == user;
    let is_from =
        |guild| fact.origin == Origin::Guild(guild) || fact.subject == Subject::Server(guild);
    match purge {
        Purge::Messages { channel, ids } => {
            let linked = |(place, id)| place == *channel && ids.contains(&id);
            fact.link.is_some_and(linked)
        }
        Purge::Edited {
            channel,
            message,
            at,
        } => fact.link == Some((*channel, *message)) && fact.at < *at,
        Purge::Channel(channel) => fact.link.is_some_and(|(place, _)| place == *channel),
        Purge::Guild(guild) => is_from(*guild),
        Purge::Member { guild, user } => is_from(*guild) && concerns(*user),
        Purge::User(user) => concerns(*user),
        Purge::Before(time) => fact.at < *time,
    }
}

/// Purges a world and checks what is left and what is reported as removed. At
/// least `kinds` must lose something, so that no check is vacuous.
async fn check<F: Fixture>(place: &F, purge: Purge, kinds: &[Kind]) {
    let store = place.open().await;
    let world = world::<F>("");
    store.write(&world).await.unwrap();
    let rest: Vec<Record> = world
        .iter()
        .filter_map(|record| left(&purge, record))
        .collect();
    let purged = store.purge(&purge).await.unwrap();
    let found = everything(&store).await;
    assert_eq!(found, sorted(rest.clone()), "{purge:?}");
    for kind in Kind::ALL {
        let count = |records: &[Record]| {
            records
                .iter()
                .filter(|record| record.kind() == kind)
                .count() as u64
        };
        let said = purged.iter().find(|(of, _)| *of == kind);
        let gone = count(&world) - count(&rest);
        // A rewritten snapshot may be counted or not.
        if kind == Kind::Snapshots {
            assert!(said.map_or(0, |(_, gone)| gone) >= gone, "{purge:?}");
        } else {
            assert_eq!(said.map_or(0, |(_, gone)| gone), gone, "{kind:?} {purge:?}");
        }
        let lost = gone > 0 || (kind == Kind::Snapshots && changed(&world, &rest));
        let can = F::IS_DATABASE || kind != Kind::Snapshots;
        assert!(lost || !kinds.contains(&kind) || !can, "{kind:?} {purge:?}");
    }
    assert_eq!(
        store.purge(&purge).await.unwrap().total(),
        0,
        "nothing is left to go"
    );
    store.close().await.unwrap();
    drop(store);
    let again = place.open().await;
    assert_eq!(everything(&again).await, found);
}

fn changed(world: &[Record], rest: &[Record]) -> bool {
    let is_marked = |record: &&Record| match record {
        Record::Snapshot(snapshot) => snapshot.info.summary == SUMMARY_REMOVED,
        _ => false,
    };
    rest.iter().filter(is_marked).count() > world.iter().filter(is_marked).count()
}

const ROWS_AND_COPIES: [Kind; 2] = [Kind::Messages, Kind::Snapshots];

async fn a_purge_of_a_user_removes_all_that_is_theirs<F: Fixture>(place: &F) {
    let kinds = [
        Kind::Messages,
        Kind::Markers,
        Kind::Snapshots,
        Kind::UserFacts,
        Kind::ServerFacts,
    ];
    check(place, Purge::User(user(11)), &kinds).await;
}

async fn a_purge_of_a_member_removes_what_is_theirs_from_that_server<F: Fixture>(place: &F) {
    let kinds = [
        Kind::Messages,
        Kind::Markers,
        Kind::Snapshots,
        Kind::UserFacts,
        Kind::ServerFacts,
    ];
    let purge = Purge::Member {
        guild: guild(1),
        user: user(11),
    };
    check(place, purge, &kinds).await;
}

async fn a_purge_of_a_server_removes_all_of_it<F: Fixture>(place: &F) {
    let kinds = [
        Kind::Messages,
        Kind::Markers,
        Kind::Snapshots,
        Kind::UserFacts,
        Kind::ServerFacts,
        Kind::Settings,
        Kind::Departures,
    ];
    check(place, Purge::Guild(guild(1)), &kinds).await;
}

async fn a_purge_of_a_channel_removes_what_was_in_it<F: Fixture>(place: &F) {
    let kinds = [
        Kind::Messages,
        Kind::Snapshots,
        Kind::UserFacts,
        Kind::ServerFacts,
    ];
    check(place, Purge::Channel(channel(101)), &kinds).await;
    let direct = crate::store::build::direct_channel(user(11));
    check(&F::fresh().await, Purge::Channel(direct), &ROWS_AND_COPIES).await;
}

/// A message of user 11's first turn in channel 101.
fn first_turn<F: Fixture>(role: StoredRole) -> StoredMessage {
    let scope = Scope::Member {
        guild: guild(1),
        channel: channel(101),
        user: user(11),
    };
    let rows = world::<F>("")
        .into_iter()
        .filter_map(|record| match record {
            Record::Message(row) => Some(row),
            _ => None,
        });
    let mut rows = rows.filter(|row| row.scope == scope && row.role == role);
    rows.next().unwrap()
}

fn of(ids: Vec<clew_context::model::MessageId>) -> Purge {
    let channel = channel(101);
    Purge::Messages { channel, ids }
}

async fn a_purge_of_a_trigger_removes_its_turn<F: Fixture>(place: &F) {
    let trigger = first_turn::<F>(StoredRole::User).message.unwrap();
    check(place, of(vec![trigger]), &ROWS_AND_COPIES).await;
}

async fn a_purge_of_an_answer_leaves_the_question<F: Fixture>(place: &F) {
    let answer = first_turn::<F>(StoredRole::Assistant).message.unwrap();
    check(place, of(vec![answer, message(99_999)]), &ROWS_AND_COPIES).await;
}

async fn a_purge_of_a_part_removes_the_answer<F: Fixture>(place: &F) {
    let part = first_turn::<F>(StoredRole::Assistant).parts[0];
    check(place, of(vec![part]), &ROWS_AND_COPIES).await;
}

async fn a_purge_of_a_linked_message_removes_the_fact<F: Fixture>(place: &F) {
    let kinds = [Kind::UserFacts, Kind::ServerFacts];
    check(place, of(vec![message(5_001), message(5_002)]), &kinds).await;
}

async fn an_edit_of_a_linked_message_removes_what_was_learnt_before<F: Fixture>(place: &F) {
    let facts = world::<F>("")
        .into_iter()
        .filter_map(|record| match record {
            Record::Fact(fact) => Some(fact),
            _ => None,
        });
    let mut linked = facts.filter(|fact| matches!(fact.subject, Subject::User(_)));
    let fact = linked.find(|fact| fact.link.is_some()).unwrap();
    let (channel, message) = fact.link.unwrap();
    let edited = |at| Purge::Edited {
        channel,
        message,
        at,
    };
    check(&F::fresh().await, edited(fact.at), &[]).await;
    let after = edited(UnixMillis(fact.at.0 + 1));
    check(place, after, &[Kind::UserFacts]).await;
}

/// A kill after its file was replaced, before its row was.
async fn a_change_of_a_snapshot_that_broke_off_is_finished<F: Fixture>(place: &F) {
    let store = place.open().await;
    let files = SnapshotFiles::new(place.ground().agents());
    let mut rows = turn(member(1, 2, 3), 10, at(0));
    rows.extend(turn(member(1, 2, 3), 20, at(1)));
    let saved = snapshot(1, rows, at(5));
    let is_of_turn = |row: &StoredMessage| row.turn.0 == 10;
    let less = without(&saved, is_of_turn).unwrap();
    let edited = with_edit(&saved, channel(2), message(10), "edited").unwrap();
    for rest in [less, edited] {
        if needs_database::<F, _>(store.save_snapshot(&saved).await).is_none() {
            return;
        }
        files.write(&rest).unwrap();
        if rest.messages.len() == saved.messages.len() {
            let again = store.edit_message(channel(2), message(10), "edited");
            again.await.unwrap();
        } else {
            let (channel, ids) = (channel(2), vec![message(10)]);
            let purge = Purge::Messages { channel, ids };
            store.purge(&purge).await.unwrap();
        }
        let infos = store.snapshots(user(3), Some(guild(1)), None, 9).await;
        assert_eq!(infos.unwrap(), std::slice::from_ref(&rest.info));
        let back = store.snapshot(user(3), &rest.info.id).await.unwrap();
        assert_eq!(back, Some(rest));
    }
}

async fn a_purge_by_age_removes_only_what_is_older<F: Fixture>(place: &F) {
    let kinds = [Kind::Messages, Kind::Snapshots, Kind::UserFacts];
    check(place, Purge::Before(at(FIRST_AGE)), &kinds).await;
}

async fn a_purge_of_nothing_removes_nothing<F: Fixture>(place: &F) {
    let nobody = user(9_999);
    for purge in [
        of(vec![]),
        of(vec![message(99_999)]),
        Purge::Channel(channel(9_999)),
        Purge::Guild(guild(9_999)),
        Purge::User(nobody),
        Purge::Member {
            guild: guild(1),
            user: nobody,
        },
        Purge::Before(at(-1_000_000)),
    ] {
        check(&F::fresh().await, purge, &[]).await;
    }
    drop(place.open().await);
}
