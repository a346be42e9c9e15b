//! The SQLite store: appending a turn and reading a window, with 10,000 and
//! with 1,000,000 rows in the file; the memory of 10,000 active scopes.

use std::time::{Duration, Instant};

use clew::model::{
    AgentName, ChannelId, GuildId, MessageId, Scope, StoredMessage, StoredRole, TurnId, UnixMillis,
    UserId,
};
use clew::store::{Backend, SnapshotFiles, Sqlite, SqliteSettings, WindowQuery};
use tempfile::TempDir;

use super::bot::block_on;
use super::process::{Process, mebibytes, milliseconds};

/// Rows in the file, before each measurement.
const SIZES: [u64; 2] = [10_000, 1_000_000];
/// Scopes that the rows are spread over.
const SCOPES: u64 = 10_000;
/// Calls of each kind that are measured.
const CALLS: usize = 2_000;
/// Turns that are written at once while the file is filled.
const TOGETHER: usize = 512;
/// Rows of a prompt's window (`MAX_CONTEXT_MESSAGES`, and one more).
const WINDOW: usize = 31;
const START: i64 = 1_767_323_045_000;

pub(crate) fn print() {
    println!("\nSQLite: a turn appended, a window of {WINDOW} read, {SCOPES} scopes");
    block_on(async {
        let folder = TempDir::new().unwrap();
        let before = Process::own().resident();
        let path = folder.path().join("clew.db");
        let agents = SnapshotFiles::new(folder.path().join("agents"));
        let store = Sqlite::open(&path, agents, &SqliteSettings::default()).unwrap();
        let mut turns = 0;
        for rows in SIZES {
            turns = fill(&store, turns, rows / 2).await;
            turns = measure(&store, rows, turns).await;
        }
        let grown = Process::own().resident().saturating_sub(before);
        let bytes = std::fs::metadata(&path).unwrap().len();
        println!(
            "  file {:.0} MiB; memory grown by {:.1} MiB",
            mebibytes(bytes),
            mebibytes(grown)
        );
        store.close().await.unwrap();
    });
}

/// Writes turns until there are so many.
async fn fill(store: &Sqlite, from: u64, to: u64) -> u64 {
    let mut next = from;
    while next < to {
        let until = (next + TOGETHER as u64).min(to);
        let appends = (next..until).map(|number| async move {
            store.append(&turn(number)).await.unwrap();
        });
        futures_util::future::join_all(appends).await;
        next = until;
    }
    next
}

/// One call after the other, as turns of one conversation come.
async fn measure(store: &Sqlite, rows: u64, from: u64) -> u64 {
    let mut appends = Vec::with_capacity(CALLS);
    let mut windows = Vec::with_capacity(CALLS);
    let mut next = from;
    for _ in 0..CALLS {
        let turn = turn(next);
        let began = Instant::now();
        store.append(&turn).await.unwrap();
        appends.push(began.elapsed());
        let query = WindowQuery {
            scope: turn[0].scope,
            agent: AgentName::default_agent(),
            since: UnixMillis(0),
            limit: WINDOW,
        };
        let began = Instant::now();
        store.window(&query).await.unwrap();
        windows.push(began.elapsed());
        next += 1;
    }
    println!(
        "  {rows:>9} rows: append {}, window {}",
        quantiles(appends),
        quantiles(windows)
    );
    next
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| {
        let last = times.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a place in a list"
        )]
        let place = (last as f64 * part).round() as usize;
        milliseconds(times[place])
    };
    format!("p50 {:.3} ms, p99 {:.3} ms", at(0.5), at(0.99))
}

/// Turns go round the scopes.
fn turn(number: u64) -> [StoredMessage; 2] {
    let guild = GuildId::new(1);
    let channel = ChannelId::new(number % 100 + 10);
    let owner = UserId::new(number % SCOPES + 1_000);
    let row = |role, id: u64| StoredMessage {
        scope: Scope::Member {
            guild,
            channel,
            user: owner,
        },
        agent: AgentName::default_agent(),
        turn: TurnId(number + 1),
        ordinal: 0,
        role,
        guild: Some(guild),
        channel,
        owner,
        author_name: (role == StoredRole::User).then(|| "Ada".to_owned()),
        content: "The pump in hall three leaks again, and nobody knows why. ".repeat(4),
        tool_calls: None,
        tool_call_id: None,
        timestamp: UnixMillis(START + i64::try_from(number).unwrap()),
        message: Some(MessageId::new(id)),
        parts: Vec::new(),
        target: None,
        restored_from: None,
    };
    [
        row(StoredRole::User, number * 2 + 1),
        row(StoredRole::Assistant, number * 2 + 2),
    ]
}
