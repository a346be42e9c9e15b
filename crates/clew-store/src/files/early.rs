//! Early turns: a file of entries each in `DIR/early/`. They are few at any time, so what
//! concerns them is looked for in all of them.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::{Error, Record, TurnKey, append, disk};
use super::conversation::{Conversation, check};
use super::folder::StoreFolder;
use super::{check_agent, entries};
use crate::model::{Scope, StoredMessage};

impl StoreFolder {
    pub(super) fn early_file(&self, key: &TurnKey) -> Result<PathBuf, Error> {
        check_agent(&key.agent)?;
        // Refuses scopes that no file is for.
        self.conversation_file(key.scope)?;
        let scope = match key.scope {
            Scope::Member {
                guild,
                channel,
                user,
            } => format!("{guild}-{channel}-{user}"),
            Scope::Thread { guild, channel } => format!("{guild}-{channel}"),
            Scope::User(user) | Scope::Direct(user) => format!("dm-{user}"),
        };
        let name = format!("{scope}-{}.json", key.turn.0);
        Ok(self.dir.join("early").join(name))
    }

    pub(super) fn append_early(&self, turn: &[StoredMessage]) -> Result<(), Error> {
        let first = append::first_of(turn);
        let first = first.map_err(|why| Error::database("store an early turn", why))?;
        turn.iter().try_for_each(check)?;
        let path = self.early_file(&TurnKey::of(first))?;
        let before = self.early_turn(&path)?;
        let ordinal = self.ordinal(first, &before)?;
        let rows = turn.iter().cloned();
        let rows = rows.map(|row| Record::Message(StoredMessage { ordinal, ..row }));
        let records: Vec<_> = rows.collect();
        self.alone(&path, || {
            disk::write_unsynced(&path, entries::write(&records).as_bytes())
        })
    }

    /// The place of a turn in its conversation: that of its rows or early rows, or a new one.
    fn ordinal(&self, first: &StoredMessage, early: &[StoredMessage]) -> Result<u64, Error> {
        let now = (self.clock)();
        let path = self.conversation_file(first.scope)?;
        self.alone(&path, || {
            let (found, _) = self.find(first.scope, &path, now)?;
            let conversation = found.unwrap_or_else(|| Conversation::fresh(now));
            let mut index = self.index();
            let last = index.early.entry(first.scope).or_default();
            let ordinal = conversation.ordinal_of(first, early, *last);
            *last = ordinal.max(*last);
            Ok(ordinal)
        })
    }

    /// The early rows of a turn, in order.
    pub(super) fn early_turn(&self, path: &Path) -> Result<Vec<StoredMessage>, Error> {
        let entries = self.entries(path)?;
        Ok(entries
            .iter()
            .filter_map(Record::message)
            .cloned()
            .collect())
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
        self.strip(&self.early_file(key)?, &|_| true)
    }

    pub(super) fn early(&self, limit: usize) -> Result<Vec<StoredMessage>, Error> {
        let mut found = Vec::new();
        for path in self.early_files()?.iter().take(limit) {
            found.extend(self.early_turn(path)?);
        }
        Ok(found)
    }

    pub(super) fn early_files(&self) -> Result<Vec<PathBuf>, Error> {
        let files = disk::entries(&self.dir.join("early"))?.into_iter();
        let files = files.filter(|file| !file.is_folder).map(|file| file.path);
        let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
        Ok(files.filter(is_one).collect())
    }
}
