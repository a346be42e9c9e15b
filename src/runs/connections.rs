//! What members let their own programs read as themselves: for each program a token, for servers
//! that the member chose, which only its hash is kept of.
//!
//! Invariant: a token is told once; it ends after 30 days, with its member's data, or when they
//! take it back, and for a server when they or we are not in it any more. Who is told that it ended
//! for good is told so when the next process would not know it either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::timeout;
use uuid::Uuid;

use super::StateFile;
use clew_context::model::{GuildId, UnixMillis, UserId};

/// How long a token holds, in milliseconds: 30 days.
const LIFETIME: i64 = 30 * 24 * 60 * 60 * 1_000;
/// The most of one member, in all servers.
pub const MOST_CONNECTIONS: usize = 5;
/// How long a file that is being written is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// All connections; clones share them.
#[derive(Debug, Clone)]
pub struct Connections(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    known: Mutex<OpenConnections>,
    changed: watch::Sender<()>,
    /// The newest revision that is in the file.
    in_file: watch::Sender<u64>,
}

/// By the SHA-256 of their tokens, in hex.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenConnections {
    known: BTreeMap<String, Connection>,
    /// How often they have changed in this process.
    #[serde(skip)]
    revision: u64,
}

/// What a token stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    pub user: UserId,
    /// The servers that it reads; at least one.
    pub guilds: BTreeSet<GuildId>,
    /// What the member calls their program.
    pub client: String,
    /// When it was made, in Unix milliseconds.
    pub made: i64,
}

impl Connection {
    pub fn ends(&self) -> UnixMillis {
        UnixMillis(self.made + LIFETIME)
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self::new(OpenConnections::default(), UnixMillis(0))
    }
}

impl Connections {
    /// Those that an earlier process knew and that have not ended by now.
    pub fn new(mut left: OpenConnections, now: UnixMillis) -> Self {
        left.known.retain(|_, one| now < one.ends());
        Self(Arc::new(Shared {
            in_file: watch::Sender::new(left.revision),
            known: Mutex::new(left),
            changed: watch::Sender::new(()),
        }))
    }

    /// A new token for a program, instead of the one that it had; none if the member has too many.
    pub fn connect(&self, new: Connection, now: UnixMillis) -> Option<String> {
        let token = format!(
            "clew_{}{}",
            Uuid::new_v4().simple(),
            Uuid::new_v4().simple()
        );
        let known = &mut *self.0.known.lock();
        let all = &mut known.known;
        all.retain(|_, one| now < one.ends() && !one.is_same(&new));
        if all.values().filter(|one| one.user == new.user).count() >= MOST_CONNECTIONS {
            return None;
        }
        all.insert(hash(&token), new);
        self.changed(known);
        Some(token)
    }

    /// Lets a program read one more server by the token that it has; false if there is none.
    pub fn add(&self, user: UserId, client: &str, guild: GuildId, now: UnixMillis) -> bool {
        let known = &mut *self.0.known.lock();
        let mut all = known.known.values_mut();
        let found = all.find(|one| (one.user, &*one.client) == (user, client) && now < one.ends());
        let Some(found) = found else {
            return false;
        };
        if found.guilds.insert(guild) {
            self.changed(known);
        }
        true
    }

    /// Whom a token stands for now.
    pub fn by_token(&self, token: &str, now: UnixMillis) -> Option<Connection> {
        let known = self.0.known.lock();
        let found = known.known.get(&hash(token))?;
        (now < found.ends()).then(|| found.clone())
    }

    /// A member's, the oldest first.
    pub fn of(&self, user: UserId, now: UnixMillis) -> Vec<Connection> {
        let known = self.0.known.lock();
        let of_user = known.known.values();
        let of_user = of_user.filter(|one| one.user == user && now < one.ends());
        let mut found: Vec<Connection> = of_user.cloned().collect();
        found.sort_by_key(|one| one.made);
        found
    }

    /// Takes back what `is_meant` says, at once. Returns how many.
    pub fn revoke(&self, is_meant: impl Fn(&Connection) -> bool) -> usize {
        self.keep(|one| !is_meant(one))
    }

    /// The servers that programs read.
    pub fn guilds(&self) -> BTreeSet<GuildId> {
        let known = self.0.known.lock();
        let connections = known.known.values();
        connections
            .flat_map(|one| one.guilds.iter().copied())
            .collect()
    }

    /// A server is left, by one member or, for `None`, by us: no program reads it any more.
    pub fn left(&self, user: Option<UserId>, guild: GuildId) {
        self.keep(|one| {
            let is_left = user.is_none_or(|user| one.user == user) && one.guilds.remove(&guild);
            !(is_left && one.guilds.is_empty())
        });
    }

    /// Returns how many are not kept. Those that are may be changed.
    fn keep(&self, mut is_kept: impl FnMut(&mut Connection) -> bool) -> usize {
        let known = &mut *self.0.known.lock();
        let before = known.known.clone();
        known.known.retain(|_, one| is_kept(one));
        if known.known != before {
            self.changed(known);
        }
        before.len() - known.known.len()
    }

    /// Waits until the next process knows what this one does; false if that takes too long, since
    /// the file cannot be written.
    pub async fn are_saved(&self) -> bool {
        let revision = self.0.known.lock().revision;
        let mut in_file = self.0.in_file.subscribe();
        let saved = in_file.wait_for(|written| *written >= revision);
        timeout(PATIENCE, saved).await.is_ok()
    }

    fn changed(&self, known: &mut OpenConnections) {
        known.revision += 1;
        self.0.changed.send_replace(());
    }
}

impl Connection {
    /// Whether it is of the same program.
    fn is_same(&self, other: &Self) -> bool {
        (self.user, &self.client) == (other.user, &other.client)
    }
}

impl StateFile for Connections {
    type Content = OpenConnections;

    fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    fn content(&self) -> OpenConnections {
        self.0.known.lock().clone()
    }

    fn written(&self, content: OpenConnections, is_in_file: bool) {
        if is_in_file {
            self.0.in_file.send_replace(content.revision);
        }
    }
}

fn hash(token: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000);

    fn of(user: u64, client: &str) -> Connection {
        Connection {
            user: UserId::new(user),
            guilds: BTreeSet::from([GuildId::new(9)]),
            client: client.to_owned(),
            made: NOW.0,
        }
    }

    #[test]
    fn a_token_holds_for_its_time_and_only_its_hash_is_kept() {
        let connections = Connections::default();
        let token = connections.connect(of(1, "editor"), NOW).unwrap();
        let kept = serde_json::to_string(&connections.content()).unwrap();
        assert!(!kept.contains(&token["clew_".len()..]), "{kept}");
        let last = UnixMillis(NOW.0 + LIFETIME);
        let at = |now| Connections::new(serde_json::from_str(&kept).unwrap(), now);
        assert_eq!(at(last).content().known.len(), 0);
        let next = at(NOW);
        assert_eq!(next.by_token(&token, NOW), Some(of(1, "editor")));
        assert!(next.by_token(&token, UnixMillis(last.0 - 1)).is_some());
        assert_eq!(next.by_token(&token, last), None);
        for wrong in ["", "clew_", &token[1..]] {
            assert_eq!(next.by_token(wrong, NOW), None);
        }
        assert!(next.of(UserId::new(1), last).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_back_is_gone_for_good_once_it_is_in_the_file() {
        let connections = Connections::default();
        let token = connections.connect(of(1, "editor"), NOW).unwrap();
        // It is being written when it is taken back.
        let early = connections.content();
        assert_eq!(connections.revoke(|one| one.user == UserId::new(1)), 1);
        assert_eq!(connections.by_token(&token, NOW), None);
        connections.written(early, true);
        assert!(!connections.are_saved().await);
        connections.written(connections.content(), false);
        assert!(!connections.are_saved().await);
        connections.written(connections.content(), true);
        assert!(connections.are_saved().await);
    }

    #[test]
    fn a_program_reads_chosen_servers_until_they_are_left() {
        let connections = Connections::default();
        let token = connections.connect(of(1, "editor"), NOW).unwrap();
        let (user, other) = (UserId::new(1), GuildId::new(10));
        assert!(connections.add(user, "editor", other, NOW));
        for (user, client, now) in [
            (2, "editor", NOW),
            (1, "other", NOW),
            (1, "editor", UnixMillis(NOW.0 + LIFETIME)),
        ] {
            assert!(!connections.add(UserId::new(user), client, other, now));
        }
        let reads = || connections.by_token(&token, NOW).map(|one| one.guilds);
        assert_eq!(reads().unwrap().len(), 2);
        connections.left(Some(UserId::new(2)), other);
        assert_eq!(reads().unwrap().len(), 2);
        connections.left(Some(user), other);
        assert_eq!(reads(), Some(of(1, "editor").guilds));
        connections.left(None, GuildId::new(9));
        assert_eq!(reads(), None);
    }

    #[test]
    fn a_member_has_a_few_and_a_program_one() {
        let connections = Connections::default();
        let mut tokens = Vec::new();
        for number in 0..MOST_CONNECTIONS {
            tokens.extend(connections.connect(of(1, &number.to_string()), NOW));
        }
        assert_eq!(tokens.len(), MOST_CONNECTIONS);
        assert_eq!(connections.connect(of(1, "more"), NOW), None);
        assert!(connections.connect(of(2, "more"), NOW).is_some());
        let again = connections.connect(of(1, "0"), NOW).unwrap();
        assert_eq!(connections.by_token(&tokens[0], NOW), None);
        assert!(connections.by_token(&again, NOW).is_some());
        // Those that ended make room.
        let later = UnixMillis(NOW.0 + LIFETIME);
        assert!(connections.connect(of(1, "more"), later).is_some());
    }
}
