//! `DM_LOGS_DIR`: logs of direct messages as JSON Lines, outside of any store.
//!
//! Turns are appended to `{user}.jsonl`. When it would exceed
//! `MAX_CONVERSATION_LOG_SIZE`, it replaces `{user}.1.jsonl` first. So a
//! conversation takes at most twice that size, unless a single turn is larger.
//! Without a limit nothing is rotated.

mod line;
mod restore;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use line::{LogLine, add, lines_of};

pub use restore::Restored;

use super::{Erasure, Error, FormError, Kind, KindStats, Purge, Purged, disk};
use crate::model::{StoredMessage, StoredRole};
use clew_context::model::{ChannelId, MessageId, TurnId, UnixMillis, UserId};

/// Logs of direct messages. Only one process writes to a folder.
#[derive(Clone)]
pub struct Transcripts(Arc<LogFolder>);

impl Transcripts {
    /// Opens a folder, creating it if missing. Files have at most `max_bytes`,
    /// or any size for `None`.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or read.
    pub async fn open(dir: PathBuf, max_bytes: Option<u64>) -> Result<Self, Error> {
        let open = move || LogFolder::open(dir, max_bytes);
        let folder = disk::blocking("open the logs of direct messages", open).await?;
        Ok(Self(Arc::new(folder)))
    }

    /// Opens a folder to read while another process may write to it; nothing in it is
    /// changed.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub async fn look(dir: PathBuf) -> Result<Self, Error> {
        let look = move || LogFolder::look(dir, None);
        let folder = disk::blocking("open the logs of direct messages", look).await?;
        Ok(Self(Arc::new(folder)))
    }

    /// Appends a turn of direct messages, one line per row, leaving out tool
    /// rows and what was made from messages elsewhere, which no purge of those
    /// would find here. Durable on return.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub async fn append(&self, turn: &[StoredMessage]) -> Result<(), Error> {
        let turn = turn.to_vec();
        self.run("log a turn", move |folder| folder.append(&turn))
            .await
    }

    /// Removes lines just as the purge removes rows from a store. Purges of
    /// servers change nothing here.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written; others may have been purged.
    pub async fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        let purge = purge.clone();
        self.run("purge the logs", move |folder| folder.purge(&purge))
            .await
    }

    /// How many lines an erasure would remove.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub async fn would_go(&self, erasure: Erasure) -> Result<u64, Error> {
        self.run("look into the logs", move |folder| folder.would_go(erasure))
            .await
    }

    /// Users with log lines, sorted.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub async fn users(&self) -> Result<Vec<UserId>, Error> {
        self.run("list the logs", LogFolder::known).await
    }

    /// Gives an edited message its new text. Returns how many lines matched.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub async fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        text: &str,
    ) -> Result<u64, Error> {
        let text = text.to_owned();
        self.run("edit the logs", move |folder| {
            folder.edit(channel, message, &text)
        })
        .await
    }

    /// Which messages of a channel are logged, within an inclusive range of
    /// ids.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub async fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<MessageId>, Error> {
        self.run("look into the logs", move |folder| {
            folder.held(channel, from, to)
        })
        .await
    }

    /// A user's lines, oldest first, each one JSON object.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub async fn lines(&self, user: UserId) -> Result<Vec<String>, Error> {
        self.run("read the logs", move |folder| folder.lines(user))
            .await
    }

    /// Checks a line of an export and returns whose it is.
    ///
    /// # Errors
    ///
    /// It is not a log's line.
    pub fn owner_of(line: &str) -> Result<UserId, FormError> {
        LogLine::read(line).map(|line| line.user)
    }

    /// Puts a user's lines of an export where they belong in time, except those that
    /// are there already. Lines that are there stay; where the files have no room for
    /// the others, the oldest of those are left out. Durable on return.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub async fn restore(&self, user: UserId, lines: Vec<String>) -> Result<Restored, Error> {
        self.run("restore a log", move |folder| folder.restore(user, &lines))
            .await
    }

    /// How much is logged.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub async fn stats(&self) -> Result<KindStats, Error> {
        self.run("count the logs", LogFolder::stats).await
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&LogFolder) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = Arc::clone(&self.0);
        disk::blocking(operation, move || work(&folder)).await
    }
}

/// The folder. Its files may only be used while the map is locked.
struct LogFolder {
    dir: PathBuf,
    max_bytes: Option<u64>,
    /// The user of each channel, to find a message without reading all logs.
    users: Mutex<HashMap<ChannelId, UserId>>,
}

impl LogFolder {
    fn open(dir: PathBuf, max_bytes: Option<u64>) -> Result<Self, Error> {
        disk::create_folders(&dir)?;
        disk::take_over(&dir)?;
        Self::look(dir, max_bytes)
    }

    fn look(dir: PathBuf, max_bytes: Option<u64>) -> Result<Self, Error> {
        let folder = Self {
            dir,
            max_bytes,
            users: Mutex::default(),
        };
        for user in folder.known()? {
            let mut first = None;
            // A user has only one channel with us, so the first line suffices.
            folder.each_line(user, &mut |line, _| {
                first = Some(line.channel);
                false
            })?;
            folder.alone().extend(first.map(|channel| (channel, user)));
        }
        Ok(folder)
    }

    fn alone(&self) -> MutexGuard<'_, HashMap<ChannelId, UserId>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, turn: &[StoredMessage]) -> Result<(), Error> {
        let spoken = |row: &&StoredMessage| {
            row.role.is_spoken() && row.guild.is_none() && row.sources.is_empty()
        };
        let rows: Vec<&StoredMessage> = turn.iter().filter(spoken).collect();
        let Some(first) = rows.first() else {
            return Ok(());
        };
        let text: String = rows.iter().map(|row| LogLine::of(row).to_text()).collect();
        let mut users = self.alone();
        self.add(first.owner, &text)?;
        disk::sync_folder(&self.dir)?;
        users.insert(first.channel, first.owner);
        Ok(())
    }

    /// Appends to the current file, rotating it first if it would be too long. An
    /// empty one takes anything.
    fn add(&self, user: UserId, text: &str) -> Result<(), Error> {
        let [old, path] = self.paths(user);
        let size = fs::metadata(&path).map_or(0, |about| about.len());
        let full = |most| size > 0 && size.saturating_add(text.len() as u64) > most;
        if self.max_bytes.is_some_and(full) {
            fs::rename(&path, &old).map_err(Error::io("rotate", &path))?;
        }
        add(&path, text).map_err(Error::io("write", &path))
    }

    fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        let users = self.alone();
        let gone = match purge {
            Purge::User(user) => self.remove(*user)?,
            Purge::Channel(channel) => match users.get(channel) {
                Some(user) => self.remove(*user)?,
                None => 0,
            },
            Purge::Messages { channel, ids } => match users.get(channel) {
                Some(user) => self.remove_messages(*user, ids)?,
                None => 0,
            },
            Purge::Before(moment) => self.remove_before(*moment)?,
            Purge::Edited { .. } | Purge::Guild(_) | Purge::Member { .. } => 0,
        };
        let mut purged = Purged::default();
        purged.add(Kind::Transcripts, gone);
        Ok(purged)
    }

    fn remove(&self, user: UserId) -> Result<u64, Error> {
        let lines = self.count(user, &|_| true)?;
        for path in self.paths(user) {
            disk::remove(&path)?;
        }
        Ok(lines)
    }

    fn would_go(&self, erasure: Erasure) -> Result<u64, Error> {
        let users = self.alone();
        match erasure {
            Erasure::User(user) => self.count(user, &|_| true),
            Erasure::Channel(channel) => match users.get(&channel) {
                Some(user) => self.count(*user, &|_| true),
                None => Ok(0),
            },
            Erasure::Before(moment) => {
                let known = self.known()?.into_iter();
                known
                    .map(|user| self.count(user, &|line| line.at < moment))
                    .sum()
            }
            Erasure::Guild(_) => Ok(0),
        }
    }

    fn count(&self, user: UserId, is_meant: &dyn Fn(&LogLine) -> bool) -> Result<u64, Error> {
        let mut lines = 0;
        self.each_line(user, &mut |line, _| {
            lines += u64::from(is_meant(&line));
            true
        })?;
        Ok(lines)
    }

    /// Deleting a user's message removes its turn; one of ours, the answer.
    fn remove_messages(&self, user: UserId, ids: &[MessageId]) -> Result<u64, Error> {
        let named = |line: &LogLine| line.messages().any(|message| ids.contains(&message));
        let mut triggers: Vec<TurnId> = Vec::new();
        let mut known = false;
        self.each_line(user, &mut |line, _| {
            known |= named(&line);
            if line.role == StoredRole::User && named(&line) {
                triggers.push(line.turn);
            }
            true
        })?;
        if !known {
            return Ok(0);
        }
        self.rewrite(user, &|line| {
            LineChange::remove_if(named(line) || triggers.contains(&line.turn))
        })
    }

    fn remove_before(&self, moment: UnixMillis) -> Result<u64, Error> {
        let mut gone = 0;
        for user in self.known()? {
            gone += self.change(user, &|line| LineChange::remove_if(line.at < moment))?;
        }
        Ok(gone)
    }

    fn edit(&self, channel: ChannelId, message: MessageId, text: &str) -> Result<u64, Error> {
        let users = self.alone();
        let Some(user) = users.get(&channel) else {
            return Ok(0);
        };
        let is_it = |line: &LogLine| {
            let is_whole = line.parts.is_empty() || line.role == StoredRole::User;
            line.message == Some(message) && is_whole && line.text != text
        };
        self.change(*user, &|line| {
            if is_it(line) {
                LineChange::Text(text.to_owned())
            } else {
                LineChange::Keep
            }
        })
    }

    fn held(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<MessageId>, Error> {
        let users = self.alone();
        let mut held = Vec::new();
        if let Some(user) = users.get(&channel) {
            self.each_line(*user, &mut |line, _| {
                held.extend(
                    line.messages()
                        .filter(|message| (from..=to).contains(message)),
                );
                true
            })?;
        }
        held.sort_unstable();
        Ok(held)
    }

    fn lines(&self, user: UserId) -> Result<Vec<String>, Error> {
        let _alone = self.alone();
        let mut lines = Vec::new();
        self.each_line(user, &mut |_, text| {
            lines.push(text.to_owned());
            true
        })?;
        Ok(lines)
    }

    fn stats(&self) -> Result<KindStats, Error> {
        let _alone = self.alone();
        let mut stats = KindStats::none(Kind::Transcripts);
        for user in self.known()? {
            self.each_line(user, &mut |line, _| {
                stats.count(line.text.len(), Some(line.at));
                true
            })?;
        }
        Ok(stats)
    }

    /// The rotated file and the current one.
    fn paths(&self, user: UserId) -> [PathBuf; 2] {
        ["1.jsonl", "jsonl"].map(|end| self.dir.join(format!("{user}.{end}")))
    }

    /// Users with files, sorted.
    fn known(&self) -> Result<Vec<UserId>, Error> {
        let mut users = Vec::new();
        for entry in disk::entries(&self.dir)? {
            let name = entry.path.file_name().and_then(|name| name.to_str());
            let stem = name.and_then(|name| name.strip_suffix(".jsonl"));
            let user = stem.map(|stem| stem.strip_suffix(".1").unwrap_or(stem).parse::<UserId>());
            users.extend(user.and_then(Result::ok));
        }
        users.sort_unstable();
        users.dedup();
        Ok(users)
    }

    /// Visits a user's lines, oldest first, until `visit` returns false. Skips
    /// torn lines.
    fn each_line(
        &self,
        user: UserId,
        visit: &mut dyn FnMut(LogLine, &str) -> bool,
    ) -> Result<(), Error> {
        // Opened before either is read: a bot may rotate them meanwhile.
        let files = self.paths(user).map(|path| (lines_of(&path), path));
        for (lines, path) in files {
            let Some(lines) = lines? else {
                continue;
            };
            for text in lines {
                let text = text.map_err(Error::io("read", &path))?;
                let text = String::from_utf8_lossy(&text);
                if let Ok(line) = LogLine::read(&text)
                    && !visit(line, &text)
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Rewrites a user's files if any line changes. Returns how many do.
    fn change(&self, user: UserId, change: &dyn Fn(&LogLine) -> LineChange) -> Result<u64, Error> {
        let mut is_kept = true;
        self.each_line(user, &mut |line, _| {
            is_kept = matches!(change(&line), LineChange::Keep);
            is_kept
        })?;
        if is_kept {
            return Ok(0);
        }
        self.rewrite(user, change)
    }

    /// Rewrites a user's files. Returns how many lines changed. Drops torn
    /// lines, since their content is unknown.
    fn rewrite(&self, user: UserId, change: &dyn Fn(&LogLine) -> LineChange) -> Result<u64, Error> {
        let mut changed = 0;
        for path in self.paths(user) {
            let Some(lines) = lines_of(&path)? else {
                continue;
            };
            let mut kept = 0_u64;
            disk::write_with(&path, |file| {
                for text in lines {
                    let Ok(mut line) = LogLine::read(&String::from_utf8_lossy(&text?)) else {
                        continue;
                    };
                    match change(&line) {
                        LineChange::Keep => {}
                        LineChange::Remove => {
                            changed += 1;
                            continue;
                        }
                        LineChange::Text(text) => {
                            changed += 1;
                            line.text = text;
                        }
                    }
                    kept += 1;
                    file.write_all(line.to_text().as_bytes())?;
                }
                Ok(())
            })?;
            if kept == 0 {
                disk::remove(&path)?;
            }
        }
        Ok(changed)
    }
}

/// What to do with a line.
enum LineChange {
    Keep,
    Remove,
    Text(String),
}

impl LineChange {
    const fn remove_if(goes: bool) -> Self {
        if goes { Self::Remove } else { Self::Keep }
    }
}
