//! The SQLite store: appending a turn, reading a window, deleting and editing a message, with 10,000 and with
//! 1,000,000 rows in the file; how much a deletion and an edit write; the memory of 10,000 active scopes.

use std::time::{Duration, Instant};

use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};
use clew_store::model::{AgentName, Scope, StoredMessage, StoredRole};
use clew_store::{Backend, Purge, SnapshotFiles, Sqlite, SqliteSettings, WindowQuery};
use tempfile::TempDir;

use super::bot::block_on;
use super::process::{Process, mebibytes, milliseconds};

/// Rows in the file before each measurement; 100 rows a scope.
const SIZES: [u64; 2] = [10_000, 1_000_000];
const TURNS_A_SCOPE: u64 = 50;
/// Calls of each kind that are measured.
const CALLS: u64 = 2_000;
/// Turns that are measured have numbers from here on.
const FIRST_MEASURED: u64 = 1 << 40;
/// Turns that are written at once while the file is filled.
const TOGETHER: u64 = 512;
/// Messages that are deleted; as many are edited.
const REMOVED: u64 = 60;
/// Rows of a prompt's window (`MAX_CONTEXT_MESSAGES`, and one more).
const WINDOW: usize = 31;
const START: i64 = 1_767_323_045_000;

pub(crate) fn print() {
    println!("\nSQLite: a turn appended, a window of {WINDOW} rows read, 100 rows a scope");
    block_on(async {
        let folder = TempDir::new().unwrap();
        let before = Process::own().resident();
        let path = folder.path().join("clew.db");
        let agents = SnapshotFiles::new(folder.path().join("agents"));
        let store = Sqlite::open(&path, agents, &SqliteSettings::default()).unwrap();
        let mut scopes = 0;
        for rows in SIZES {
            let all = rows / 2 / TURNS_A_SCOPE;
            fill(&store, scopes, all).await;
            measure(&store, rows, all).await;
            // Only in the new scopes: of the others some messages are gone by now.
            remove(&store, scopes, all).await;
            scopes = all;
        }
        let grown = Process::own().resident().saturating_sub(before);
        let bytes = std::fs::metadata(&path).unwrap().len();
        println!(
            "  file {:.0} MiB, {scopes} scopes; memory grown by {:.1} MiB",
            mebibytes(bytes),
            mebibytes(grown)
        );
        store.close().await.unwrap();
    });
}

/// Fills scopes in turn, so that their rows are scattered over the file.
async fn fill(store: &Sqlite, from: u64, to: u64) {
    for round in 0..TURNS_A_SCOPE {
        let mut scope = from;
        while scope < to {
            let until = (scope + TOGETHER).min(to);
            let appends = (scope..until).map(|scope| async move {
                let turn = turn(scope, scope * TURNS_A_SCOPE + round);
                store.append(&turn).await.unwrap();
            });
            futures_util::future::join_all(appends).await;
            scope = until;
        }
    }
}

/// One call after the other, in scattered scopes.
async fn measure(store: &Sqlite, rows: u64, scopes: u64) {
    let mut appends = Vec::new();
    let mut windows = Vec::new();
    for call in 0..CALLS {
        let turn = turn(call * 7_919 % scopes, FIRST_MEASURED + rows + call);
        let began = Instant::now();
        store.append(&turn).await.unwrap();
        appends.push(began.elapsed());
        let query = WindowQuery {
            scope: turn[0].scope,
            agent: AgentName::default_agent(),
            since: UnixMillis(0),
            cleared: None,
            with_tools: false,
            limit: WINDOW,
        };
        let began = Instant::now();
        let window = store.window(&query).await.unwrap();
        windows.push(began.elapsed());
        assert_eq!(window.len(), WINDOW);
    }
    println!(
        "  {rows:>9} rows: append {}, window {}",
        quantiles(appends),
        quantiles(windows)
    );
}

/// Deletes messages, and with them their turns, and edits others; then runs the sweep if one is due.
async fn remove(store: &Sqlite, from: u64, to: u64) {
    let at = |call: u64| {
        let scope = from + call * 7_919 % (to - from);
        let round = (call + call / TURNS_A_SCOPE) % TURNS_A_SCOPE;
        let [question, answer] = turn(scope, scope * TURNS_A_SCOPE + round);
        (question, answer)
    };
    let id = |row: &StoredMessage| row.message.unwrap();
    told("deleted", store, async |store, call| {
        let (question, _) = at(call);
        let purge = Purge::Messages {
            channel: question.channel,
            ids: vec![id(&question)],
        };
        store.purge(&purge).await.unwrap().total()
    })
    .await;
    told("edited", store, async |store, call| {
        let (_, answer) = at(REMOVED + call);
        let (channel, text) = (answer.channel, format!("{} Or so.", answer.content));
        store
            .edit_message(channel, id(&answer), &text)
            .await
            .unwrap()
    })
    .await;
    let (began, before) = (Instant::now(), Process::own().written());
    store.sweep(UnixMillis(START)).await.unwrap();
    let written = Process::own().written() - before;
    let took = milliseconds(began.elapsed());
    println!(
        "             swept: {took:.0} ms, {:.1} KiB written",
        written as f64 / 1_024.0
    );
}

/// One call after the other: how long each takes and how much it writes.
async fn told(what: &str, store: &Sqlite, call: impl AsyncFn(&Sqlite, u64) -> u64) {
    // The first call also writes what waits in the log, so it is not measured.
    call(store, 0).await;
    let (mut times, mut written) = (Vec::new(), Vec::new());
    for number in 1..REMOVED {
        let (began, before) = (Instant::now(), Process::own().written());
        assert!(call(store, number).await > 0, "the message exists");
        times.push(began.elapsed());
        written.push(Process::own().written() - before);
    }
    written.sort_unstable();
    let kibibytes = |bytes: u64| bytes as f64 / 1_024.0;
    println!(
        "             {what}: {}, {:.1} KiB written, {:.1} at most",
        quantiles(times),
        kibibytes(written[written.len() / 2]),
        kibibytes(written[written.len() - 1])
    );
}

fn quantiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| {
        let last = times.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index in a list"
        )]
        let place = (last as f64 * part).round() as usize;
        milliseconds(times[place])
    };
    format!("p50 {:.3} ms, p99 {:.3} ms", at(0.5), at(0.99))
}

/// The turn with this number in this scope.
fn turn(scope: u64, number: u64) -> [StoredMessage; 2] {
    let guild = GuildId::new(1);
    let channel = ChannelId::new(scope % 100 + 10);
    let owner = UserId::new(scope + 1_000);
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
        sources: Vec::new(),
    };
    [
        row(StoredRole::User, number * 2 + 1),
        row(StoredRole::Assistant, number * 2 + 2),
    ]
}
