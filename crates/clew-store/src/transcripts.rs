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
use std::sync::{Arc, Mutex, PoisonError};

use line::{add, lines_of, read_line, to_line};

pub use restore::Restored;

use super::{Erasure, Error, FormError, Kind, KindStats, Purge, Purged, Reach, disk};
use crate::model::StoredMessage;
use clew_context::model::{ChannelId, MessageId, UserId};

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
        self.run("log a turn", move |folder, users| {
            let spoken = |row: &&StoredMessage| {
                row.role.is_spoken() && row.guild.is_none() && row.sources.is_empty()
            };
            let rows: Vec<&StoredMessage> = turn.iter().filter(spoken).collect();
            let Some(first) = rows.first() else {
                return Ok(());
            };
            let text: String = rows.iter().map(|row| to_line(row)).collect();
            folder.add(first.owner, &text)?;
            disk::sync_folder(&folder.dir)?;
            users.insert(first.channel, first.owner);
            Ok(())
        })
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
        self.run("purge the logs", move |folder, users| {
            let mut gone = 0;
            for user in folder.reached(users, &purge)? {
                gone += match purge {
                    Purge::User(_) | Purge::Channel(_) => folder.remove(user)?,
                    _ => folder.strip(user, &purge)?,
                };
            }
            let mut purged = Purged::default();
            purged.add(Kind::Transcripts, gone);
            Ok(purged)
        })
        .await
    }

    /// How many lines an erasure would remove.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub async fn would_go(&self, erasure: Erasure) -> Result<u64, Error> {
        let purge = erasure.purge();
        self.run("look into the logs", move |folder, users| {
            let reached = folder.reached(users, &purge)?.into_iter();
            let names = |row: &StoredMessage| purge.names(row);
            reached.map(|user| folder.count(user, &names)).sum()
        })
        .await
    }

    /// Users with log lines, sorted.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub async fn users(&self) -> Result<Vec<UserId>, Error> {
        self.run("list the logs", |folder, _| folder.known()).await
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
        self.run("edit the logs", move |folder, users| {
            let Some(user) = users.get(&channel) else {
                return Ok(0);
            };
            let is_it =
                |row: &StoredMessage| row.is_text_of(channel, message) && row.content != text;
            let edited = folder.count(*user, &is_it)?;
            if edited > 0 {
                folder.rewrite(*user, &mut |row| {
                    if is_it(row) {
                        text.clone_into(&mut row.content);
                    }
                    true
                })?;
            }
            Ok(edited)
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
        self.run("look into the logs", move |folder, users| {
            let mut held = Vec::new();
            if let Some(user) = users.get(&channel) {
                folder.each_line(*user, &mut |row, _| {
                    let ids = row.made_of().map(|(_, id)| id);
                    held.extend(ids.filter(|id| (from..=to).contains(id)));
                    true
                })?;
            }
            held.sort_unstable();
            Ok(held)
        })
        .await
    }

    /// A user's lines, oldest first, each one JSON object.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub async fn lines(&self, user: UserId) -> Result<Vec<String>, Error> {
        self.run("read the logs", move |folder, _| {
            let mut lines = Vec::new();
            folder.each_line(user, &mut |_, text| {
                lines.push(text.to_owned());
                true
            })?;
            Ok(lines)
        })
        .await
    }

    /// Checks a line of an export and returns whose it is.
    ///
    /// # Errors
    ///
    /// It is not a log's line.
    pub fn owner_of(line: &str) -> Result<UserId, FormError> {
        read_line(line).map(|row| row.owner)
    }

    /// Puts a user's lines of an export where they belong in time, except those that
    /// are there already. Lines that are there stay; where the files have no room for
    /// the others, the oldest of those are left out. Durable on return.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub async fn restore(&self, user: UserId, lines: Vec<String>) -> Result<Restored, Error> {
        self.run("restore a log", move |folder, users| {
            folder.restore(users, user, &lines)
        })
        .await
    }

    /// How much is logged.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub async fn stats(&self) -> Result<KindStats, Error> {
        self.run("count the logs", move |folder, _| {
            let mut stats = KindStats::none(Kind::Transcripts);
            for user in folder.known()? {
                folder.each_line(user, &mut |row, _| {
                    stats.count(row.content.len(), Some(row.timestamp));
                    true
                })?;
            }
            Ok(stats)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&LogFolder, &mut Users) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let folder = Arc::clone(&self.0);
        let alone = move || {
            let users = folder.users.lock();
            let mut users = users.unwrap_or_else(PoisonError::into_inner);
            work(&folder, &mut users)
        };
        disk::blocking(operation, alone).await
    }
}

/// The folder. Its files may only be used while the map is locked, as `run` does.
struct LogFolder {
    dir: PathBuf,
    max_bytes: Option<u64>,
    /// The user of each channel, to find a message without reading all logs.
    users: Mutex<Users>,
}

type Users = HashMap<ChannelId, UserId>;

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
        let mut users = Users::new();
        for user in folder.known()? {
            let mut first = None;
            // A user has only one channel with us, so the first line suffices.
            folder.each_line(user, &mut |row, _| {
                first = Some(row.channel);
                false
            })?;
            users.extend(first.map(|channel| (channel, user)));
        }
        let users = Mutex::new(users);
        Ok(Self { users, ..folder })
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

    /// Whose logs may hold what a purge takes.
    fn reached(&self, users: &Users, purge: &Purge) -> Result<Vec<UserId>, Error> {
        match purge {
            Purge::User(user) => Ok(vec![*user]),
            Purge::Channel(channel) | Purge::Messages { channel, .. } => {
                Ok(users.get(channel).copied().into_iter().collect())
            }
            Purge::Before(_) => self.known(),
            // No line was made from anything elsewhere.
            Purge::Edited { .. } | Purge::Guild(_) | Purge::Member { .. } => Ok(Vec::new()),
        }
    }

    fn remove(&self, user: UserId) -> Result<u64, Error> {
        let lines = self.count(user, &|_| true)?;
        for path in self.paths(user) {
            disk::remove(&path)?;
        }
        Ok(lines)
    }

    /// Removes the lines that a purge covers. Returns how many.
    fn strip(&self, user: UserId, purge: &Purge) -> Result<u64, Error> {
        // Only of deleted messages all have to be known: more of their turns goes.
        let takes_turns = matches!(purge, Purge::Messages { .. });
        let mut named = Vec::new();
        self.each_line(user, &mut |row, _| {
            named.extend(Some(row).filter(|row| purge.names(row)));
            takes_turns || named.is_empty()
        })?;
        if named.is_empty() {
            return Ok(0);
        }
        let reach = Reach::of(purge, &named);
        let mut gone = 0;
        self.rewrite(user, &mut |row| {
            let goes = reach.holds(row);
            gone += u64::from(goes);
            !goes
        })?;
        Ok(gone)
    }

    fn count(&self, user: UserId, is_meant: &dyn Fn(&StoredMessage) -> bool) -> Result<u64, Error> {
        let mut lines = 0;
        self.each_line(user, &mut |row, _| {
            lines += u64::from(is_meant(&row));
            true
        })?;
        Ok(lines)
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
        visit: &mut dyn FnMut(StoredMessage, &str) -> bool,
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
                if let Ok(row) = read_line(&text)
                    && !visit(row, &text)
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Rewrites a user's files with the lines that are to stay, as they are then. Drops
    /// torn lines, since their content is unknown.
    fn rewrite(
        &self,
        user: UserId,
        stays: &mut dyn FnMut(&mut StoredMessage) -> bool,
    ) -> Result<(), Error> {
        for path in self.paths(user) {
            let Some(lines) = lines_of(&path)? else {
                continue;
            };
            let mut is_empty = true;
            disk::write_with(&path, |file| {
                for text in lines {
                    if let Ok(mut row) = read_line(&String::from_utf8_lossy(&text?))
                        && stays(&mut row)
                    {
                        is_empty = false;
                        file.write_all(to_line(&row).as_bytes())?;
                    }
                }
                Ok(())
            })?;
            if is_empty {
                disk::remove(&path)?;
            }
        }
        Ok(())
    }
}
