//! Files of saved windows: their format, that nothing is lost, and that none is
//! written outside of the folder.

use std::fs;
use std::path::Path;

use clew_context::model::{ChannelId, GuildId, MessageId, TurnId, UnixMillis, UserId};
use clew_store::model::{
    AgentName, ContextSnapshot, ContextSnapshotInfo, Scope, StoredMessage, StoredRole,
};
use clew_store::{SUMMARY_REMOVED, SnapshotFiles, with_edit, without};
use proptest::prelude::*;

use super::records;

const GUILD: GuildId = GuildId::new(1);
const CHANNEL: ChannelId = ChannelId::new(2);
const OWNER: UserId = UserId::new(3);

fn row(message: u64, text: &str) -> StoredMessage {
    StoredMessage {
        scope: Scope::of(
            clew_store::model::ScopeKind::Member,
            Some(GUILD),
            CHANNEL,
            false,
            OWNER,
        ),
        agent: AgentName::default_agent(),
        turn: TurnId(16),
        ordinal: 1,
        role: StoredRole::User,
        guild: Some(GUILD),
        channel: CHANNEL,
        owner: OWNER,
        author_name: Some("Ada".to_owned()),
        content: text.to_owned(),
        tool_calls: None,
        tool_call_id: None,
        timestamp: time("2026-02-12T00:00:00Z"),
        message: Some(MessageId::new(message)),
        parts: vec![],
        target: None,
        restored_from: None,
        sources: Vec::new(),
    }
}

fn time(text: &str) -> UnixMillis {
    UnixMillis::parse(text).unwrap()
}

fn snapshot() -> ContextSnapshot {
    ContextSnapshot {
        info: ContextSnapshotInfo {
            id: "01234567-89ab-cdef-0123-456789abcdef".parse().unwrap(),
            agent: AgentName::default_agent(),
            owner: OWNER,
            guild: Some(GUILD),
            timestamp: time("2026-02-12T14:30:00Z"),
            description: Some("Working on auth refactor".to_owned()),
            summary: "Implemented JWT.".to_owned(),
            message_count: 2,
            window_start: time("2026-02-12T00:00:00Z"),
            window_end: time("2026-02-12T14:30:00.250Z"),
        },
        messages: vec![row(10, "one"), row(11, "two")],
    }
}

#[test]
fn the_file_has_its_documented_form() {
    let folder = tempfile::tempdir().unwrap();
    let files = SnapshotFiles::new(folder.path().to_owned());
    let mut snapshot = snapshot();
    snapshot.messages.truncate(1);
    files.write(&snapshot).unwrap();
    let name = "default/sessions/20260212T143000Z_01234567-89ab-cdef-0123-456789abcdef.json";
    let text = fs::read_to_string(folder.path().join(name)).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "session_id": "01234567-89ab-cdef-0123-456789abcdef",
      "timestamp": "2026-02-12T14:30:00Z",
      "description": "Working on auth refactor",
      "summary": "Implemented JWT.",
      "message_count": 2,
      "window_start": "2026-02-12T00:00:00Z",
      "window_end": "2026-02-12T14:30:00.25Z",
      "agent": "default",
      "owner": "3",
      "guild": "1",
      "messages": [
        {
          "role": "user",
          "content": "one",
          "timestamp": "2026-02-12T00:00:00Z",
          "scope": "member/1/2/3",
          "agent": "default",
          "turn": "t10",
          "ordinal": 1,
          "guild": "1",
          "channel": "2",
          "owner": "3",
          "author_name": "Ada",
          "message": "10"
        }
      ]
    }
    "#);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_written_is_read_back_and_stays_in_the_folder(snapshot in records::snapshot()) {
        let folder = tempfile::tempdir().unwrap();
        let files = SnapshotFiles::new(folder.path().join("agents"));
        files.write(&snapshot).unwrap();
        prop_assert_eq!(&files.read(&snapshot.info).unwrap(), &snapshot);
        let sessions = folder.path().join("agents").join(snapshot.info.agent.as_str()).join("sessions");
        let path = files.path(&snapshot.info);
        prop_assert_eq!(path.parent(), Some(sessions.as_path()));
        prop_assert!(files.remove(&snapshot.info).unwrap());
        prop_assert!(!files.remove(&snapshot.info).unwrap());
        prop_assert!(files.read(&snapshot.info).is_err());
    }
}

#[test]
fn a_file_of_somebody_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let files = SnapshotFiles::new(folder.path().to_owned());
    let snapshot = snapshot();
    files.write(&snapshot).unwrap();
    let mut info = snapshot.info;
    info.owner = UserId::new(4);
    let error = files.read(&info).unwrap_err();
    assert!(error.to_string().contains("20260212T143000Z"), "{error}");
}

#[test]
fn leftovers_of_a_kill_are_swept() {
    let folder = tempfile::tempdir().unwrap();
    let files = SnapshotFiles::new(folder.path().to_owned());
    files.write(&snapshot()).unwrap();
    let sessions = folder.path().join("default/sessions");
    fs::write(sessions.join(".x.clew-tmp"), "{").unwrap();
    files.sweep().unwrap();
    assert_eq!(fs::read_dir(sessions).unwrap().count(), 1);
    SnapshotFiles::new(Path::new("/nonexistent").to_owned())
        .sweep()
        .unwrap();
}

#[test]
fn a_purge_removes_rows_and_the_summary() {
    let full = snapshot();
    let is = |id| move |row: &StoredMessage| row.message == Some(MessageId::new(id));
    let rest = without(&full, is(10)).unwrap();
    assert_eq!(rest.messages, [row(11, "two")]);
    assert_eq!(rest.info.message_count, 1);
    assert_eq!(rest.info.summary, SUMMARY_REMOVED);
    assert_eq!(without(&full, is(12)), Some(full.clone()));
    assert_eq!(without(&full, |_| true), None);
}

#[test]
fn an_edit_applies_to_the_copy() {
    let full = snapshot();
    let edited = with_edit(&full, CHANNEL, MessageId::new(11), "three").unwrap();
    assert_eq!(edited.messages, [row(10, "one"), row(11, "three")]);
    assert_eq!(edited.info.summary, SUMMARY_REMOVED);
    let said_already = with_edit(&full, CHANNEL, MessageId::new(11), "two");
    assert_eq!(said_already.as_ref(), Some(&full));
    let mut long = full.clone();
    long.messages[1].role = StoredRole::Assistant;
    long.messages[1].parts = vec![MessageId::new(12)];
    assert_eq!(
        with_edit(&long, CHANNEL, MessageId::new(11), "a part"),
        None
    );
    let elsewhere = ChannelId::new(9);
    assert_eq!(
        with_edit(&full, elsewhere, MessageId::new(11), "three"),
        None
    );
}
