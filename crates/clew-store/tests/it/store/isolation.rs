//! No read returns another scope's row. Random operations of users in channels,
//! threads, servers and direct messages are compared with a model.
//!
//! Several actors work at once, each on its own keys, in servers and channels
//! that they share; ids of users, channels and servers coincide.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use clew_context::model::{GuildId, TurnId, UnixMillis, UserId};
use clew_store::model::{ClearKey, Scope, StoredMessage};
use clew_store::{Asker, Backend, Durability, Kind, Purge, SqliteSettings, WindowQuery};

use super::build::{all_of, at, channel, default_agent, direct, member, message, thread};
use super::build::{turn, user};
use super::contract::everything;
use super::fixture::{self, Fixture};
use super::random::{Random, seed};

/// Concurrent actors.
const ACTORS: u64 = 8;
/// Users per actor.
const USERS: u64 = 6;
/// Operations per back end.
const OPERATIONS: u64 = 100_000;
/// The same when each waits for the disk.
const SLOW_OPERATIONS: u64 = 2_000;
/// Most rows in a file.
const FILE_ROWS: usize = 15;
/// Seed of runs that do not specify one.
const SEED: u64 = 20_260_528;

/// A turn in the model: its rows' texts and the time of its question.
#[derive(Debug, Clone)]
struct Turn {
    id: u64,
    place: u64,
    owner: UserId,
    texts: [String; 2],
    when: UnixMillis,
}

/// One actor, and what its conversations should contain.
struct Actor<S> {
    store: Arc<S>,
    number: u64,
    random: Random,
    scopes: Vec<Scope>,
    kept: BTreeMap<Scope, Vec<Turn>>,
    is_database: bool,
    clock: i64,
    turns: u64,
}

impl<S: Backend> Actor<S> {
    fn new(store: &Arc<S>, number: u64, seed: u64, is_database: bool) -> Self {
        let mut scopes = Vec::new();
        for id in (0..USERS).map(|index| 1 + number + index * ACTORS) {
            // Ids of servers and channels equal some users' ids.
            for (place, room) in [(1, 1), (1, 2), (2, 1), (2, 3), (100 + number, 1)] {
                scopes.push(member(place, room, id));
            }
            scopes.push(direct(id));
            if is_database {
                scopes.push(Scope::User(user(id)));
            }
        }
        if is_database {
            scopes.extend([thread(1, 1_000 + number), thread(2, 1_000 + number)]);
        }
        Self {
            store: Arc::clone(store),
            number,
            random: Random::new(seed ^ (number << 32)),
            scopes,
            kept: BTreeMap::new(),
            is_database,
            clock: 0,
            turns: 0,
        }
    }

    async fn act(&mut self) {
        let scope = self.random.pick(&self.scopes);
        self.clock += 10;
        match self.random.below(1_000) {
            0..280 => self.append(scope).await,
            280..300 => self.replace(scope).await,
            900..930 => self.read_from(scope).await,
            930..950 => self.clear(scope).await,
            950..970 => self.count(scope).await,
            970..985 => self.delete(scope).await,
            985..994 => self.restore(scope).await,
            994..998 => self.delete_message(scope).await,
            // Rare, since an erasure waits until the disk is clean.
            998 if self.random.below(2) == 0 => self.purge_user(scope).await,
            999 if self.random.below(2) == 0 => self.purge_member(scope).await,
            _ => self.read(scope).await,
        }
    }

    fn rows_of(&mut self, scope: Scope, id: u64) -> Vec<StoredMessage> {
        let mut rows = turn(scope, id, at(self.clock));
        if let Scope::Thread { .. } = scope {
            let index = self.random.below(USERS);
            let asker = user(1 + self.number + index * ACTORS);
            for row in &mut rows {
                row.owner = asker;
            }
        }
        for row in &mut rows {
            row.content = format!("{scope} {id} {} {}", row.role.as_str(), self.clock);
        }
        rows
    }

    async fn append(&mut self, scope: Scope) {
        self.turns += 1;
        let id = (self.turns * ACTORS + self.number) * 10;
        let rows = self.rows_of(scope, id);
        self.store.append(&rows).await.unwrap();
        let place = id;
        let kept = self.kept.entry(scope).or_default();
        kept.push(modelled(&rows, place));
        self.forget_oldest(scope);
    }

    async fn replace(&mut self, scope: Scope) {
        let Some(Turn { id, place, .. }) = self.any_turn(scope) else {
            return;
        };
        let rows = self.rows_of(scope, id);
        self.store.append(&rows).await.unwrap();
        let kept = self.kept.entry(scope).or_default();
        kept.retain(|turn| turn.id != id);
        kept.push(modelled(&rows, place));
        kept.sort_by_key(|turn| turn.place);
    }

    fn forget_oldest(&mut self, scope: Scope) {
        let kept = self.kept.entry(scope).or_default();
        while !self.is_database && kept.len() * 2 > FILE_ROWS {
            kept.remove(0);
        }
    }

    fn any_turn(&mut self, scope: Scope) -> Option<Turn> {
        let kept = self.kept.get(&scope).filter(|kept| !kept.is_empty())?;
        let index = self.random.below(u64::try_from(kept.len()).unwrap());
        kept.get(usize::try_from(index).unwrap()).cloned()
    }

    fn expected(&self, scope: Scope, since: UnixMillis) -> Vec<String> {
        let turns = self.kept.get(&scope).into_iter().flatten();
        let later = turns.filter(|turn| turn.when > since);
        later.flat_map(|turn| turn.texts.clone()).collect()
    }

    /// Reads a whole conversation.
    async fn read(&mut self, scope: Scope) {
        let rows = self.store.window(&all_of(scope)).await.unwrap();
        same(scope, &rows, &self.expected(scope, UnixMillis(0)));
    }

    /// Reads a limited number of rows from a clear marker or any time on.
    async fn read_from(&mut self, scope: Scope) {
        let back = i64::try_from(self.random.below(2_000)).unwrap();
        // Between two questions' times, so that turns are in or out as a whole.
        let since = at((self.clock - back) / 10 * 10 + 5);
        let guild = guild_of(scope);
        let cleared = scope.owner().map(|user| Asker { guild, user });
        let limit = usize::try_from(self.random.below(12)).unwrap();
        let query = WindowQuery {
            since,
            cleared,
            with_tools: true,
            limit,
            ..all_of(scope)
        };
        let rows = self.store.window(&query).await.unwrap();
        let marker = match cleared {
            Some(Asker { guild, user }) => {
                let agent = default_agent();
                self.store.cleared_at(&agent, guild, user).await.unwrap()
            }
            None => None,
        };
        let all = self.expected(scope, marker.map_or(since, |at| at.max(since)));
        assert_eq!(rows.len(), all.len().min(limit), "{scope}");
        for row in &rows {
            assert_eq!(row.scope, scope);
            assert!(all.contains(&row.content), "{scope}: {}", row.content);
        }
    }

    async fn clear(&mut self, scope: Scope) {
        let place = guild_of(scope);
        let is_ours = place.is_some_and(|place| place.get() == 100 + self.number);
        let Some(owner) = scope.owner() else { return };
        let key = ClearKey {
            agent: default_agent(),
            guild: place,
            // For everybody only where no other actor works.
            user: (!is_ours).then_some(owner),
        };
        self.store.clear(&key, at(self.clock)).await.unwrap();
        let cleared = self.store.cleared_at(&key.agent, place, owner).await;
        assert_eq!(cleared.unwrap(), Some(at(self.clock)), "{scope}");
    }

    async fn count(&mut self, scope: Scope) {
        let now = at(0);
        let stats = self.store.conversation(scope, now).await.unwrap();
        let expected = self.expected(scope, UnixMillis(0)).len();
        assert_eq!(stats.message_count, expected, "{scope}");
    }

    async fn delete(&mut self, scope: Scope) {
        let gone = self.store.delete_conversation(scope).await.unwrap();
        let expected = self.expected(scope, UnixMillis(0)).len() as u64;
        assert_eq!(gone, expected, "{scope}");
        self.kept.remove(&scope);
    }

    /// Restores a user's own rows of a server to their scopes, as new turns.
    async fn restore(&mut self, scope: Scope) {
        let Some(owner) = scope.owner() else { return };
        let (place, agent) = (guild_of(scope), default_agent());
        let own = self
            .store
            .own_messages(owner, &agent, place, UnixMillis(0))
            .await
            .unwrap();
        for row in &own {
            assert_eq!((row.owner, row.guild), (owner, place), "{scope}");
            let known = self.expected(row.scope, UnixMillis(0));
            assert!(known.contains(&row.content), "{scope}: {}", row.content);
        }
        let Some(last) = own.iter().rev().find(|row| row.scope == scope) else {
            return;
        };
        let (was, turns) = (last.turn, own.iter().filter(|row| row.scope == scope));
        let mut rows: Vec<_> = turns.filter(|row| row.turn == was).cloned().collect();
        self.turns += 1;
        let id = (self.turns * ACTORS + self.number) * 10;
        for row in &mut rows {
            row.turn = TurnId(id);
            row.message = row.message.map(|old| message(old.get() - was.0 + id));
            row.parts.clear();
            row.timestamp = at(self.clock);
        }
        self.store.append(&rows).await.unwrap();
        self.kept
            .entry(scope)
            .or_default()
            .push(modelled(&rows, id));
        self.forget_oldest(scope);
    }

    async fn delete_message(&mut self, scope: Scope) {
        let Some(turn) = self.any_turn(scope) else {
            return;
        };
        let place = match scope {
            Scope::Member { channel, .. } | Scope::Thread { channel, .. } => channel,
            Scope::User(owner) | Scope::Direct(owner) => super::build::direct_channel(owner),
        };
        let purge = Purge::Messages {
            channel: place,
            ids: vec![message(turn.id)],
        };
        let purged = self.store.purge(&purge).await.unwrap();
        assert_eq!(purged.total(), 2, "{scope}");
        let kept = self.kept.entry(scope).or_default();
        kept.retain(|other| other.id != turn.id);
    }

    async fn purge_user(&mut self, scope: Scope) {
        let Some(owner) = scope.owner() else { return };
        self.store.purge(&Purge::User(owner)).await.unwrap();
        // Including their turns in shared threads, but nobody else's.
        for kept in self.kept.values_mut() {
            kept.retain(|turn| turn.owner != owner);
        }
    }

    async fn purge_member(&mut self, scope: Scope) {
        let (Some(user), Some(guild)) = (scope.owner(), guild_of(scope)) else {
            return;
        };
        self.store
            .purge(&Purge::Member { guild, user })
            .await
            .unwrap();
        for (scope, kept) in &mut self.kept {
            kept.retain(|turn| turn.owner != user || guild_of(*scope) != Some(guild));
        }
    }

    async fn look_at_all(&mut self) -> usize {
        for scope in self.scopes.clone() {
            self.read(scope).await;
        }
        self.kept.values().map(|kept| kept.len() * 2).sum()
    }
}

fn modelled(rows: &[StoredMessage], place: u64) -> Turn {
    Turn {
        id: rows[0].turn.0,
        place,
        owner: rows[0].owner,
        texts: [rows[0].content.clone(), rows[1].content.clone()],
        when: rows[0].timestamp,
    }
}

fn guild_of(scope: Scope) -> Option<GuildId> {
    match scope {
        Scope::Member { guild, .. } | Scope::Thread { guild, .. } => Some(guild),
        Scope::User(_) | Scope::Direct(_) => None,
    }
}

#[track_caller]
fn same(scope: Scope, rows: &[StoredMessage], expected: &[impl AsRef<str> + Debug]) {
    let texts = rows.iter().map(|row| row.content.as_str());
    let is_same = texts.eq(expected.iter().map(AsRef::as_ref));
    assert!(is_same, "{scope}: {rows:#?} are not {expected:#?}");
    assert!(rows.iter().all(|row| row.scope == scope), "{scope}");
}

/// Runs this many operations by concurrent actors, then checks everything.
#[expect(clippy::print_stdout, reason = "shown when the test fails")]
async fn check<S: Backend + 'static>(store: S, is_database: bool, operations: u64, seed: u64) {
    println!("STORE_TEST_SEED={seed}");
    let store = Arc::new(store);
    let acting = (0..ACTORS).map(|number| {
        let mut actor = Actor::new(&store, number, seed, is_database);
        tokio::spawn(async move {
            for _ in 0..operations / ACTORS {
                actor.act().await;
            }
            actor
        })
    });
    let acting: Vec<_> = acting.collect();
    let mut rows = 0;
    let mut actors = Vec::new();
    for actor in acting {
        actors.push(actor.await.unwrap());
    }
    for actor in &mut actors {
        rows += actor.look_at_all().await;
    }
    let all = everything(&*store).await;
    let kept = all.iter().filter(|record| record.kind() == Kind::Messages);
    assert_eq!(kept.count(), rows, "nothing is there that nobody wrote");
    // Purging a shared channel affects everyone.
    store.purge(&Purge::Channel(channel(1))).await.unwrap();
    for actor in &mut actors {
        let here = member(1, 1, 1 + actor.number);
        assert_eq!(store.window(&all_of(here)).await.unwrap(), []);
        let goes =
            |scope: &Scope| matches!(scope, Scope::Member { channel: of, .. } if *of == channel(1));
        actor.kept.retain(|scope, _| !goes(scope));
        actor.look_at_all().await;
    }
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_read_crosses_a_scope_in_sqlite() {
    let place = fixture::fast_folder();
    let settings = SqliteSettings {
        durability: Durability::None,
        ..SqliteSettings::default()
    };
    let store = fixture::open_sqlite(place.path(), settings).await;
    check(store, true, OPERATIONS, seed(SEED)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_read_crosses_a_scope_in_sqlite_on_a_disk() {
    let place = tempfile::tempdir().unwrap();
    let settings = SqliteSettings {
        durability: Durability::Power,
        ..SqliteSettings::default()
    };
    let store = fixture::open_sqlite(place.path(), settings).await;
    check(store, true, SLOW_OPERATIONS, seed(SEED + 1)).await;
}

#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_read_crosses_a_scope_in_postgres() {
    let place = fixture::Postgres::fresh().await;
    check(place.open().await, true, OPERATIONS, seed(SEED + 2)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_read_crosses_a_scope_in_files() {
    let place = fixture::Files::fresh().await;
    check(place.open().await, false, OPERATIONS, seed(SEED + 3)).await;
}
