//! Logs of direct messages: lines, rotation, and removal of lines.

use std::fs;
use std::path::Path;

use clew_context::model::{
    ChannelId, ContentSource, GuildId, MessageId, TurnId, UnixMillis, UserId,
};
use clew_store::model::{AgentName, Scope, StoredMessage, StoredRole};
use clew_store::{Kind, Purge, Restored, Transcripts};

const USER: UserId = UserId::new(7);
const CHANNEL: ChannelId = ChannelId::new(70);

fn turn(user: UserId, number: u64) -> [StoredMessage; 2] {
    [StoredRole::User, StoredRole::Assistant].map(|role| StoredMessage {
        scope: Scope::Direct(user),
        agent: AgentName::default_agent(),
        turn: TurnId(number),
        ordinal: 0,
        role,
        guild: None,
        channel: ChannelId::new(user.get() * 10),
        owner: user,
        author_name: None,
        content: format!("{} {number}", role.as_str()),
        tool_calls: None,
        tool_call_id: None,
        timestamp: UnixMillis(i64::try_from(number).unwrap() * 1000),
        message: Some(MessageId::new(
            number * 10 + u64::from(role == StoredRole::Assistant),
        )),
        parts: vec![],
        target: None,
        restored_from: None,
        sources: Vec::new(),
    })
}

async fn open(folder: &Path, most: Option<u64>) -> Transcripts {
    Transcripts::open(folder.to_owned(), most).await.unwrap()
}

/// The texts of a user's lines.
async fn texts(logs: &Transcripts, user: UserId) -> Vec<String> {
    let lines = logs.lines(user).await.unwrap();
    let text = |line: String| {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        line["text"].as_str().unwrap().to_owned()
    };
    lines.into_iter().map(text).collect()
}

#[tokio::test]
async fn what_was_made_from_messages_elsewhere_is_not_logged() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(folder.path(), None).await;
    let mut turn = turn(USER, 1);
    turn[1].sources.push(ContentSource {
        guild: Some(GuildId::new(1)),
        channel: ChannelId::new(2),
        message: None,
        author: None,
    });
    logs.append(&turn).await.unwrap();
    assert_eq!(texts(&logs, USER).await, ["user 1"]);
}

#[tokio::test]
async fn each_message_of_a_turn_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(folder.path(), None).await;
    logs.append(&turn(USER, 1)).await.unwrap();
    let text = fs::read_to_string(folder.path().join("7.jsonl")).unwrap();
    insta::assert_snapshot!(text, @r#"
    {"ts":"1970-01-01T00:00:01Z","role":"user","user":"7","channel":"70","turn":"t1","message":"10","text":"user 1"}
    {"ts":"1970-01-01T00:00:01Z","role":"assistant","user":"7","channel":"70","turn":"t1","message":"11","text":"assistant 1"}
    "#);
    let mut elsewhere = turn(USER, 2);
    for row in &mut elsewhere {
        row.guild = Some(GuildId::new(1));
    }
    logs.append(&elsewhere).await.unwrap();
    assert_eq!(
        texts(&logs, USER).await.len(),
        2,
        "only direct messages are logged"
    );
}

#[tokio::test]
async fn a_log_is_rotated_and_one_older_log_kept() {
    let folder = tempfile::tempdir().unwrap();
    let most = 600;
    let logs = open(folder.path(), Some(most)).await;
    for number in 1..=9 {
        logs.append(&turn(USER, number)).await.unwrap();
        for entry in fs::read_dir(folder.path()).unwrap() {
            assert!(entry.unwrap().metadata().unwrap().len() <= most);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    let kept = texts(&logs, USER).await;
    assert_eq!(kept.last().unwrap(), "assistant 9");
    assert_eq!(kept[0], "user 7");
}

#[tokio::test]
async fn a_torn_line_is_skipped_and_the_next_starts_afresh() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(folder.path(), None).await;
    logs.append(&turn(USER, 1)).await.unwrap();
    let path = folder.path().join("7.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend("{\"ts\":\"1970-01-01T00:00:02Z\",\"text\":\"t\u{e4}".as_bytes());
    bytes.pop();
    fs::write(&path, bytes).unwrap();
    let logs = open(folder.path(), None).await;
    logs.append(&turn(USER, 3)).await.unwrap();
    assert_eq!(
        texts(&logs, USER).await,
        ["user 1", "assistant 1", "user 3", "assistant 3"]
    );
}

#[tokio::test]
async fn a_purge_removes_lines_from_both_files() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(folder.path(), Some(600)).await;
    let other = UserId::new(8);
    for number in 1..=4 {
        logs.append(&turn(USER, number)).await.unwrap();
    }
    logs.append(&turn(other, 9)).await.unwrap();
    // Reopened, as by a new process.
    let logs = open(folder.path(), Some(600)).await;
    let of = |ids: &[u64]| Purge::Messages {
        channel: CHANNEL,
        ids: ids.iter().copied().map(MessageId::new).collect(),
    };
    let count = |purge: Purge| {
        let logs = logs.clone();
        async move { logs.purge(&purge).await.unwrap().total() }
    };
    assert_eq!(count(of(&[10])).await, 2);
    assert_eq!(count(of(&[21])).await, 1);
    assert_eq!(count(of(&[90, 999])).await, 0);
    assert_eq!(
        logs.edit_message(CHANNEL, MessageId::new(40), "edited")
            .await
            .unwrap(),
        1
    );
    let left = ["user 2", "user 3", "assistant 3", "edited", "assistant 4"];
    assert_eq!(texts(&logs, USER).await, left);
    let held = logs.held_messages(CHANNEL, MessageId::new(30), MessageId::new(40));
    assert_eq!(held.await.unwrap(), [30, 31, 40].map(MessageId::new));
    assert_eq!(count(Purge::Before(UnixMillis(4000))).await, 3);
    assert_eq!(count(Purge::Guild(GuildId::new(1))).await, 0);
    let stats = logs.stats().await.unwrap();
    assert_eq!((stats.kind, stats.entries), (Kind::Transcripts, 4));
    assert_eq!(count(Purge::User(USER)).await, 2);
    assert_eq!(count(Purge::Channel(ChannelId::new(80))).await, 2);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Turns 1 to 9 are restored into a log that has some of them. A file has room for two.
#[tokio::test]
async fn what_is_restored_takes_its_place_in_time_and_drops_nothing() {
    const MOST: u64 = 600;
    let folder = tempfile::tempdir().unwrap();
    let all = open(folder.path(), None).await;
    for number in 1..=9 {
        all.append(&turn(USER, number)).await.unwrap();
    }
    let all = all.lines(USER).await.unwrap();
    let check = async |there: &[u64], most: Option<u64>, expected: &[u64]| {
        let folder = tempfile::tempdir().unwrap();
        let logs = open(folder.path(), most).await;
        for number in there {
            logs.append(&turn(USER, *number)).await.unwrap();
        }
        let restored = logs.restore(USER, all.clone()).await.unwrap();
        let lines = |numbers: usize| 2 * numbers as u64;
        let counted = Restored {
            added: lines(expected.len() - there.len()),
            no_room: lines(9 - expected.len()),
        };
        assert_eq!(restored, counted, "{there:?}");
        let found = texts(&logs, USER).await;
        let pair = |number: &u64| [format!("user {number}"), format!("assistant {number}")];
        let expected: Vec<String> = expected.iter().flat_map(pair).collect();
        assert_eq!(found, expected, "{there:?}");
        for entry in fs::read_dir(folder.path()).unwrap() {
            let length = entry.unwrap().metadata().unwrap().len();
            assert!(length <= most.unwrap_or(u64::MAX), "{there:?}");
        }
        let again = logs.restore(USER, all.clone()).await.unwrap();
        assert_eq!((again.added, again.no_room), (0, counted.no_room));
        assert_eq!(texts(&logs, USER).await, found, "{there:?}");
    };
    check(&[], None, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
    check(&[4, 8], None, &[1, 2, 3, 4, 5, 6, 7, 8, 9]).await;
    check(&[], Some(MOST), &[6, 7, 8, 9]).await;
    // Full: rotating the current file would drop the other.
    check(&[5, 6, 7, 8], Some(MOST), &[5, 6, 7, 8]).await;
    check(&[7], Some(MOST), &[6, 7, 8, 9]).await;
    check(&[1, 2, 3], Some(MOST), &[1, 2, 3, 9]).await;
    // Older ones take what room the rotated file has.
    check(&[8, 9], Some(MOST), &[6, 7, 8, 9]).await;
}

/// A kill between the writing of both files loses nothing: no line goes from the rotated file, which is written
/// first, to the current one.
#[tokio::test]
async fn what_is_rotated_stays_so_when_the_limit_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(folder.path(), Some(600)).await;
    for number in [1, 2, 3] {
        logs.append(&turn(USER, number)).await.unwrap();
    }
    let rotated = folder.path().join("7.1.jsonl");
    let before = fs::read(&rotated).unwrap();
    let source = tempfile::tempdir().unwrap();
    let other = open(source.path(), None).await;
    other.append(&turn(USER, 4)).await.unwrap();
    let lines = other.lines(USER).await.unwrap();
    let logs = open(folder.path(), None).await;
    assert_eq!(logs.restore(USER, lines).await.unwrap().added, 2);
    assert_eq!(fs::read(&rotated).unwrap(), before);
    assert_eq!(texts(&logs, USER).await.len(), 8);
}

/// The limit may be lower than when the log was written, and a turn longer than it.
#[tokio::test]
async fn a_log_above_its_limit_takes_in_nothing_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let logs = open(folder.path(), None).await;
    for number in [3, 4, 5] {
        logs.append(&turn(USER, number)).await.unwrap();
    }
    let source = tempfile::tempdir().unwrap();
    let other = open(source.path(), None).await;
    other.append(&turn(USER, 9)).await.unwrap();
    let lines = other.lines(USER).await.unwrap();
    let path = folder.path().join("7.jsonl");
    let before = fs::read(&path).unwrap();
    let logs = open(folder.path(), Some(10)).await;
    let restored = logs.restore(USER, lines.clone()).await.unwrap();
    assert_eq!((restored.added, restored.no_room), (0, 2));
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let empty = tempfile::tempdir().unwrap();
    let logs = open(empty.path(), Some(10)).await;
    assert_eq!(logs.restore(USER, lines).await.unwrap().added, 2);
}
