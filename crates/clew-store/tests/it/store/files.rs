//! The file store: layout and format of version 1, and how it handles files
//! that are torn, foreign, newer or written concurrently.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use clew_context::model::{ChannelId, Clock, GuildId, MessageId, TurnId, UnixMillis, UserId};
use clew_store::model::{
    AgentName, ClearKey, Fact, FactId, GuildSettings, Origin, Scope, StoredMessage, StoredRole,
    Subject,
};
use clew_store::{
    Backend, ConversationStats, Cursor, Error, Files, Kind, Purge, Record, WindowQuery,
};

const GUILD: GuildId = GuildId::new(12345);
const CHANNEL: ChannelId = ChannelId::new(67890);
const USER: UserId = UserId::new(99999);
const HERE: Scope = Scope::Member {
    guild: GUILD,
    channel: CHANNEL,
    user: USER,
};
/// When the documented example starts.
const START: i64 = 1_640_188_800_000;
const DAY: i64 = 86_400_000;

/// Folders and a clock for a store.
struct World {
    folder: tempfile::TempDir,
    now: Arc<AtomicI64>,
}

impl World {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            now: Arc::new(AtomicI64::new(START)),
        }
    }

    async fn open(&self) -> Files {
        self.try_open().await.unwrap()
    }

    fn folders(&self) -> [PathBuf; 3] {
        ["context", "users", "servers"].map(|name| self.path(name))
    }

    fn clock(&self) -> Clock {
        let now = Arc::clone(&self.now);
        Arc::new(move || UnixMillis(now.load(Ordering::Relaxed)))
    }

    async fn try_open(&self) -> Result<Files, Error> {
        Files::open(self.folders(), self.clock()).await
    }

    fn set_time(&self, at: i64) {
        self.now.store(at, Ordering::Relaxed);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// All files except the locks, relative to the folder.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with(".lock") {
                    let name = path.strip_prefix(self.folder.path()).unwrap();
                    found.push(name.to_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }
}

fn row(scope: Scope, turn: u64, role: StoredRole, text: &str) -> StoredMessage {
    let (guild, channel) = match scope {
        Scope::Member { guild, channel, .. } | Scope::Thread { guild, channel } => {
            (Some(guild), channel)
        }
        Scope::User(_) | Scope::Direct(_) => (None, ChannelId::new(555)),
    };
    let trigger = role == StoredRole::User;
    StoredMessage {
        scope,
        agent: AgentName::default_agent(),
        turn: TurnId(turn),
        ordinal: 0,
        role,
        guild,
        channel,
        owner: scope.owner().unwrap_or(USER),
        author_name: trigger.then(|| "Ada".to_owned()),
        content: text.to_owned(),
        tool_calls: None,
        tool_call_id: None,
        timestamp: UnixMillis(START + i64::try_from(turn).unwrap() * 1000),
        message: Some(MessageId::new(turn * 10 + u64::from(!trigger))),
        parts: vec![],
        target: None,
        restored_from: None,
        sources: Vec::new(),
    }
}

fn turn(scope: Scope, number: u64) -> [StoredMessage; 2] {
    [
        row(
            scope,
            number,
            StoredRole::User,
            &format!("question {number}"),
        ),
        row(
            scope,
            number,
            StoredRole::Assistant,
            &format!("answer {number}"),
        ),
    ]
}

async fn texts(files: &Files, scope: Scope) -> Vec<String> {
    let query = WindowQuery {
        scope,
        agent: AgentName::default_agent(),
        since: UnixMillis(0),
        cleared: None,
        with_tools: true,
        limit: 100,
    };
    let rows = files.window(&query).await.unwrap();
    rows.into_iter().map(|row| row.content).collect()
}

fn fact(id: u64, subject: Subject, text: &str) -> Fact {
    Fact {
        id: FactId(id),
        subject,
        text: text.to_owned(),
        origin: Origin::Guild(GUILD),
        by: USER,
        at: UnixMillis(START),
        link: Some((CHANNEL, MessageId::new(id))),
        pinned: false,
        seen: 1,
        last_used: UnixMillis(START),
    }
}

#[tokio::test]
async fn layout_and_format_are_those_of_version_1() {
    let world = World::new();
    let files = world.open().await;
    files.append(&turn(HERE, 1)).await.unwrap();
    files.append(&turn(Scope::Direct(USER), 2)).await.unwrap();
    assert_eq!(
        world.files(),
        [
            "context/dms/99999.json",
            "context/guilds/12345/67890/99999.json"
        ]
    );
    let text = fs::read_to_string(world.path("context/guilds/12345/67890/99999.json")).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "version": 1,
      "createdAt": 1640188800000,
      "lastUpdated": 1640188800000,
      "expiresAt": 1640275200000,
      "lastTurn": 1,
      "messages": [
        {
          "role": "user",
          "content": "question 1",
          "timestamp": 1640188801000,
          "messageId": "10",
          "turnId": "t1",
          "turn": 1,
          "authorName": "Ada"
        },
        {
          "role": "assistant",
          "content": "answer 1",
          "timestamp": 1640188801000,
          "messageId": "11",
          "turnId": "t1",
          "turn": 1
        }
      ]
    }
    "#);
}

/// The documented example, verbatim.
const EXAMPLE_FILE: &str = r#"{
  "version": 1,
  "createdAt": 1640188800000,
  "lastUpdated": 1640188900000,
  "expiresAt": 1640275200000,
  "messages": [
    {
      "role": "user",
      "content": "user message here",
      "timestamp": 1640188800000
    },
    {
      "role": "assistant",
      "content": "assistant response here",
      "timestamp": 1640188850000
    }
  ]
}"#;

#[tokio::test]
async fn the_documented_file_is_loaded_and_continued() {
    let world = World::new();
    world.put("context/guilds/12345/67890/99999.json", EXAMPLE_FILE);
    world.put("context/dms/99999.json", EXAMPLE_FILE);
    let files = world.open().await;
    for scope in [HERE, Scope::Direct(USER)] {
        let documented = ["user message here", "assistant response here"];
        assert_eq!(texts(&files, scope).await, documented);
        assert_eq!(files.append(&turn(scope, 100)).await.unwrap(), 2);
        let all = texts(&files, scope).await;
        assert_eq!(all[..2], documented);
        assert_eq!(all[2..], ["question 100", "answer 100"]);
    }
    let rows = files
        .records(Kind::Messages, None, None, 100)
        .await
        .unwrap();
    let Record::Message(first) = &rows.records[0] else {
        panic!("a row")
    };
    assert_eq!((first.scope, first.ordinal, first.owner), (HERE, 1, USER));
    assert_eq!(first.timestamp, UnixMillis(START));
}

#[tokio::test]
async fn the_newest_whole_turns_within_fifteen_messages_are_kept() {
    let world = World::new();
    let files = world.open().await;
    for number in 1..=20 {
        assert_eq!(files.append(&turn(HERE, number)).await.unwrap(), number);
    }
    let kept = texts(&files, HERE).await;
    assert_eq!(kept.len(), 14);
    assert_eq!(kept[0], "question 14");
    // A replaced turn keeps its place.
    let mut again = turn(HERE, 20);
    again[1].content = "better".to_owned();
    assert_eq!(files.append(&again).await.unwrap(), 20);
    assert_eq!(texts(&files, HERE).await[13], "better");
}

#[tokio::test]
async fn a_conversation_expires_a_day_after_it_began() {
    let world = World::new();
    let files = world.open().await;
    files.append(&turn(HERE, 1)).await.unwrap();
    world.set_time(START + DAY - 1);
    files.append(&turn(HERE, 2)).await.unwrap();
    let stats = |exists, message_count, left: Option<u64>| ConversationStats {
        exists,
        message_count,
        expires_in: left.map(Duration::from_millis),
    };
    let now = UnixMillis(START + DAY - 1);
    let found = files.conversation(HERE, now).await.unwrap();
    assert_eq!(found, stats(true, 4, Some(1)));
    // Appending does not extend its life: reading it removes it.
    world.set_time(START + DAY);
    assert_eq!(texts(&files, HERE).await, Vec::<String>::new());
    assert_eq!(world.files(), Vec::<String>::new());
    let found = files
        .conversation(HERE, UnixMillis(START + DAY))
        .await
        .unwrap();
    assert_eq!(found, stats(false, 0, None));
    // A new one starts.
    files.append(&turn(HERE, 3)).await.unwrap();
    assert_eq!(texts(&files, HERE).await, ["question 3", "answer 3"]);
}

#[tokio::test]
async fn the_sweep_removes_what_expired_and_nothing_else() {
    let world = World::new();
    let files = world.open().await;
    files.append(&turn(HERE, 1)).await.unwrap();
    world.set_time(START + DAY / 2);
    files.append(&turn(Scope::Direct(USER), 2)).await.unwrap();
    assert_eq!(files.sweep(UnixMillis(START + DAY)).await.unwrap(), 2);
    assert_eq!(world.files(), ["context/dms/99999.json"]);
    assert!(
        !world.path("context/guilds/12345").exists(),
        "empty folders go"
    );
}

#[track_caller]
fn check_needs_database<T: std::fmt::Debug>(result: Result<T, Error>, what: &str) {
    let text = result.unwrap_err().to_string();
    assert!(
        text.starts_with(what) && text.contains("need a database"),
        "{text}"
    );
}

#[tokio::test]
async fn what_needs_a_database_says_so_and_writes_nothing() {
    let world = World::new();
    let files = world.open().await;
    for scope in [
        Scope::User(USER),
        Scope::Thread {
            guild: GUILD,
            channel: CHANNEL,
        },
    ] {
        check_needs_database(
            files.append(&turn(scope, 1)).await,
            "other scopes than member",
        );
    }
    let mut foreign = turn(HERE, 1);
    for row in &mut foreign {
        row.agent = "other".parse().unwrap();
    }
    check_needs_database(
        files.append(&foreign).await,
        "agents other than the default one",
    );
    let tools = [row(HERE, 1, StoredRole::ToolUse, "")];
    check_needs_database(files.append(&tools).await, "calls of tools");
    check_needs_database(
        files.snapshots(USER, None, None, 9).await,
        "saved conversations",
    );
    assert_eq!(world.files(), Vec::<String>::new());
}

#[tokio::test]
async fn a_corrupt_file_is_set_aside_and_the_rest_works() {
    let world = World::new();
    let path = "context/guilds/12345/67890/99999.json";
    world.put(path, r#"{"version":1,"messages":[{"role":"#);
    world.put("users/99999.json", "null");
    let files = world.open().await;
    assert_eq!(texts(&files, HERE).await, Vec::<String>::new());
    assert_eq!(
        files.facts(Subject::User(USER), usize::MAX).await.unwrap(),
        []
    );
    files.append(&turn(HERE, 1)).await.unwrap();
    assert_eq!(
        world.files(),
        [
            path.to_owned(),
            format!("{path}.corrupt-1"),
            "users/99999.json.corrupt-1".to_owned()
        ]
    );
    // It may hold anything of that user's.
    files.purge(&Purge::User(USER)).await.unwrap();
    assert_eq!(world.files(), Vec::<String>::new());
}

/// What is left of a file of which something was lost, be it valid JSON or not.
const REMAINS: [&str; 5] = [
    "",
    "{",
    "{}",
    r#"{"version":1}"#,
    r#"{"version":1,"entries":null}"#,
];

/// What says no is never taken for a yes.
#[tokio::test]
async fn a_corrupt_file_of_what_is_forbidden_is_refused_and_kept() {
    let now = UnixMillis(1);
    for text in REMAINS {
        let world = World::new();
        let paths = [
            "context/opt_outs.json",
            "context/settings/12345.json",
            "context/markers/guilds/12345.json",
            "context/markers/dms/99999.json",
            "context/markers/everybody.json",
        ];
        for path in paths {
            world.put(path, text);
        }
        let files = world.open().await;
        let check = |error: Error, path: &str| {
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains(path), "{error}");
        };
        check(files.opt_outs().await.unwrap_err(), paths[0]);
        check(
            files.set_opt_out(USER, Some(now)).await.unwrap_err(),
            paths[0],
        );
        check(files.settings().await.unwrap_err(), paths[1]);
        let settings = GuildSettings::default();
        check(
            files.set_settings(GUILD, &settings).await.unwrap_err(),
            paths[1],
        );
        let agent = AgentName::default_agent();
        for (guild, path) in [(Some(GUILD), paths[2]), (None, paths[3])] {
            check(
                files.cleared_at(&agent, guild, USER).await.unwrap_err(),
                path,
            );
        }
        for (guild, user, path) in [
            (Some(GUILD), Some(USER), paths[2]),
            (None, Some(USER), paths[3]),
            (None, None, paths[4]),
        ] {
            let key = ClearKey {
                agent: agent.clone(),
                guild,
                user,
            };
            check(files.clear(&key, now).await.unwrap_err(), path);
        }
        for path in paths {
            assert_eq!(fs::read_to_string(world.path(path)).unwrap(), text);
        }
    }
}

/// All others are set aside, as they are, and never taken for files without entries.
#[tokio::test]
async fn what_is_left_of_any_other_file_is_set_aside() {
    for text in REMAINS {
        let world = World::new();
        let paths = [
            "context/agents.json",
            "context/departures.json",
            "context/dms/99999.json",
            "context/guilds/12345/67890/99999.json",
            "servers/12345.json",
            "users/99999.json",
        ];
        for path in paths {
            world.put(path, text);
        }
        let files = world.open().await;
        for scope in [HERE, Scope::Direct(USER)] {
            assert_eq!(texts(&files, scope).await, Vec::<String>::new());
        }
        for subject in [Subject::User(USER), Subject::Server(GUILD)] {
            assert_eq!(files.facts(subject, usize::MAX).await.unwrap(), []);
        }
        assert_eq!(files.departures().await.unwrap(), []);
        for kind in [Kind::Agents, Kind::Departures] {
            files.records(kind, None, None, 9).await.unwrap();
        }
        assert_eq!(world.files(), paths.map(|path| format!("{path}.corrupt-1")));
    }
}

#[tokio::test]
async fn a_newer_file_is_refused_and_left_unchanged() {
    let world = World::new();
    let text = r#"{"version":2,"turns":[]}"#;
    world.put("context/dms/99999.json", text);
    let files = world.open().await;
    let error = files
        .append(&turn(Scope::Direct(USER), 1))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Newer { found: 2, .. }), "{error}");
    assert_eq!(
        fs::read_to_string(world.path("context/dms/99999.json")).unwrap(),
        text
    );
}

#[tokio::test]
async fn a_file_that_cannot_be_purged_does_not_stop_the_others() {
    let world = World::new();
    let newer = r#"{"version":2}"#;
    world.put("context/guilds/12345/67890/1.json", newer);
    world.put("users/1.json", newer);
    let files = world.open().await;
    files.append(&turn(HERE, 1)).await.unwrap();
    let about_user = fact(2, Subject::User(USER), "Likes tea");
    files.put_facts(&[about_user]).await.unwrap();
    let error = files.purge(&Purge::Guild(GUILD)).await.unwrap_err();
    assert!(error.to_string().contains("67890/1.json"), "{error}");
    assert_eq!(
        world.files(),
        ["context/guilds/12345/67890/1.json", "users/1.json"]
    );
}

#[tokio::test]
async fn a_file_where_a_folder_should_be_is_named() {
    let world = World::new();
    world.put("context/guilds/12345", "");
    let files = world.open().await;
    let error = files.append(&turn(HERE, 1)).await.unwrap_err().to_string();
    assert!(error.contains("context/guilds/12345"), "{error}");
    files.append(&turn(Scope::Direct(USER), 2)).await.unwrap();

    let world = World::new();
    world.put("context", "");
    let error = world.try_open().await.err().unwrap().to_string();
    assert!(error.contains("context"), "{error}");
}

/// Nor does it go on in a folder that may be another process's by then.
#[tokio::test]
async fn closing_ends_a_purge_of_many_files() {
    let world = World::new();
    let files = Arc::new(world.open().await);
    for user in 1..=200 {
        let scope = Scope::Member {
            guild: GUILD,
            channel: CHANNEL,
            user: UserId::new(user),
        };
        files.append(&turn(scope, user)).await.unwrap();
    }
    let purge = Purge::Before(UnixMillis(START + 10 * DAY));
    let (purged, closed) = tokio::join!(files.purge(&purge), files.close());
    closed.unwrap();
    let left = world.files().len();
    assert!(
        purged.is_err() || left == 0,
        "{left} are left of what was said to be gone"
    );
    assert!(files.purge(&purge).await.is_err(), "it is closed");
}

#[tokio::test]
async fn a_folder_belongs_to_one_process() {
    let world = World::new();
    let first = world.open().await;
    let error = world.try_open().await.err().unwrap().to_string();
    assert!(
        error.contains("context") && error.contains("in use"),
        "{error}"
    );
    // Also through a link.
    let link = world.path("link");
    std::os::unix::fs::symlink(world.path("context"), &link).unwrap();
    let clock = Arc::new(|| UnixMillis(START));
    let folders = [link, world.path("users2"), world.path("servers2")];
    let error = Files::open(folders, clock).await.err().unwrap();
    assert!(error.to_string().contains("in use"), "{error}");
    first.close().await.unwrap();
    world.open().await;
}

/// A bot that starts while they are read is not refused, and nothing is made.
#[tokio::test]
async fn reading_keeps_no_process_out() {
    let world = World::new();
    let look = async |folders| Files::look(folders, world.clock()).await;
    let empty = look(world.folders()).await.unwrap();
    assert_eq!(
        empty
            .records(Kind::Messages, None, None, 9)
            .await
            .unwrap()
            .records,
        []
    );
    assert!(!world.path("context").exists());
    let files = world.open().await;
    files.append(&turn(HERE, 1)).await.unwrap();
    files.close().await.unwrap();
    let looking = look(world.folders()).await.unwrap();
    let files = world.open().await;
    files.append(&turn(HERE, 2)).await.unwrap();
    let found = looking
        .records(Kind::Messages, None, None, 9)
        .await
        .unwrap();
    assert_eq!(found.records.len(), 2, "as of when it was opened");
    looking.close().await.unwrap();
    // A folder is used once, there or not.
    for both in ["context", "none"] {
        let folders = [both, both, "servers"].map(|name| world.path(name));
        let error = look(folders).await.map(drop).unwrap_err();
        assert!(error.to_string().contains("in use"), "{error}");
    }
}

#[tokio::test]
async fn half_written_files_are_removed_at_the_start() {
    let world = World::new();
    let files = world.open().await;
    files.append(&turn(HERE, 1)).await.unwrap();
    files.close().await.unwrap();
    world.put("context/guilds/12345/67890/.x1.clew-tmp", "{\"ver");
    world.put("users/.x2.clew-tmp", "{");
    let files = world.open().await;
    assert_eq!(world.files(), ["context/guilds/12345/67890/99999.json"]);
    assert_eq!(texts(&files, HERE).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_lose_nothing() {
    let world = World::new();
    let files = world.open().await;
    let scope = |user: u64| Scope::Member {
        guild: GUILD,
        channel: CHANNEL,
        user: UserId::new(user),
    };
    let mut writers = Vec::new();
    for number in 1..=7 {
        for user in 1..=4 {
            let (turns, facts) = (files.clone(), files.clone());
            writers.push(tokio::spawn(async move {
                turns.append(&turn(scope(user), number)).await.unwrap();
            }));
            writers.push(tokio::spawn(async move {
                let fact = fact(user * 100 + number, Subject::Server(GUILD), "x");
                facts.put_facts(&[fact]).await.unwrap();
            }));
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    for user in 1..=4 {
        let mut kept = texts(&files, scope(user)).await;
        kept.sort();
        assert_eq!(kept.len(), 14, "{kept:?}");
        assert_eq!(kept[13], "question 7");
    }
    assert_eq!(
        files
            .facts(Subject::Server(GUILD), usize::MAX)
            .await
            .unwrap()
            .len(),
        28
    );
}

#[tokio::test]
async fn names_that_are_no_ids_are_not_touched() {
    let world = World::new();
    for name in [
        "context/guilds/../secret.json",
        "context/guilds/x/1/2.json",
        "context/guilds/1/2/007.json",
        "context/guilds/1/2/notes.txt",
        "context/dms/me.json",
    ] {
        fs::create_dir_all(world.path("context/guilds")).unwrap();
        world.put(name, "not ours");
    }
    let before = world.files();
    let files = world.open().await;
    files.sweep(UnixMillis(START + 9 * DAY)).await.unwrap();
    let before_all = Purge::Before(UnixMillis(i64::MAX));
    files.purge(&before_all).await.unwrap();
    assert_eq!(world.files(), before);
}

#[tokio::test]
async fn a_marker_applies_to_new_files() {
    let world = World::new();
    let files = world.open().await;
    let agent = AgentName::default_agent();
    let key = |user| ClearKey {
        agent: AgentName::default_agent(),
        guild: Some(GUILD),
        user,
    };
    let at = |ms| UnixMillis(START + ms);
    files.clear(&key(Some(USER)), at(5000)).await.unwrap();
    files.clear(&key(Some(USER)), at(4000)).await.unwrap();
    let marker = |user: u64| files.cleared_at(&agent, Some(GUILD), UserId::new(user));
    assert_eq!(marker(99999).await.unwrap(), Some(at(5000)));
    assert_eq!(marker(1).await.unwrap(), None);
    files.clear(&key(None), at(6000)).await.unwrap();
    assert_eq!(marker(1).await.unwrap(), Some(at(6000)));
    // A clock that went back does not put a turn before the marker.
    files.append(&turn(HERE, 1)).await.unwrap();
    let query = WindowQuery {
        scope: HERE,
        agent: agent.clone(),
        since: at(6000),
        cleared: None,
        with_tools: true,
        limit: 9,
    };
    assert_eq!(files.window(&query).await.unwrap().len(), 2);
    let text = fs::read_to_string(world.path("context/guilds/12345/67890/99999.json")).unwrap();
    assert!(text.contains(r#""clearedAt": 1640188806000"#), "{text}");
}

#[tokio::test]
async fn a_moved_file_keeps_its_marker() {
    let world = World::new();
    let marked = EXAMPLE_FILE.replacen(
        r#""messages""#,
        r#""clearedAt": 1640188820000, "messages""#,
        1,
    );
    world.put("context/guilds/12345/67890/99999.json", &marked);
    let files = world.open().await;
    assert_eq!(texts(&files, HERE).await, ["assistant response here"]);
}

#[tokio::test]
async fn a_deleted_trigger_removes_its_turn_and_a_deleted_answer_only_itself() {
    let world = World::new();
    let files = world.open().await;
    for scope in [HERE, Scope::Direct(USER)] {
        for number in 1..=3 {
            files.append(&turn(scope, number)).await.unwrap();
        }
    }
    let gone = |channel, id| Purge::Messages {
        channel,
        ids: vec![MessageId::new(id)],
    };
    for channel in [CHANNEL, ChannelId::new(555)] {
        let purged = files.purge(&gone(channel, 10)).await.unwrap();
        assert_eq!(purged.iter().collect::<Vec<_>>(), [(Kind::Messages, 2)]);
        let purged = files.purge(&gone(channel, 21)).await.unwrap();
        assert_eq!(purged.total(), 1);
    }
    for scope in [HERE, Scope::Direct(USER)] {
        assert_eq!(
            texts(&files, scope).await,
            ["question 2", "question 3", "answer 3"]
        );
    }
    let message = MessageId::new(30);
    assert_eq!(
        files
            .edit_message(CHANNEL, message, "edited")
            .await
            .unwrap(),
        1
    );
    assert_eq!(texts(&files, HERE).await[1], "edited");
    let held = files.held_messages(CHANNEL, MessageId::new(20), MessageId::new(30));
    assert_eq!(
        held.await.unwrap(),
        [MessageId::new(20), MessageId::new(30)]
    );
}

#[tokio::test]
async fn facts_are_in_the_profile_folders_and_removed_with_their_message() {
    let world = World::new();
    let files = world.open().await;
    let about_server = fact(1, Subject::Server(GUILD), "The pump leaks");
    let about_user = fact(2, Subject::User(USER), "Likes tea");
    files
        .put_facts(&[about_server.clone(), about_user.clone()])
        .await
        .unwrap();
    assert_eq!(world.files(), ["servers/12345.json", "users/99999.json"]);
    files.close().await.unwrap();
    let files = world.open().await;
    let found = files.facts(Subject::User(USER), usize::MAX).await.unwrap();
    assert_eq!(found, [about_user]);
    assert_eq!(files.members(GUILD).await.unwrap(), [USER]);
    let purge = Purge::Messages {
        channel: CHANNEL,
        ids: vec![MessageId::new(2)],
    };
    assert_eq!(files.purge(&purge).await.unwrap().total(), 1);
    assert_eq!(world.files(), ["servers/12345.json"]);
    assert_eq!(files.remove_facts(&[FactId(1)]).await.unwrap(), 1);
    assert_eq!(world.files(), Vec::<String>::new());
}

#[tokio::test]
async fn pages_of_entries_hold_each_once() {
    let world = World::new();
    let files = world.open().await;
    for number in 1..=5 {
        let scope = Scope::Direct(UserId::new(number));
        files.append(&turn(scope, number)).await.unwrap();
        files.append(&turn(HERE, number)).await.unwrap();
    }
    let mut all = Vec::new();
    let mut after: Option<Cursor> = None;
    loop {
        let page = files.records(Kind::Messages, None, after.as_ref(), 3);
        let page = page.await.unwrap();
        assert!(page.records.len() <= 3);
        all.extend(page.records);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(all.len(), 20);
    // Copying to another store loses nothing.
    let other = World::new();
    let copy = other.open().await;
    copy.write(&all).await.unwrap();
    let copied = copy.records(Kind::Messages, None, None, 100).await.unwrap();
    assert_eq!(copied.records, all);
    assert_eq!(copy.stats().await.unwrap(), files.stats().await.unwrap());
}

#[test]
fn a_path_is_made_of_numbers_only() {
    for text in ["../1", "1/..", "", "0", "-1", "1.json"] {
        assert!(text.parse::<UserId>().is_err(), "{text:?}");
    }
    assert!(Path::new("a/1.json").parent().is_some());
}
