//! A place with a store, and records of every kind to put into it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use clew_context::model::{
    ChannelId, ContentSource, GuildId, MessageId, TurnId, UnixMillis, UserId, fixed_clock,
};
use clew_store::model::{
    AgentName, ClearKey, ContextSnapshot, ContextSnapshotInfo, Fact, FactId, GuildSettings, Origin,
    ReceiptPerson, Scope, StoreAddress, StoredMessage, StoredReceipt, StoredRole, Subject,
};
use clew_store::outputs::{Disk, NewOutput, OutputSettings, ToolOutputs};
use clew_store::{Cursor, Folders, Kind, Record, Store, Transcripts};
use tempfile::TempDir;

pub(super) const ADA: UserId = UserId::new(7);
pub(super) const GRACE: UserId = UserId::new(8);
pub(super) const GUILD: GuildId = GuildId::new(11);
pub(super) const CHANNEL: ChannelId = ChannelId::new(22);
/// In all of Ada's texts.
pub(super) const MARKER: &str = "zanzibar";
/// The turns of Ada's long conversation: more rows than are read at once.
pub(super) const TURNS: u64 = 600;
/// When the world's clock starts, in Unix milliseconds; in May 2026.
const START_MS: i64 = 1_780_000_000_000;

/// A working directory for the program, and its settings.
pub(super) struct Home {
    folder: TempDir,
    store: String,
}

impl Home {
    pub(super) fn new(store: &str) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            store: store.to_owned(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `clew store`; returns exit code, standard output and standard error.
    pub(super) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_clew"));
        command.arg("store").args(arguments);
        let output = self.with_settings(&mut command).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code().unwrap(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// Has a command run here, with nothing else in its environment.
    pub(super) fn with_settings<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env_clear().current_dir(self.folder.path());
        command.env("PATH", "/usr/bin:/bin");
        command.env("CONTEXT_STORE", &self.store);
        command.env("STATE_DIR", "var");
        command.env("DM_LOGS_DIR", "logs");
        command.env("AGENTS_DIR", "agents");
        command.env("USER_PROFILE_DIR", "profiles/users");
        command.env("SERVER_PROFILE_DIR", "profiles/servers")
    }

    pub(super) async fn open(&self, address: &str) -> Store {
        let address = match address.parse().unwrap() {
            StoreAddress::Sqlite(path) => StoreAddress::Sqlite(self.folder.path().join(path)),
            StoreAddress::Files(path) => StoreAddress::Files(self.folder.path().join(path)),
            address @ StoreAddress::Postgres(_) => address,
        };
        let folders = Folders {
            agents: self.path("agents"),
            users: self.path("profiles/users"),
            servers: self.path("profiles/servers"),
        };
        let now = clew::app::system_clock();
        Store::open(&address, &folders, now).await.unwrap()
    }

    /// Opens the configured store.
    pub(super) async fn open_own(&self) -> Store {
        self.open(&self.store).await
    }

    /// Writes to the configured store.
    pub(super) async fn fill(&self, records: &[Record]) {
        let store = self.open(&self.store).await;
        store.write(records).await.unwrap();
        store.close().await.unwrap();
    }

    pub(super) async fn log(&self, turn: &[StoredMessage]) {
        let logs = Transcripts::open(self.path("logs"), None).await.unwrap();
        logs.append(turn).await.unwrap();
    }

    /// Leaves results of tools behind, as a bot with `TOOL_OUTPUT_RESUME` does: Ada's,
    /// one of Grace's that was made from Ada's words, and another of Grace's.
    pub(super) async fn leave_outputs(&self) {
        let settings = OutputSettings {
            resume: true,
            ..OutputSettings::new(self.path("var/tool_outputs"))
        };
        let clock = fixed_clock(at(1));
        let outputs = ToolOutputs::open(settings, Arc::new(Disk::default()), clock);
        let outputs = outputs.await.unwrap();
        let of_ada = ContentSource {
            guild: Some(GUILD),
            channel: CHANNEL,
            message: Some(MessageId::new(5)),
            author: Some(ADA),
        };
        for (owner, result, sources) in [
            (ADA, MARKER, vec![]),
            (GRACE, MARKER, vec![of_ada]),
            (GRACE, "Grace", vec![]),
        ] {
            let output = NewOutput {
                tool_name: "get_message".to_owned(),
                args: serde_json::Map::new(),
                result: result.into(),
                task_id: None,
                query_id: None,
                scope: member(owner),
                guild: Some(GUILD),
                owner,
                sources,
                asked: at(1),
                began: at(1),
            };
            outputs.save_context(output).await.unwrap();
        }
        outputs.close().await.unwrap();
    }

    /// All records of the configured store as lines, sorted.
    pub(super) async fn lines(&self) -> Vec<String> {
        self.lines_at(&self.store).await
    }

    pub(super) async fn lines_at(&self, address: &str) -> Vec<String> {
        let store = self.open(address).await;
        let mut lines: Vec<String> = all(&store).await.iter().map(line_of).collect();
        store.close().await.unwrap();
        lines.sort();
        lines
    }
}

pub(super) async fn all(store: &Store) -> Vec<Record> {
    let mut records = Vec::new();
    for kind in Kind::ALL {
        let mut after: Option<Cursor> = None;
        loop {
            let page = store
                .records(kind, None, after.as_ref(), 1_000)
                .await
                .unwrap();
            records.extend(page.records);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    records
}

pub(super) fn line_of(record: &Record) -> String {
    record.to_line()
}

/// Records as lines, sorted.
pub(super) fn lines_of(records: &[Record]) -> Vec<String> {
    let mut lines: Vec<String> = records.iter().map(line_of).collect();
    lines.sort();
    lines
}

pub(super) fn at(second: u64) -> UnixMillis {
    fixed_clock(UnixMillis(
        START_MS + i64::try_from(second).unwrap() * 1_000,
    ))()
}

pub(super) fn member(user: UserId) -> Scope {
    Scope::Member {
        guild: GUILD,
        channel: CHANNEL,
        user,
    }
}

pub(super) fn row(scope: Scope, owner: UserId, turn: u64, role: StoredRole) -> StoredMessage {
    let (guild, channel) = match scope {
        Scope::Member { guild, channel, .. } | Scope::Thread { guild, channel } => {
            (Some(guild), channel)
        }
        Scope::User(_) => (Some(GUILD), CHANNEL),
        Scope::Direct(user) => (None, ChannelId::new(user.get() * 10)),
    };
    let word = if owner == ADA { MARKER } else { "Grace" };
    let is_asked = role == StoredRole::User;
    StoredMessage {
        scope,
        agent: AgentName::default_agent(),
        turn: TurnId(turn),
        ordinal: turn,
        role,
        guild,
        channel,
        owner,
        author_name: is_asked.then(|| format!("{word} \"ÅÄÖ\"")),
        content: format!("{word} {turn}\n\t🧵 {}", role.as_str()),
        tool_calls: None,
        tool_call_id: None,
        timestamp: at(turn),
        message: Some(MessageId::new(turn * 10 + u64::from(!is_asked))),
        parts: if is_asked {
            vec![]
        } else {
            vec![MessageId::new(turn * 10 + 2)]
        },
        target: is_asked.then(|| MessageId::new(turn * 10)),
        restored_from: None,
        sources: Vec::new(),
    }
}

fn turn(scope: Scope, owner: UserId, number: u64) -> [Record; 2] {
    [StoredRole::User, StoredRole::Assistant]
        .map(|role| Record::Message(row(scope, owner, number, role)))
}

/// A turn with two identical tool calls.
fn turn_with_tools(number: u64) -> Vec<Record> {
    let call = |role| StoredMessage {
        message: None,
        parts: vec![],
        tool_calls: (role == StoredRole::ToolUse).then(|| r#"[{"name":"dice"}]"#.to_owned()),
        tool_call_id: (role == StoredRole::ToolResult).then(|| "call".to_owned()),
        ..row(member(ADA), ADA, number, role)
    };
    let rolls = [
        row(member(ADA), ADA, number, StoredRole::User),
        call(StoredRole::ToolUse),
        call(StoredRole::ToolResult),
        call(StoredRole::ToolUse),
        call(StoredRole::ToolResult),
        row(member(ADA), ADA, number, StoredRole::Assistant),
    ];
    rolls.into_iter().map(Record::Message).collect()
}

fn fact(id: u64, subject: Subject, by: UserId) -> Record {
    let word = if by == ADA { MARKER } else { "Grace" };
    Record::Fact(Fact {
        id: FactId(id),
        subject,
        text: format!("likes {word}"),
        origin: Origin::Guild(GUILD),
        by,
        at: at(id),
        link: Some((CHANNEL, MessageId::new(id))),
        pinned: id.is_multiple_of(2),
        seen: 2,
        last_used: at(id + 1),
    })
}

pub(super) fn snapshot() -> Record {
    let messages = vec![row(member(ADA), ADA, 3, StoredRole::User)];
    Record::Snapshot(ContextSnapshot {
        info: ContextSnapshotInfo {
            id: "0190b5a2-1111-4222-8333-444455556666".parse().unwrap(),
            agent: AgentName::default_agent(),
            owner: ADA,
            guild: Some(GUILD),
            timestamp: at(50),
            description: Some(format!("{MARKER} talk")),
            summary: format!("About {MARKER}."),
            message_count: messages.len(),
            window_start: at(1),
            window_end: at(50),
        },
        messages,
    })
}

fn receipt() -> Record {
    let asker = ReceiptPerson {
        guild: Some(GUILD),
        author: Some(ADA),
    };
    Record::Receipt(StoredReceipt {
        turn: TurnId(3),
        scope: member(ADA),
        guild: Some(GUILD),
        channel: CHANNEL,
        owner: ADA,
        is_private: false,
        trigger: Some(MessageId::new(3)),
        messages: vec![MessageId::new(4)],
        at: at(3),
        people: [asker].into(),
        body: format!(r#"{{"agent":"{MARKER}"}}"#),
    })
}

/// What every store can hold: lists, and short conversations of the default agent.
pub(super) fn plain() -> Vec<Record> {
    let key = |user| ClearKey {
        agent: AgentName::default_agent(),
        guild: Some(GUILD),
        user,
    };
    let settings = GuildSettings {
        learning: Some(true),
        channels_off: [CHANNEL].into(),
        ..GuildSettings::default()
    };
    let mut records = vec![
        Record::Marker(key(Some(ADA)), at(2)),
        Record::Marker(key(None), at(1)),
        fact(1, Subject::User(ADA), ADA),
        fact(2, Subject::Server(GUILD), ADA),
        fact(3, Subject::Server(GUILD), GRACE),
        fact(4, Subject::User(GRACE), GRACE),
        Record::OptOut(ADA, at(60)),
        Record::OptOut(UserId::new(9), at(61)),
        Record::Settings(GUILD, settings),
        Record::Agent(AgentName::default_agent(), at(0)),
        Record::Departure(GuildId::new(12), at(70)),
    ];
    for number in 2_001..=2_003 {
        records.extend(turn(member(GRACE), GRACE, number));
        records.extend(turn(Scope::Direct(ADA), ADA, number + 100));
    }
    records
}

/// Records of every kind, more than are read at once, including those that files
/// cannot hold.
pub(super) fn everything() -> Vec<Record> {
    everything_with(TURNS)
}

/// The same with this many turns in Ada's long conversation.
pub(super) fn everything_with(turns: u64) -> Vec<Record> {
    let mut records = plain();
    for number in 1..=turns {
        records.extend(turn(member(ADA), ADA, number));
    }
    records.extend(turn_with_tools(turns + 1));
    let thread = Scope::Thread {
        guild: GUILD,
        channel: ChannelId::new(23),
    };
    records.extend(turn(thread, ADA, 3_000));
    records.extend(turn(Scope::User(ADA), ADA, 3_001));
    let other: AgentName = "scribe".parse().unwrap();
    records.push(Record::Message(StoredMessage {
        agent: other.clone(),
        ..row(member(GRACE), GRACE, 3_002, StoredRole::User)
    }));
    records.push(Record::Agent(other, at(5)));
    records.push(snapshot());
    records.push(receipt());
    records
}

/// A turn in direct messages, for the logs.
pub(super) fn logged(user: UserId) -> [StoredMessage; 2] {
    [StoredRole::User, StoredRole::Assistant]
        .map(|role| row(Scope::Direct(user), user, 2_101, role))
}
