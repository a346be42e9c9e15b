//! A small world with entries of every kind, of three users in two servers and
//! their direct messages.

use std::collections::BTreeSet;
use std::time::Duration;

use clew_context::model::{ContentSource, UserId};
use clew_store::model::{
    ClearKey, Fact, GuildSettings, Origin, Scope, StoredMessage, StoredReceipt, StoredRole, Subject,
};
use clew_store::{Kind, Record};

use super::build::{
    agent, at, channel, default_agent, direct, guild, made_from, member, message, of_agent,
    receipt, server_fact, snapshot, thread, turn, user, user_fact, with_tools,
};
use super::fixture::Fixture;

/// Milliseconds after the start; the world's first age is older than that.
pub(super) const FIRST_AGE: i64 = 1_000;

/// All entries that this kind of store can hold. Every text ends with the
/// marker.
pub(super) fn world<F: Fixture>(marker: &str) -> Vec<Record> {
    let all = Kind::ALL.into_iter().flat_map(|kind| planted(kind, marker));
    all.filter(|record| F::IS_DATABASE || files_hold(record))
        .collect()
}

/// Entries of one kind. A new kind has to be planted here too.
pub(super) fn planted(kind: Kind, marker: &str) -> Vec<Record> {
    match kind {
        Kind::Messages => {
            let mut rows = turns();
            for row in &mut rows {
                mark(row, marker);
            }
            rows.into_iter().map(Record::Message).collect()
        }
        Kind::Markers => markers(),
        Kind::Snapshots => snapshots(marker),
        Kind::Receipts => receipts(),
        Kind::UserFacts => user_facts(marker),
        Kind::ServerFacts => server_facts(marker),
        Kind::OptOuts => vec![
            Record::OptOut(user(11), at(1)),
            Record::OptOut(user(13), at(2)),
        ],
        Kind::Settings => (1..=2)
            .map(|id| {
                let settings = GuildSettings {
                    rolling_window: Some(Duration::from_secs(id)),
                    channels_off: [channel(101)].into(),
                    ..GuildSettings::default()
                };
                Record::Settings(guild(id), settings)
            })
            .collect(),
        Kind::Agents => vec![
            Record::Agent(default_agent(), at(1)),
            Record::Agent(agent("other"), at(2)),
        ],
        Kind::Departures => vec![
            Record::Departure(guild(1), at(1)),
            Record::Departure(guild(2), at(2)),
        ],
        // Files outside of any store, so no entries.
        Kind::Transcripts | Kind::Outputs => vec![],
    }
}

fn mark(row: &mut StoredMessage, marker: &str) {
    row.content.push_str(marker);
    if let Some(name) = &mut row.author_name {
        name.push_str(marker);
    }
}

/// Turns of both ages, in every kind of scope.
fn turns() -> Vec<StoredMessage> {
    let mut places = Vec::new();
    for id in [11, 12, 13] {
        places.extend([
            member(1, 101, id),
            member(1, 102, id),
            member(2, 201, id),
            direct(id),
        ]);
    }
    places.extend([thread(1, 102), thread(2, 201), Scope::User(user(11))]);
    let mut rows = Vec::new();
    for (number, place) in (1..).zip(places) {
        for age in [0, 1] {
            let when = at(i64::try_from(age).unwrap() * FIRST_AGE + 10);
            let mut one = turn(place, number * 100 + age * 10, when);
            if let Scope::Thread { .. } = place {
                let asker = user(11 + age);
                one = with_tools(one);
                for row in &mut one {
                    row.owner = asker;
                }
            }
            for row in &mut one {
                row.ordinal = age + 1;
            }
            if age == 1 {
                one = made_from(one, &sources());
            }
            rows.extend(one);
        }
    }
    let other = of_agent(
        turn(member(1, 101, 11), 4_000, at(FIRST_AGE)),
        &agent("other"),
    );
    rows.extend(
        other
            .into_iter()
            .map(|row| StoredMessage { ordinal: 1, ..row }),
    );
    rows
}

/// What the answers of the second age were made from.
fn sources() -> [ContentSource; 2] {
    let written = ContentSource {
        guild: Some(guild(1)),
        channel: channel(103),
        message: Some(message(9_001)),
        author: Some(user(14)),
    };
    let name = ContentSource {
        channel: channel(104),
        message: None,
        author: None,
        ..written
    };
    [written, name]
}

fn markers() -> Vec<Record> {
    let places = [
        (Some(1), Some(11)),
        (Some(1), Some(12)),
        (Some(1), None),
        (Some(2), Some(11)),
        (None, Some(11)),
        (None, Some(13)),
    ];
    let marker = |(place, whose): (Option<u64>, Option<u64>)| {
        let key = ClearKey {
            agent: default_agent(),
            guild: place.map(guild),
            user: whose.map(user),
        };
        Record::Marker(key, at(FIRST_AGE * 3))
    };
    places.into_iter().map(marker).collect()
}

/// What users 11 and 12 saved in each server and in direct messages, in the
/// second age.
fn snapshots(marker: &str) -> Vec<Record> {
    let mut saved = Vec::new();
    let places = [
        (11, Some(1)),
        (11, Some(2)),
        (11, None),
        (12, Some(1)),
        (12, None),
    ];
    for (number, (owner, place)) in (1..).zip(places) {
        let is_theirs = |row: &StoredMessage| {
            row.owner == user(owner)
                && row.guild == place.map(guild)
                && row.agent == default_agent()
        };
        let rows = turns().into_iter().filter(is_theirs);
        let mut rows: Vec<_> = rows
            .filter(|row| !matches!(row.scope, Scope::User(_)))
            .collect();
        rows.sort_by_key(|row| row.timestamp);
        for row in &mut rows {
            mark(row, marker);
        }
        let mut one = snapshot(number, rows, at(FIRST_AGE * 4));
        one.info.summary.push_str(marker);
        one.info.description = Some(format!("description{marker}"));
        saved.push(Record::Snapshot(one));
    }
    saved
}

/// Of each turn that was made from something elsewhere.
fn receipts() -> Vec<Record> {
    let is_answer = |row: &StoredMessage| row.role == StoredRole::Assistant;
    let rows = turns().into_iter();
    let rows = rows.filter(|row| is_answer(row) && !row.sources.is_empty());
    let receipt = |row: StoredMessage| {
        let mut receipt = StoredReceipt {
            owner: row.owner,
            ..receipt(row.scope, row.turn.0, row.timestamp, &row.sources)
        };
        receipt.people = receipt.everybody();
        Record::Receipt(receipt)
    };
    rows.map(receipt).collect()
}

fn user_facts(marker: &str) -> Vec<Record> {
    let mut facts = Vec::new();
    for (number, id) in (0..).zip([11, 12]) {
        let fact = |nth: u64| Fact {
            at: at(i64::try_from(nth).unwrap() * 500),
            ..user_fact(number * 10 + nth, id, &format!("fact {nth}{marker}"))
        };
        let linked = Some((channel(101), message(5_001 + number * 100)));
        facts.extend([
            fact(1),
            Fact {
                origin: Origin::Guild(guild(1)),
                link: linked,
                ..fact(2)
            },
            Fact {
                origin: Origin::Guild(guild(2)),
                ..fact(3)
            },
            Fact {
                origin: Origin::Direct,
                ..fact(4)
            },
        ]);
    }
    // Stated by another user.
    facts.push(Fact {
        by: user(12),
        origin: Origin::Guild(guild(1)),
        ..user_fact(60, 11, &format!("said by 12{marker}"))
    });
    facts.into_iter().map(Record::Fact).collect()
}

fn server_facts(marker: &str) -> Vec<Record> {
    let mut facts = Vec::new();
    for (number, (place, by)) in (0..).zip([(1, 11), (1, 12), (2, 11), (2, 13)]) {
        facts.push(Fact {
            by: user(by),
            at: at(FIRST_AGE * 2),
            link: (number == 0).then_some((channel(101), message(5_002))),
            ..server_fact(100 + number, place, &format!("of a server{marker}"))
        });
    }
    facts.into_iter().map(Record::Fact).collect()
}

/// Whether a store of files can hold an entry.
fn files_hold(record: &Record) -> bool {
    match record {
        Record::Message(row) => {
            matches!(row.scope, Scope::Member { .. } | Scope::Direct(_))
                && row.agent == default_agent()
        }
        Record::Agent(agent, _) => *agent == default_agent(),
        Record::Snapshot(_) | Record::Receipt(_) => false,
        Record::Marker(..)
        | Record::Fact(_)
        | Record::OptOut(..)
        | Record::Settings(..)
        | Record::Departure(..) => true,
    }
}

/// The users whose exports contain an entry.
pub(super) fn owner(record: &Record) -> BTreeSet<UserId> {
    match record {
        Record::Message(row) => [row.owner].into(),
        Record::Marker(key, _) => key.user.into_iter().collect(),
        Record::Snapshot(snapshot) => [snapshot.info.owner].into(),
        Record::Receipt(receipt) => [receipt.owner].into(),
        Record::Fact(fact) => match fact.subject {
            Subject::User(user) => [user, fact.by].into(),
            Subject::Server(_) => [fact.by].into(),
        },
        Record::OptOut(user, _) => [*user].into(),
        Record::Settings(..) | Record::Agent(..) | Record::Departure(..) => BTreeSet::new(),
    }
}
