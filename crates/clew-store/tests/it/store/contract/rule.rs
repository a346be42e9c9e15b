//! The rule of purges, [`Purge::takes`] and [`Reach`], against what each store
//! does: each purge, over entries of every kind for each server, channel, user
//! and time.

use std::collections::BTreeSet;

use clew_context::model::{ChannelId, ContentSource, MessageId, UnixMillis};
use clew_store::model::{ClearKey, Fact, FactId, GuildSettings, Origin, StoredMessage, Subject};
use clew_store::{Backend, Kind, Purge, Reach, Record, without};

use super::copying::{everything, sorted};
use crate::store::build::{
    at, channel, default_agent, direct, direct_channel, guild, made_from, member, message, receipt,
    snapshot, turn, user, user_fact, with_tools,
};
use crate::store::fixture::{Fixture, on_each_store};

on_each_store! {
    each_purge_leaves_what_the_rule_says
    servers_and_members_are_those_with_something_to_purge
    a_purge_of_a_server_reaches_snapshots_from_elsewhere
}

const GUILDS: [Option<u64>; 3] = [None, Some(1), Some(2)];
const USERS: [u64; 2] = [11, 12];
const TIMES: [i64; 2] = [0, 1_000];

/// The channels of a place, of which direct messages have one.
fn channels(place: Option<u64>, whose: u64) -> Vec<ChannelId> {
    match place {
        None => vec![direct_channel(user(whose))],
        Some(place) => [1, 2].map(|nth| channel(place * 100 + nth)).into(),
    }
}

/// Where something is, whose it is, and when.
#[derive(Clone, Copy)]
struct Cell {
    /// From 1.
    number: u64,
    guild: Option<u64>,
    channel: ChannelId,
    user: u64,
    time: UnixMillis,
}

impl Cell {
    /// The message that everything of this cell is about; the answer's follow.
    fn message(&self) -> MessageId {
        message(self.number * 10)
    }

    fn turn<F: Fixture>(&self) -> Vec<StoredMessage> {
        let scope = match self.guild {
            None => direct(self.user),
            Some(place) => member(place, self.channel.get(), self.user),
        };
        let rows = turn(scope, self.message().get(), self.time);
        // Files keep no tool calls.
        let rows = if F::IS_DATABASE {
            with_tools(rows)
        } else {
            rows
        };
        let mut rows = made_from(rows, &self.sources());
        for row in &mut rows {
            row.ordinal = self.number;
        }
        rows
    }

    /// The trigger of another cell, and that cell's channel.
    fn sources(&self) -> [ContentSource; 2] {
        let cells = cells();
        let other = &cells[usize::try_from(self.number * 7).unwrap() % cells.len()];
        let written = ContentSource {
            guild: other.guild.map(guild),
            channel: other.channel,
            message: Some(other.message()),
            author: Some(user(other.user)),
        };
        let name = ContentSource {
            guild: None,
            message: None,
            author: None,
            ..written
        };
        [written, name]
    }

    fn fact(&self, nth: u64, subject: Subject) -> Record {
        Record::Fact(Fact {
            subject,
            id: FactId(self.number * 100 + nth),
            origin: self.origin(),
            at: self.time,
            link: Some((self.channel, self.message())),
            ..user_fact(0, self.user, "fact")
        })
    }

    fn origin(&self) -> Origin {
        self.guild
            .map_or(Origin::Direct, |place| Origin::Guild(guild(place)))
    }

    /// Its entries of a kind. A new kind has to be planted here too.
    fn entries<F: Fixture>(&self, kind: Kind) -> Vec<Record> {
        let place = self.guild.map(guild);
        match kind {
            Kind::Messages => self.turn::<F>().into_iter().map(Record::Message).collect(),
            Kind::Snapshots | Kind::Receipts if !F::IS_DATABASE => vec![],
            // Saved in each place, from this one.
            Kind::Snapshots => (1..)
                .zip(GUILDS)
                .map(|(nth, saved_in)| {
                    let mut one = snapshot(self.number * 10 + nth, self.turn::<F>(), at(500));
                    one.info.guild = saved_in.map(guild);
                    Record::Snapshot(one)
                })
                .collect(),
            Kind::Markers => [Some(self.user), None]
                .into_iter()
                .map(|whose| {
                    let key = ClearKey {
                        agent: default_agent(),
                        guild: place,
                        user: whose.map(user),
                    };
                    Record::Marker(key, self.time)
                })
                .collect(),
            Kind::Receipts => {
                let first = &self.turn::<F>()[0];
                let (scope, number) = (first.scope, self.message().get());
                let one = receipt(scope, number, self.time, &self.sources());
                vec![Record::Receipt(one)]
            }
            // About each user.
            Kind::UserFacts => (1..)
                .zip(USERS)
                .map(|(nth, about)| self.fact(nth, Subject::User(user(about))))
                .collect(),
            // About each server.
            Kind::ServerFacts => (11..)
                .zip(GUILDS.into_iter().flatten())
                .map(|(nth, about)| self.fact(nth, Subject::Server(guild(about))))
                .collect(),
            Kind::OptOuts => vec![Record::OptOut(user(self.user), at(1))],
            Kind::Settings => place
                .map(|place| Record::Settings(place, GuildSettings::default()))
                .into_iter()
                .collect(),
            Kind::Agents => vec![Record::Agent(default_agent(), at(1))],
            Kind::Departures => place
                .map(|place| Record::Departure(place, at(1)))
                .into_iter()
                .collect(),
            // Files outside of any store, so no entries.
            Kind::Transcripts | Kind::Outputs => vec![],
        }
    }
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for guild in GUILDS {
        for user in USERS {
            for channel in channels(guild, user) {
                for time in TIMES.map(at) {
                    let number = cells.len() as u64 + 1;
                    cells.push(Cell {
                        number,
                        guild,
                        channel,
                        user,
                        time,
                    });
                }
            }
        }
    }
    cells
}

/// All entries, of those with the same key the last.
fn grid<F: Fixture>() -> Vec<Record> {
    let mut all: Vec<Record> = Vec::new();
    for kind in Kind::ALL {
        for entry in cells().iter().flat_map(|cell| cell.entries::<F>(kind)) {
            all.retain(|other| entry.key().is_none() || other.key() != entry.key());
            all.push(entry);
        }
    }
    all
}

/// Each purge of something, and some of nothing.
fn purges() -> Vec<Purge> {
    let mut purges = Vec::new();
    let (guilds, users) = ([1, 2, 9].map(guild), [11, 12, 19].map(user));
    purges.extend(guilds.map(Purge::Guild));
    purges.extend(users.map(Purge::User));
    for guild in guilds {
        purges.extend(users.map(|user| Purge::Member { guild, user }));
    }
    purges.extend([0, 1, 500, 501, 1_000, 1_001, 2_000].map(|time| Purge::Before(at(time))));
    let channels: BTreeSet<ChannelId> = cells().iter().map(|cell| cell.channel).collect();
    purges.extend(channels.into_iter().map(Purge::Channel));
    purges.push(Purge::Channel(channel(999)));
    for cell in cells().iter().filter(|cell| cell.time == at(TIMES[0])) {
        // A trigger, the answer's first message and its further one.
        for nth in 0..3 {
            let ids = vec![message(cell.message().get() + nth)];
            let channel = cell.channel;
            purges.push(Purge::Messages { channel, ids });
        }
    }
    for cell in cells() {
        // Before each turn, within those of the first time, and after all.
        for at in [0, 1, 2_000].map(at) {
            let (channel, message) = (cell.channel, cell.message());
            purges.push(Purge::Edited {
                channel,
                message,
                at,
            });
        }
    }
    let channel = cells()[0].channel;
    let ids = cells().iter().map(Cell::message).collect();
    purges.push(Purge::Messages { channel, ids });
    purges
}

/// What the rule leaves of all entries.
fn left(purge: &Purge, all: &[Record]) -> Vec<Record> {
    let rows = all.iter().filter_map(|record| match record {
        Record::Message(row) => Some(row.clone()),
        _ => None,
    });
    let rows: Vec<StoredMessage> = rows.collect();
    let reach = Reach::of(purge, &rows);
    let left = all.iter().filter_map(|record| match record {
        Record::Message(row) => (!reach.holds(row)).then(|| record.clone()),
        Record::Snapshot(snapshot) if purge.takes(record) => {
            let reach = Reach::of(purge, &snapshot.messages);
            let rest = without(snapshot, |row| reach.holds(row));
            let rest = rest.filter(|_| !purge.takes_whole(&snapshot.info));
            assert_ne!(
                rest.as_ref(),
                Some(snapshot),
                "nothing of it goes: {purge:?}"
            );
            rest.map(Record::Snapshot)
        }
        other => (!purge.takes(other)).then(|| other.clone()),
    });
    left.collect()
}

async fn each_purge_leaves_what_the_rule_says<F: Fixture>(place: &F) {
    let store = place.open().await;
    let all = grid::<F>();
    store.write(&all).await.unwrap();
    assert_eq!(everything(&store).await, sorted(all.clone()));
    for purge in purges() {
        store.purge(&purge).await.unwrap();
        let (found, rest) = (everything(&store).await, left(&purge, &all));
        for record in &rest {
            assert!(found.contains(record), "{purge:?} must spare {record:?}");
        }
        for record in &found {
            assert!(rest.contains(record), "{purge:?} must take {record:?}");
        }
        assert_eq!(found.len(), rest.len(), "{purge:?}");
        let mut gone = all.clone();
        gone.retain(|record| !rest.contains(record));
        store.write(&gone).await.unwrap();
    }
}

async fn servers_and_members_are_those_with_something_to_purge<F: Fixture>(place: &F) {
    let store = place.open().await;
    let all = grid::<F>();
    // Each kind by itself, so that none hides another.
    for kind in Kind::ALL {
        let mut some = all.clone();
        some.retain(|record| record.kind() == kind);
        check_lists(&store, &some).await;
    }
    // Snapshots of one server's messages that are saved elsewhere.
    let mut some = all;
    some.retain(|record| match record {
        Record::Snapshot(saved) => {
            saved.info.guild.is_none() && saved.messages[0].guild == Some(guild(2))
        }
        _ => false,
    });
    check_lists(&store, &some).await;
}

/// Checks the lists of a store of these entries, and removes them.
async fn check_lists(store: &impl Backend, some: &[Record]) {
    store.write(some).await.unwrap();
    let is_purged = |purge: &Purge| {
        let counts = |record: &&Record| record.kind() != Kind::Departures;
        some.iter().filter(counts).any(|record| purge.takes(record))
    };
    let mut guilds = [1, 2, 9].map(guild).to_vec();
    for guild in guilds.clone() {
        let mut users = [11, 12, 19].map(user).to_vec();
        users.retain(|user| is_purged(&Purge::Member { guild, user: *user }));
        let mut listed = store.members(guild).await.unwrap();
        listed.sort_unstable();
        assert_eq!(listed, users, "of {guild}: {:?}", some.first());
    }
    guilds.retain(|guild| is_purged(&Purge::Guild(*guild)));
    let mut listed = store.guilds().await.unwrap();
    listed.sort_unstable();
    assert_eq!(listed, guilds, "{:?}", some.first());
    for purge in [1, 2].map(|id| Purge::Guild(guild(id))) {
        store.purge(&purge).await.unwrap();
    }
}

async fn a_purge_of_a_server_reaches_snapshots_from_elsewhere<F: Fixture>(place: &F) {
    if !F::IS_DATABASE {
        return;
    }
    let store = place.open().await;
    let mut rows = turn(member(1, 101, 11), 10, at(0));
    let kept = turn(direct(11), 20, at(10));
    rows.extend(kept.clone());
    let mut saved = snapshot(1, rows, at(20));
    saved.info.guild = None;
    store.save_snapshot(&saved).await.unwrap();
    let purged = store.purge(&Purge::Guild(guild(1))).await.unwrap();
    assert_eq!(purged.iter().collect::<Vec<_>>(), [(Kind::Snapshots, 1)]);
    let found = store.snapshot(user(11), &saved.info.id).await.unwrap();
    assert_eq!(found.unwrap().messages, kept);
}
