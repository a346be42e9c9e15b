//! What only the `SQLite` store promises: which files it opens, one transaction
//! for many calls, and no trace of what was deleted.

mod erased;
mod opening;
mod room;
mod texts;
mod together;

use std::path::Path;

use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};
use clew_store::model::{AgentName, Scope, StoredMessage, StoredRole};
use clew_store::{Backend, SnapshotFiles, Sqlite, SqliteSettings, WindowQuery};
use tempfile::TempDir;

const GUILD: GuildId = GuildId::new(11);
const CHANNEL: ChannelId = ChannelId::new(22);
/// When the rows of these tests were written; in May 2026.
const NOW: UnixMillis = UnixMillis(1_780_000_000_000);

/// A folder that holds the database.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("var/clew.db")
    }

    fn open(&self) -> Sqlite {
        self.open_with(&SqliteSettings::default()).unwrap()
    }

    fn open_with(&self, settings: &SqliteSettings) -> Result<Sqlite, clew_store::Error> {
        let snapshots = SnapshotFiles::new(self.folder.path().join("agents"));
        Sqlite::open(&self.file(), snapshots, settings)
    }

    /// Another program's connection.
    fn beside(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.file()).unwrap()
    }
}

fn scope(user: UserId) -> Scope {
    Scope::Member {
        guild: GUILD,
        channel: CHANNEL,
        user,
    }
}

fn row(user: u64, turn: u64, role: StoredRole, text: &str) -> StoredMessage {
    let owner = UserId::new(user);
    let is_answer = role == StoredRole::Assistant;
    StoredMessage {
        scope: scope(owner),
        agent: AgentName::default_agent(),
        turn: TurnId(turn),
        ordinal: 0,
        role,
        guild: Some(GUILD),
        channel: CHANNEL,
        owner,
        author_name: (role == StoredRole::User).then(|| "Ada".to_owned()),
        content: text.to_owned(),
        tool_calls: None,
        tool_call_id: None,
        timestamp: NOW,
        message: Some(MessageId::new(turn * 10 + u64::from(is_answer))),
        parts: vec![],
        target: None,
        restored_from: None,
        sources: Vec::new(),
    }
}

/// A trigger and its answer.
fn turn(user: u64, turn: u64, text: &str) -> Vec<StoredMessage> {
    vec![
        row(user, turn, StoredRole::User, text),
        row(user, turn, StoredRole::Assistant, text),
    ]
}

fn query(user: u64, limit: usize) -> WindowQuery {
    WindowQuery {
        scope: scope(UserId::new(user)),
        agent: AgentName::default_agent(),
        since: UnixMillis(0),
        cleared: None,
        with_tools: true,
        limit,
    }
}

/// The turns of a user's window, oldest first.
async fn turns(store: &Sqlite, user: u64) -> Vec<u64> {
    let window = store.window(&query(user, usize::MAX)).await.unwrap();
    let mut turns: Vec<u64> = window.iter().map(|row| row.turn.0).collect();
    turns.dedup();
    turns
}

/// Where a text, or other bytes, stand in any file below a folder.
fn found_in(folder: &Path, text: impl AsRef<[u8]>) -> Vec<String> {
    let text = text.as_ref();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(found_in(&path, text));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let times = bytes.windows(text.len()).filter(|part| *part == text);
            let times = times.count();
            if times > 0 {
                found.push(format!("{} x{times}", path.display()));
            }
        }
    }
    found
}
