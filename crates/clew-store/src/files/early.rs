//! Early turns: a file each in `DIR/early/`, in the form of lists. They are few at any
//! time, so what concerns them is looked for in all of them.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::{Error, Purge, Reach, Record, TurnKey, append, disk};
use super::conversation::{LIFETIME, check};
use super::folder::StoreFolder;
use super::turns::edit_rows;
use super::{check_agent, entries};
use crate::model::{Scope, StoredMessage};
use clew_context::model::{ChannelId, MessageId, UnixMillis};

impl StoreFolder {
    /// The file of an early turn.
    fn early_file(&self, key: &TurnKey) -> Result<PathBuf, Error> {
        check_agent(&key.agent)?;
        // Refuses scopes that no file is for.
        self.conversation_file(key.scope)?;
        Ok(self
            .early_dir()
            .join(format!("{}{}.json", prefix(key.scope), key.turn.0)))
    }

    fn early_dir(&self) -> PathBuf {
        self.dir.join("early")
    }

    pub(super) fn append_early(&self, turn: &[StoredMessage]) -> Result<(), Error> {
        let first = append::first_of(turn).map_err(|why| Error::Database {
            operation: "store an early turn",
            source: why.into(),
        })?;
        turn.iter().try_for_each(check)?;
        let path = self.early_file(&TurnKey::of(first))?;
        let records: Vec<_> = turn.iter().cloned().map(Record::Message).collect();
        self.alone(&path, || {
            disk::write_unsynced(&path, entries::write(&records).as_bytes())
        })
    }

    /// Forgets the early rows of a turn that is stored by now. If they come back after
    /// a power failure, they are confirmed once more.
    pub(super) fn confirmed(&self, key: &TurnKey) -> Result<(), Error> {
        let path = self.early_file(key)?;
        self.alone(&path, || match fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(source))
            }
            _ => Ok(()),
        })
    }

    pub(super) fn take_back(&self, key: &TurnKey) -> Result<u64, Error> {
        let path = self.early_file(key)?;
        self.strip(&path, &|_| true)
    }

    pub(super) fn early(&self, limit: usize) -> Result<Vec<StoredMessage>, Error> {
        let mut found = Vec::new();
        for path in self.early_files()?.iter().take(limit) {
            found.extend(self.early_rows(path)?);
        }
        Ok(found)
    }

    fn early_files(&self) -> Result<Vec<PathBuf>, Error> {
        let files = disk::entries(&self.early_dir())?.into_iter();
        let files = files.filter(|file| !file.is_folder).map(|file| file.path);
        let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        Ok(files.filter(is_one).collect())
    }

    fn early_rows(&self, path: &Path) -> Result<Vec<StoredMessage>, Error> {
        let rows = self.entries(path)?.into_iter();
        let rows = rows.filter_map(|entry| match entry {
            Record::Message(row) => Some(row),
            _ => None,
        });
        Ok(rows.collect())
    }

    /// All early rows.
    pub(super) fn all_early(&self) -> Result<Vec<StoredMessage>, Error> {
        self.early(usize::MAX)
    }

    /// Removes what a purge covers. Returns how many rows.
    pub(super) fn purge_early(&self, purge: &Purge) -> Result<u64, Error> {
        let mut gone = 0;
        for path in self.early_files()? {
            let rows = self.early_rows(&path)?;
            let reach = Reach::of(purge, &rows);
            let goes = |entry: &Record| match entry {
                Record::Message(row) => reach.holds(row),
                _ => false,
            };
            if rows.iter().any(|row| reach.holds(row)) {
                gone += self.strip(&path, &goes)?;
            }
        }
        Ok(gone)
    }

    /// Removes the early rows of a conversation. Returns how many.
    pub(super) fn delete_early(&self, scope: Scope) -> Result<u64, Error> {
        let mut gone = 0;
        for path in self.early_files()? {
            let name = path.file_name().and_then(|name| name.to_str());
            if name.is_some_and(|name| name.starts_with(&prefix(scope))) {
                gone += self.strip(&path, &|_| true)?;
            }
        }
        Ok(gone)
    }

    /// Gives an edited message its new text. Returns how many rows had another.
    pub(super) fn edit_early(
        &self,
        channel: ChannelId,
        message: MessageId,
        text: &str,
    ) -> Result<u64, Error> {
        let mut edited = 0;
        for path in self.early_files()? {
            edited += self.change(&path, |entries| {
                let rows = entries.iter_mut().filter_map(|entry| match entry {
                    Record::Message(row) => Some(row),
                    _ => None,
                });
                edit_rows(rows, channel, message, text)
            })?;
        }
        Ok(edited)
    }

    /// Removes early rows that would have expired by now. Returns how many.
    pub(super) fn sweep_early(&self, now: UnixMillis) -> Result<u64, Error> {
        let oldest = now
            .0
            .saturating_sub(i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX));
        self.purge_early(&Purge::Before(UnixMillis(oldest)))
    }
}

/// What the files of a conversation's early turns begin with.
fn prefix(scope: Scope) -> String {
    match scope {
        Scope::Member {
            guild,
            channel,
            user,
        } => format!("{guild}-{channel}-{user}-"),
        Scope::Thread { guild, channel } => format!("{guild}-{channel}-"),
        Scope::User(user) | Scope::Direct(user) => format!("dm-{user}-"),
    }
}
