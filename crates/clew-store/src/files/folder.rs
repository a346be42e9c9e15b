//! The folders, the locks for writing, and reading files.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use super::super::{Error, FormError, disk};
use super::FileFolders;
use super::look::FolderCopy;
use crate::model::{Scope, Subject};
use clew_context::model::{ChannelId, Clock, ContentSource, GuildId, UserId};

/// Number of locks shared by all paths: enough that two writers seldom collide.
const STRIPES: usize = 64;
/// Lock file held while a process uses a folder.
const LOCK: &str = ".lock";
/// Largest file read, in bytes. 15 of the longest messages stay far below this;
/// so do a server's facts at the largest `MAX_SERVER_MEMORY`.
const LARGEST_FILE: u64 = 64 << 20;

/// The folders of a file store.
pub(super) struct StoreFolder {
    /// Conversations, markers, settings.
    pub(super) dir: PathBuf,
    /// Facts about users.
    pub(super) users: PathBuf,
    /// Facts about servers.
    pub(super) servers: PathBuf,
    pub(super) clock: Clock,
    stripes: [Mutex<()>; STRIPES],
    hasher: std::hash::RandomState,
    /// Locked for writing while empty folders are removed, so that none
    /// disappears under a file being written.
    tidying: RwLock<()>,
    index: Mutex<Index>,
    locks: Mutex<Vec<disk::Hold>>,
    /// What the folders were copied from, beside a process that uses them.
    copied: Option<FolderCopy>,
}

/// Saves reading all files to find one message.
#[derive(Default)]
pub(super) struct Index {
    /// The user of each direct message channel.
    pub(super) direct: HashMap<ChannelId, UserId>,
    /// Whose facts link (or once linked) into each channel.
    pub(super) linked: HashMap<ChannelId, BTreeSet<Subject>>,
    /// What each conversation's rows were made from, if from anything.
    pub(super) made_from: BTreeMap<Scope, BTreeSet<ContentSource>>,
    /// The last ordinal that an early turn of a conversation was given, until its file has one as
    /// high.
    pub(super) early: BTreeMap<Scope, u64>,
    /// Files set aside, which may hold what a purge covers.
    pub(super) aside: BTreeSet<PathBuf>,
}

/// Which conversations to visit.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConversationsIn {
    Everywhere,
    Guild(GuildId),
    Channel(ChannelId),
    Direct,
}

/// Why a file's text was rejected.
pub(super) enum Unread {
    /// It has this version, newer than ours.
    Newer(u32),
    Form(FormError),
}

impl From<FormError> for Unread {
    fn from(error: FormError) -> Self {
        Self::Form(error)
    }
}

impl StoreFolder {
    /// Creates the folders, locks them for this process and removes leftovers
    /// of a killed one.
    pub(super) fn open(folders: FileFolders, clock: Clock) -> Result<Self, Error> {
        let mut index = Index::default();
        let mut locks = Vec::new();
        for folder in &folders {
            disk::create_folders(folder)?;
            locks.push(lock(folder)?);
        }
        for folder in &folders {
            disk::take_over(folder)?;
            disk::files_below(folder, &mut |file| {
                if disk::is_set_aside(file) {
                    index.aside.insert(file.to_owned());
                }
                Ok(())
            })?;
        }
        Ok(Self {
            index: Mutex::new(index),
            locks: Mutex::new(locks),
            ..Self::unlocked(folders, clock)
        })
    }

    /// The folders of another process, perhaps.
    pub(super) fn unlocked([dir, users, servers]: FileFolders, clock: Clock) -> Self {
        Self {
            dir,
            users,
            servers,
            clock,
            stripes: std::array::from_fn(|_| Mutex::default()),
            hasher: std::hash::RandomState::new(),
            tidying: RwLock::default(),
            index: Mutex::default(),
            locks: Mutex::default(),
            copied: None,
        }
    }

    /// Opens a copy of the folders, which may be in use.
    pub(super) fn copied(originals: FileFolders, clock: Clock) -> Result<Self, Error> {
        let copy = FolderCopy::of(originals)?;
        let mut folder = Self::open(copy.folders(), clock)?;
        folder.copied = Some(copy);
        Ok(folder)
    }

    /// The file that people know.
    fn original(&self, path: &Path) -> PathBuf {
        let original = self.copied.as_ref().and_then(|copy| copy.original(path));
        original.unwrap_or_else(|| path.to_owned())
    }

    /// Releases the folders once nothing is being written.
    pub(super) fn release(&self) {
        let _nobody_writes = self.tidying.write().unwrap_or_else(PoisonError::into_inner);
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.clear();
    }

    /// Once released, the folders may belong to another process.
    pub(super) fn is_released(&self) -> bool {
        let locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.is_empty()
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs work while nobody else uses the file. Must not be nested.
    pub(super) fn alone<T>(
        &self,
        path: &Path,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _folder_stays = self.tidying.read().unwrap_or_else(PoisonError::into_inner);
        // Work of many files ends with the store, not after it.
        if self.is_released() {
            return Err(super::closed("use a file"));
        }
        let stripes = STRIPES as u64;
        let stripe = usize::try_from(self.hasher.hash_one(path) % stripes).unwrap_or_default();
        let stripe = &self.stripes[stripe];
        let _alone = stripe.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    /// Reads a file; call it within [`Self::alone`]. An unreadable file is set
    /// aside and counts as missing.
    pub(super) fn load<T>(
        &self,
        path: &Path,
        parse: impl FnOnce(&[u8]) -> Result<T, Unread>,
    ) -> Result<Option<T>, Error> {
        let error = match self.load_or_refuse(path, parse) {
            Err(error @ Error::Corrupt { .. }) => error,
            loaded => return loaded,
        };
        let why: Option<&dyn std::error::Error> = std::error::Error::source(&error);
        let why = why.map(ToString::to_string).unwrap_or_default();
        if self.copied.is_some() {
            tracing::error!(file = %self.original(path).display(), why,
                "a file of the store cannot be read and is left out");
            return Ok(None);
        }
        let aside = disk::set_aside(path)?;
        tracing::error!(file = %path.display(), set_aside_as = %aside.display(), why,
            "a file of the store cannot be read and was set aside");
        self.index().aside.insert(aside);
        Ok(None)
    }

    /// Reads a file; an unreadable one is an error and stays in place.
    pub(super) fn load_or_refuse<T>(
        &self,
        path: &Path,
        parse: impl FnOnce(&[u8]) -> Result<T, Unread>,
    ) -> Result<Option<T>, Error> {
        let Some(text) = disk::read(path, LARGEST_FILE)? else {
            return Ok(None);
        };
        let place = || self.original(path).display().to_string();
        match parse(&text) {
            Ok(read) => Ok(Some(read)),
            Err(Unread::Newer(found)) => Err(Error::newer(&place(), found, super::VERSION)),
            Err(Unread::Form(error)) => Err(Error::corrupt("read", place(), error)),
        }
    }

    pub(super) fn conversation_file(&self, scope: Scope) -> Result<PathBuf, Error> {
        match scope {
            Scope::Member {
                guild,
                channel,
                user,
            } => Ok(self.channel(guild, channel).join(format!("{user}.json"))),
            Scope::Direct(user) => Ok(self.dir.join("dms").join(format!("{user}.json"))),
            Scope::Thread { .. } | Scope::User(_) => Err(Error::NeedsDatabase {
                what: "other scopes than member",
            }),
        }
    }

    /// Visits conversations that have a file, in [`Scope`] order.
    pub(super) fn conversations(
        &self,
        place: ConversationsIn,
        user: Option<UserId>,
        visit: &mut dyn FnMut(Scope) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for guild in self.guilds_in(place)? {
            for channel in self.channels(place, guild)? {
                for user in users_in(&self.channel(guild, channel), user)? {
                    visit(Scope::Member {
                        guild,
                        channel,
                        user,
                    })?;
                }
            }
        }
        let direct = match place {
            ConversationsIn::Everywhere | ConversationsIn::Direct => {
                users_in(&self.dir.join("dms"), user)?
            }
            ConversationsIn::Guild(_) => Vec::new(),
            ConversationsIn::Channel(channel) => self
                .index()
                .direct
                .get(&channel)
                .copied()
                .into_iter()
                .collect(),
        };
        for found in direct {
            if user.is_none_or(|user| user == found) {
                visit(Scope::Direct(found))?;
            }
        }
        Ok(())
    }

    /// Removes empty conversation folders.
    pub(super) fn vacuum(&self) -> Result<(), Error> {
        for guild in self.guilds_in(ConversationsIn::Everywhere)? {
            let _nobody_writes = self.tidying.write().unwrap_or_else(PoisonError::into_inner);
            for channel in self.channels(ConversationsIn::Everywhere, guild)? {
                // Fails unless the folder is empty, as intended.
                let _ = fs::remove_dir(self.channel(guild, channel));
            }
            let _ = fs::remove_dir(self.dir.join("guilds").join(guild.to_string()));
        }
        Ok(())
    }

    fn guilds_in(&self, place: ConversationsIn) -> Result<Vec<GuildId>, Error> {
        match place {
            ConversationsIn::Guild(guild) => Ok(vec![guild]),
            ConversationsIn::Direct => Ok(Vec::new()),
            ConversationsIn::Everywhere | ConversationsIn::Channel(_) => {
                folders_in(&self.dir.join("guilds"))
            }
        }
    }

    fn channels(&self, place: ConversationsIn, guild: GuildId) -> Result<Vec<ChannelId>, Error> {
        match place {
            ConversationsIn::Channel(channel) => Ok(vec![channel]),
            _ => folders_in(&self.dir.join("guilds").join(guild.to_string())),
        }
    }

    fn channel(&self, guild: GuildId, channel: ChannelId) -> PathBuf {
        let guild = self.dir.join("guilds").join(guild.to_string());
        guild.join(channel.to_string())
    }
}

/// The ids of all `{id}.json` files in a folder, sorted.
pub(super) fn ids_in<T: FromStr + Ord + ToString>(folder: &Path) -> Result<Vec<T>, Error> {
    named(folder, false, ".json")
}

fn folders_in<T: FromStr + Ord + ToString>(folder: &Path) -> Result<Vec<T>, Error> {
    named(folder, true, "")
}

fn named<T: FromStr + Ord + ToString>(
    folder: &Path,
    folders: bool,
    end: &str,
) -> Result<Vec<T>, Error> {
    let mut ids = Vec::new();
    for entry in disk::entries(folder)? {
        let name = entry.path.file_name().and_then(|name| name.to_str());
        let Some(stem) = name.and_then(|name| name.strip_suffix(end)) else {
            continue;
        };
        let id = stem.parse::<T>().ok();
        // Skip names like `007.json`, whose path we would not find again.
        ids.extend(id.filter(|id| entry.is_folder == folders && id.to_string() == stem));
    }
    ids.sort();
    Ok(ids)
}

fn users_in(folder: &Path, user: Option<UserId>) -> Result<Vec<UserId>, Error> {
    match user {
        None => ids_in(folder),
        Some(user) => {
            let exists = folder.join(format!("{user}.json")).exists();
            Ok(exists.then_some(user).into_iter().collect())
        }
    }
}

/// Locks a folder for this process.
fn lock(folder: &Path) -> Result<disk::Hold, Error> {
    disk::hold(&folder.join(LOCK))?.map_err(|holder| {
        let remedy = format!(
            "the folder is in use, by another process or as another folder of this store \
             ({holder}): stop that one first, or give each a folder of its own"
        );
        Error::unopened(folder.display(), remedy, None)
    })
}
