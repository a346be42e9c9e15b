//! Files of saved conversation windows; the store keeps the data about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Error, PartSize, Purge, disk, json};
use crate::model::{
    AgentName, ContextSnapshot, ContextSnapshotInfo, Scope, StoredMessage, StoredRole,
};
use clew_context::model::{ChannelId, ContentSource, MessageId, TurnId, UnixMillis};

/// Replaces a model's summary once messages it covers were deleted or edited,
/// since it may repeat them.
pub const SUMMARY_REMOVED: &str = "(summary removed: messages in it were deleted or edited)";
/// Largest file read, in bytes. Windows are bounded by days, not bytes; this is
/// far more than people write, and still fits in memory.
const LARGEST_FILE: u64 = 256 << 20;
/// Folder of saved windows inside an agent's folder.
const SESSIONS: &str = "sessions";

/// `AGENTS_DIR/{agent}/sessions/{UTC yyyymmddThhmmssZ}_{uuid}.json`. File names
/// consist only of agent name, time and id. All calls block.
#[derive(Debug, Clone)]
pub struct SnapshotFiles {
    agents_dir: PathBuf,
    place: Place,
}

/// Where the texts are.
#[derive(Debug, Clone)]
enum Place {
    Files,
    /// In files that another store uses, too.
    Shared,
    /// With a database in memory.
    Memory(Arc<Mutex<BTreeMap<PathBuf, ContextSnapshot>>>),
    /// With a database that several processes share; files are from before that.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only PostgreSQL is shared by several processes")
    )]
    Rows(Arc<dyn SnapshotRows>),
}

/// Keeps texts in place of files, by name. All calls block.
pub(crate) trait SnapshotRows: fmt::Debug + Send + Sync {
    fn put(&self, name: &str, text: &str) -> Result<(), Error>;
    fn get(&self, name: &str) -> Result<Option<String>, Error>;
    /// Returns whether it was there.
    fn remove(&self, name: &str) -> Result<bool, Error>;
    /// The size of all.
    fn bytes(&self) -> Result<u64, Error>;
    /// Removes those of which the store knows nothing any more.
    fn forget_lost(&self) -> Result<(), Error>;
}

impl SnapshotFiles {
    /// Uses this folder. Nothing is created until the first write.
    pub const fn new(agents_dir: PathBuf) -> Self {
        Self {
            agents_dir,
            place: Place::Files,
        }
    }

    /// In place of this folder's files.
    #[cfg(feature = "postgres")]
    pub(crate) fn in_rows(self, rows: Arc<dyn SnapshotRows>) -> Self {
        Self {
            place: Place::Rows(rows),
            ..self
        }
    }

    /// Nothing reaches a disk.
    pub(crate) fn in_memory() -> Self {
        Self {
            place: Place::Memory(Arc::default()),
            agents_dir: PathBuf::new(),
        }
    }

    /// The same, for files shared with another store: none is removed.
    pub const fn shared(agents_dir: PathBuf) -> Self {
        Self {
            agents_dir,
            place: Place::Shared,
        }
    }

    /// Writes or replaces a snapshot's file durably.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, snapshot: &ContextSnapshot) -> Result<(), Error> {
        let path = self.path(&snapshot.info);
        match &self.place {
            Place::Memory(memory) => {
                locked(memory).insert(path, snapshot.clone());
                Ok(())
            }
            Place::Rows(rows) => {
                rows.put(&name(&snapshot.info), &json::write_snapshot(snapshot))?;
                disk::remove(&path).map(drop)
            }
            Place::Files | Place::Shared => {
                disk::write(&path, json::write_snapshot(snapshot).as_bytes())
            }
        }
    }

    /// Reads a snapshot's file.
    ///
    /// # Errors
    ///
    /// It is missing, unreadable, or of another snapshot, agent, owner or
    /// server than asked for.
    pub fn read(&self, info: &ContextSnapshotInfo) -> Result<ContextSnapshot, Error> {
        let path = self.path(info);
        let corrupt = |source: Box<dyn std::error::Error + Send + Sync>| {
            Error::corrupt("read a snapshot", path.display(), source)
        };
        let row = match &self.place {
            Place::Rows(rows) => rows.get(&name(info))?,
            _ => None,
        };
        let found = match (&self.place, row) {
            (Place::Memory(memory), _) => locked(memory).get(&path).cloned().map(Ok),
            (_, Some(text)) => Some(json::read_snapshot(text.as_bytes())),
            (_, None) => disk::read(&path, LARGEST_FILE)?.map(|text| json::read_snapshot(&text)),
        };
        let found = found.ok_or_else(|| corrupt("the file is gone".into()))?;
        let snapshot = found.map_err(|error| corrupt(error.into()))?;
        let is_asked_for = snapshot.info.id == info.id
            && snapshot.info.agent == info.agent
            && snapshot.info.owner == info.owner
            && snapshot.info.guild == info.guild;
        if is_asked_for {
            Ok(snapshot)
        } else {
            Err(corrupt("it is of another snapshot".into()))
        }
    }

    /// Reads a snapshot's file for a list of everything. If it is missing, only
    /// the row's data is returned: a purge removes the file first, and if it
    /// was killed then, that must not block the rest.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), except that a missing file is no error.
    pub fn read_what_is_left(&self, info: &ContextSnapshotInfo) -> Result<ContextSnapshot, Error> {
        let path = self.path(info);
        let is_there = match &self.place {
            Place::Memory(_) => true,
            Place::Rows(rows) if rows.get(&name(info))?.is_some() => true,
            _ => path.try_exists().unwrap_or(true),
        };
        if is_there {
            return self.read(info);
        }
        tracing::warn!(file = %path.display(), "a snapshot has lost its file");
        Ok(ContextSnapshot {
            info: info.clone(),
            messages: Vec::new(),
        })
    }

    /// Removes a snapshot's file, unless another store shares it. Returns
    /// whether it existed.
    ///
    /// # Errors
    ///
    /// The file cannot be removed.
    pub fn remove(&self, info: &ContextSnapshotInfo) -> Result<bool, Error> {
        let path = self.path(info);
        match &self.place {
            Place::Memory(memory) => Ok(locked(memory).remove(&path).is_some()),
            Place::Rows(rows) => {
                let was_row = rows.remove(&name(info))?;
                Ok(disk::remove(&path)? || was_row)
            }
            Place::Shared => Ok(path.exists()),
            Place::Files => disk::remove(&path),
        }
    }

    /// Removes files a killed process left half-written, and with rows brings
    /// files into them. Call at startup, before anything is written.
    ///
    /// # Errors
    ///
    /// A folder cannot be read.
    pub fn sweep(&self) -> Result<(), Error> {
        for agent in disk::entries(&self.agents_dir)? {
            if agent.is_folder {
                let sessions = agent.path.join(SESSIONS);
                disk::take_over(&sessions)?;
                if let Place::Rows(rows) = &self.place {
                    into_rows(&sessions, rows.as_ref())?;
                }
            }
        }
        match &self.place {
            Place::Rows(rows) => rows.forget_lost(),
            _ => Ok(()),
        }
    }

    /// What the files take, those of other stores included; `None` in memory.
    ///
    /// # Errors
    ///
    /// A folder or a file cannot be read.
    pub fn size(&self) -> Result<Option<PartSize>, Error> {
        let mut bytes = match &self.place {
            Place::Memory(_) => return Ok(None),
            Place::Rows(rows) => rows.bytes()?,
            Place::Files | Place::Shared => 0,
        };
        for agent in disk::entries(&self.agents_dir)? {
            if agent.is_folder {
                bytes += disk::size_below(&agent.path.join(SESSIONS))?;
            }
        }
        Ok(Some(PartSize::new("saved conversations", bytes)))
    }

    /// The path of a snapshot's file.
    pub fn path(&self, info: &ContextSnapshotInfo) -> PathBuf {
        let folder = self.agents_dir.join(info.agent.as_str()).join(SESSIONS);
        folder.join(Path::new(&name(info)))
    }
}

/// Brings the files of a process that had the database alone into rows.
fn into_rows(sessions: &Path, rows: &dyn SnapshotRows) -> Result<(), Error> {
    for file in disk::entries(sessions)? {
        let Some(text) = disk::read(&file.path, LARGEST_FILE)? else {
            continue;
        };
        if let Ok(snapshot) = json::read_snapshot(&text) {
            let name = name(&snapshot.info);
            if rows.get(&name)?.is_none() {
                rows.put(&name, &json::write_snapshot(&snapshot))?;
            }
            disk::remove(&file.path)?;
        }
    }
    Ok(())
}

/// The name of a snapshot's file in its agent's folder; no two snapshots have the same.
fn name(info: &ContextSnapshotInfo) -> String {
    format!("{}_{}.json", compact(info.timestamp), info.id)
}

fn locked<T>(memory: &Mutex<T>) -> MutexGuard<'_, T> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which of a snapshot's rows a purge removes.
#[derive(Debug)]
pub struct Reach<'a> {
    purge: &'a Purge,
    /// Turns whose trigger is removed.
    turns: BTreeSet<TurnKey<'a>>,
    /// Turns of which a tool call is removed.
    tools: BTreeSet<TurnKey<'a>>,
    /// For an edit: when each turn began.
    began: BTreeMap<TurnKey<'a>, UnixMillis>,
}

/// A turn in a snapshot, whose rows may be of several scopes.
type TurnKey<'a> = (Scope, &'a AgentName, TurnId);

impl<'a> Reach<'a> {
    /// A deleted trigger takes its whole turn along; a deleted answer or tool call takes
    /// all of its turn's calls and results. Sources are judged by when the turn
    /// began, so that its rows, which all have the same, go together.
    pub fn of(purge: &'a Purge, messages: &'a [StoredMessage]) -> Self {
        let mut reach = Self {
            purge,
            turns: BTreeSet::new(),
            tools: BTreeSet::new(),
            began: BTreeMap::new(),
        };
        if matches!(purge, Purge::Edited { .. }) {
            for row in messages {
                let Some(time) = row.began() else { continue };
                let began = reach.began.entry(turn_key(row)).or_insert(time);
                *began = time.min(*began);
            }
        }
        if !matches!(purge, Purge::Messages { .. }) {
            return reach;
        }
        for row in messages.iter().filter(|row| purge.names(row)) {
            let along = match row.role {
                StoredRole::User => &mut reach.turns,
                _ => &mut reach.tools,
            };
            along.insert(turn_key(row));
        }
        reach
    }

    /// Whether the purge removes this row.
    pub fn holds(&self, row: &StoredMessage) -> bool {
        let is_tool = matches!(row.role, StoredRole::ToolUse | StoredRole::ToolResult);
        let began = self.began.get(&turn_key(row));
        self.purge.names(row)
            || began.is_some_and(|began| self.purge.names_sources(row, *began))
            || self.turns.contains(&turn_key(row))
            || (is_tool && self.tools.contains(&turn_key(row)))
    }
}

fn turn_key(row: &StoredMessage) -> TurnKey<'_> {
    (row.scope, &row.agent, row.turn)
}

/// The snapshot without the rows `goes` selects: `None` if no row remains,
/// unchanged if none was selected.
pub fn without(
    snapshot: &ContextSnapshot,
    goes: impl Fn(&StoredMessage) -> bool,
) -> Option<ContextSnapshot> {
    let kept = snapshot.messages.iter().filter(|row| !goes(row));
    let messages: Vec<StoredMessage> = kept.cloned().collect();
    if messages.len() == snapshot.messages.len() {
        return Some(snapshot.clone());
    }
    if messages.is_empty() {
        return None;
    }
    let info = ContextSnapshotInfo {
        message_count: messages.len(),
        summary: SUMMARY_REMOVED.to_owned(),
        ..snapshot.info.clone()
    };
    Some(ContextSnapshot { info, messages })
}

/// What is left of a snapshot after a purge.
pub(crate) enum SnapshotRest {
    /// All of it.
    Same,
    /// Some rows.
    Less(ContextSnapshot),
    /// Nothing.
    Gone,
}

impl SnapshotRest {
    /// Of a snapshot that the purge does not take whole. A change that broke off may have reached
    /// its file only, and not its row, which is `info`.
    pub(crate) fn after(
        purge: &Purge,
        info: &ContextSnapshotInfo,
        read: Result<ContextSnapshot, Error>,
    ) -> Result<Self, Error> {
        let Some(snapshot) = unless_unreadable(read)? else {
            return Ok(Self::Gone);
        };
        let reach = Reach::of(purge, &snapshot.messages);
        Ok(match without(&snapshot, |row| reach.holds(row)) {
            None => Self::Gone,
            Some(rest) if rest == snapshot && rest.info == *info => Self::Same,
            Some(rest) => Self::Less(rest),
        })
    }
}

/// A snapshot that is to lose something; `None` if it is unreadable: it may hold that, so it goes.
pub(crate) fn unless_unreadable(
    read: Result<ContextSnapshot, Error>,
) -> Result<Option<ContextSnapshot>, Error> {
    if let Err(error @ Error::Corrupt { .. }) = &read {
        tracing::error!(%error, "a snapshot that cannot be read was removed");
        return Ok(None);
    }
    read.map(Some)
}

/// A message that a snapshot holds: channel, id (0 for none of Discord's) and
/// server, as the databases index it.
pub(crate) type HeldMessage = (i64, i64, Option<i64>);

/// What a snapshot's messages are found by.
pub(crate) fn held_messages(messages: &[StoredMessage]) -> Vec<HeldMessage> {
    let held = messages.iter().flat_map(|row| {
        let ids = row.message.iter().chain(&row.parts);
        let mut ids: Vec<i64> = ids.map(|id| id.get().cast_signed()).collect();
        if ids.is_empty() {
            ids.push(0);
        }
        let channel = row.channel.get().cast_signed();
        let guild = row.guild.map(|guild| guild.get().cast_signed());
        ids.into_iter().map(move |id| (channel, id, guild))
    });
    held.collect()
}

/// What a snapshot's rows were made from, each once.
pub(crate) fn held_sources(messages: &[StoredMessage]) -> BTreeSet<ContentSource> {
    let sources = messages.iter().flat_map(|row| row.sources.iter().copied());
    sources.collect()
}

/// The snapshot with a message's new text: `None` if the message is not in it,
/// unchanged if it already has that text.
pub fn with_edit(
    snapshot: &ContextSnapshot,
    channel: ChannelId,
    message: MessageId,
    text: &str,
) -> Option<ContextSnapshot> {
    let is_edited = |row: &StoredMessage| row.is_text_of(channel, message);
    if !snapshot.messages.iter().any(is_edited) {
        return None;
    }
    let mut edited = snapshot.clone();
    for row in edited.messages.iter_mut().filter(|row| is_edited(row)) {
        text.clone_into(&mut row.content);
    }
    if edited.messages != snapshot.messages {
        SUMMARY_REMOVED.clone_into(&mut edited.info.summary);
    }
    Some(edited)
}

/// `20260212T143000Z`; times outside RFC 3339's years become milliseconds.
fn compact(time: UnixMillis) -> String {
    match jiff::Timestamp::from_millisecond(time.0) {
        Ok(time) => time.strftime("%Y%m%dT%H%M%SZ").to_string(),
        Err(_) => time.0.to_string(),
    }
}
