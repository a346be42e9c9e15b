//! PostgreSQL as a store, on a real server: the promises only it makes.

mod cluster;
mod connection;
mod content;
mod isolation;
mod remains;
mod stepped;

use clew_context::model::{ChannelId, GuildId, MessageId, Secret, TurnId, UnixMillis, UserId};
use clew_store::model::{AgentName, Scope, StoredMessage, StoredRole};
use clew_store::{Backend, Error, Postgres, SnapshotFiles, WindowQuery};
use tempfile::TempDir;

use crate::support::postgres as server;

/// A time that is not a whole second.
const NOW: UnixMillis = UnixMillis(1_767_323_045_678);

/// A store in its own database.
struct Fresh {
    store: Postgres,
    database: server::Database,
    folder: TempDir,
}

impl Fresh {
    async fn new() -> Self {
        let database = server::Postgres::shared().fresh_database().await;
        let folder = tempfile::tempdir().unwrap();
        let store = open(&database.url, &folder).await.unwrap();
        Self {
            store,
            database,
            folder,
        }
    }

    /// The rows of a statement, run by the superuser.
    async fn admin(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        server::query(&self.database.admin_url, sql).await
    }

    async fn texts(&self, scope: Scope) -> Vec<String> {
        let rows = self.store.window(&all_of(scope)).await.unwrap();
        rows.into_iter().map(|row| row.content).collect()
    }
}

async fn open(url: &str, folder: &TempDir) -> Result<Postgres, Error> {
    let files = SnapshotFiles::new(folder.path().to_owned());
    Postgres::open(&Secret::new(url), files).await
}

fn direct(user: u64) -> Scope {
    Scope::Direct(UserId::new(user))
}

fn all_of(scope: Scope) -> WindowQuery {
    WindowQuery {
        scope,
        agent: AgentName::default_agent(),
        since: UnixMillis(0),
        cleared: None,
        with_tools: true,
        limit: 1_000,
    }
}

fn row(scope: Scope, turn: u64, role: StoredRole, text: &str) -> StoredMessage {
    let part = u64::from(role != StoredRole::User);
    StoredMessage {
        scope,
        agent: AgentName::default_agent(),
        turn: TurnId(turn),
        ordinal: 0,
        role,
        guild: match scope {
            Scope::Member { guild, .. } | Scope::Thread { guild, .. } => Some(guild),
            Scope::User(_) | Scope::Direct(_) => None,
        },
        channel: ChannelId::new(7),
        owner: scope.owner().unwrap_or(UserId::new(3)),
        author_name: Some("Ada".to_owned()),
        content: text.to_owned(),
        tool_calls: None,
        tool_call_id: None,
        timestamp: NOW,
        message: Some(MessageId::new(turn * 10 + part)),
        parts: vec![],
        target: None,
        restored_from: None,
        sources: Vec::new(),
    }
}

/// A question and its answer.
fn turn(scope: Scope, turn: u64, text: &str) -> Vec<StoredMessage> {
    vec![
        row(scope, turn, StoredRole::User, text),
        row(scope, turn, StoredRole::Assistant, &format!("re: {text}")),
    ]
}

fn member(guild: u64, user: u64) -> Scope {
    Scope::Member {
        guild: GuildId::new(guild),
        channel: ChannelId::new(7),
        user: UserId::new(user),
    }
}
