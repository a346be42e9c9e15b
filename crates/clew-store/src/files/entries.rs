//! Files of everything except conversations: a version and a list of entries,
//! each as [`Record::to_line`] writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::json::Fields;
use super::super::{Error, Kind, Purge, Reach, Record, RecordKey, disk};
use super::folder::{StoreFolder, Unread, ids_in};
use super::{VERSION, check_agent};
use crate::model::{AgentName, ClearKey, Fact, Subject};
use clew_context::model::{ApplicationId, GuildId, UnixMillis, UserId};

/// Largest size of the owner file, in bytes.
const LARGEST_OWNER: u64 = 64;

impl StoreFolder {
    /// The file an entry belongs in; `None` for kinds stored elsewhere.
    fn place_of(&self, record: &Record) -> Option<PathBuf> {
        match record {
            Record::Message(_) | Record::Snapshot(_) | Record::Receipt(_) => None,
            Record::Marker(key, _) => Some(self.markers(key.guild, key.user)),
            Record::Fact(fact) => Some(self.profile(fact.subject)),
            Record::OptOut(..) => Some(self.dir.join("opt_outs.json")),
            Record::Settings(guild, _) => {
                Some(self.dir.join("settings").join(format!("{guild}.json")))
            }
            Record::Agent(..) => Some(self.dir.join("agents.json")),
            Record::Departure(..) => Some(self.dir.join("departures.json")),
        }
    }

    /// Files that hold entries of a kind, in a stable order; of rows the early ones.
    pub(super) fn entry_files(&self, kind: Kind) -> Result<Vec<PathBuf>, Error> {
        let one = |name: &str| Ok(vec![self.dir.join(name)]);
        match kind {
            Kind::Messages => self.early_files(),
            Kind::Snapshots | Kind::Receipts | Kind::Transcripts | Kind::Outputs => Ok(Vec::new()),
            Kind::Markers => {
                let folder = self.dir.join("markers");
                let mut files = files_in::<GuildId>(&folder.join("guilds"))?;
                files.extend(files_in::<UserId>(&folder.join("dms"))?);
                files.push(self.markers(None, None));
                Ok(files)
            }
            Kind::UserFacts => files_in::<UserId>(&self.users),
            Kind::ServerFacts => files_in::<GuildId>(&self.servers),
            Kind::OptOuts => one("opt_outs.json"),
            Kind::Settings => files_in::<GuildId>(&self.dir.join("settings")),
            Kind::Agents => one("agents.json"),
            Kind::Departures => one("departures.json"),
        }
    }

    /// Who opted out and how servers have it, without a lock.
    pub(super) fn standing(&self, application: ApplicationId) -> Result<Vec<Record>, Error> {
        self.owned_by(&self.dir.join("owner.json"), application)?;
        let mut files = self.entry_files(Kind::OptOuts)?;
        files.extend(self.entry_files(Kind::Settings)?);
        let entries = files.iter().map(|path| self.load_or_refuse(path, parse));
        let entries = entries.collect::<Result<Vec<_>, _>>()?;
        Ok(entries.into_iter().flatten().flatten().collect())
    }

    /// A file's entries.
    pub(super) fn entries(&self, path: &Path) -> Result<Vec<Record>, Error> {
        self.alone(path, || self.entries_alone(path))
    }

    fn entries_alone(&self, path: &Path) -> Result<Vec<Record>, Error> {
        let entries = if self.forbids(path) {
            self.load_or_refuse(path, parse)?
        } else {
            self.load(path, parse)?
        };
        Ok(entries.unwrap_or_default())
    }

    /// Whether a file says what must not be kept or shown: opt-outs, clears and what servers
    /// switched off. Set aside as others are, an unreadable one would count as consent.
    fn forbids(&self, path: &Path) -> bool {
        let all = ["opt_outs.json", "settings", "markers"];
        all.iter().any(|name| path.starts_with(self.dir.join(name)))
    }

    /// Changes a file's entries; a file left without any is removed.
    pub(super) fn change<T>(
        &self,
        path: &Path,
        change: impl FnOnce(&mut Vec<Record>) -> T,
    ) -> Result<T, Error> {
        self.alone(path, || {
            let before = self.entries_alone(path)?;
            let mut entries = before.clone();
            let changed = change(&mut entries);
            if entries.is_empty() {
                disk::remove(path)?;
            } else if entries != before {
                disk::write(path, write(&entries).as_bytes())?;
            }
            Ok(changed)
        })
    }

    /// Writes entries to their files, replacing those with the same key.
    pub(super) fn put(&self, records: &[Record]) -> Result<(), Error> {
        let mut by_file: BTreeMap<PathBuf, Vec<&Record>> = BTreeMap::new();
        for record in records {
            let Some(path) = self.place_of(record) else {
                continue;
            };
            by_file.entry(path).or_default().push(record);
            self.note_link(record);
        }
        for (path, records) in by_file {
            self.change(&path, |entries| {
                for record in records {
                    match entries.iter_mut().find(|old| old.key() == record.key()) {
                        Some(old) => record.clone_into(old),
                        None => entries.push(record.clone()),
                    }
                }
            })?;
        }
        Ok(())
    }

    /// The file of markers: per server, or per user for direct messages.
    fn markers(&self, guild: Option<GuildId>, user: Option<UserId>) -> PathBuf {
        let folder = self.dir.join("markers");
        match (guild, user) {
            (Some(guild), _) => folder.join("guilds").join(format!("{guild}.json")),
            (None, Some(user)) => folder.join("dms").join(format!("{user}.json")),
            (None, None) => folder.join("everybody.json"),
        }
    }

    /// The file of facts about a user or server.
    pub(super) fn profile(&self, subject: Subject) -> PathBuf {
        match subject {
            Subject::User(user) => self.users.join(format!("{user}.json")),
            Subject::Server(guild) => self.servers.join(format!("{guild}.json")),
        }
    }

    pub(super) fn clear(&self, key: &ClearKey, at: UnixMillis) -> Result<(), Error> {
        check_agent(&key.agent)?;
        self.change(&self.markers(key.guild, key.user), |entries| {
            let found = entries.iter_mut().find_map(|entry| match entry {
                Record::Marker(old, at) if old == key => Some(at),
                _ => None,
            });
            match found {
                Some(old) => *old = at.max(*old),
                None => entries.push(Record::Marker(key.clone(), at)),
            }
        })
    }

    pub(super) fn cleared_at(
        &self,
        agent: &AgentName,
        guild: Option<GuildId>,
        user: UserId,
    ) -> Result<Option<UnixMillis>, Error> {
        check_agent(agent)?;
        let own = self.markers(guild, Some(user));
        let common = self.markers(guild, None);
        let mut latest = None;
        for path in BTreeSet::from([own, common]) {
            for entry in self.entries(&path)? {
                if let Record::Marker(key, at) = entry
                    && key.agent == *agent
                    && key.user.is_none_or(|marked| marked == user)
                {
                    latest = latest.max(Some(at));
                }
            }
        }
        Ok(latest)
    }

    pub(super) fn agent_created(
        &self,
        agent: &AgentName,
        now: UnixMillis,
    ) -> Result<UnixMillis, Error> {
        check_agent(agent)?;
        self.change(&self.dir.join("agents.json"), |entries| {
            let known = entries.iter().find_map(|entry| match entry {
                Record::Agent(name, created) if name == agent => Some(*created),
                _ => None,
            });
            if known.is_none() {
                entries.push(Record::Agent(agent.clone(), now));
            }
            known.unwrap_or(now)
        })
    }

    /// See [`Backend::facts`](crate::Backend::facts).
    pub(super) fn facts(&self, subject: Subject, most: usize) -> Result<Vec<Fact>, Error> {
        let entries = self.entries(&self.profile(subject))?;
        let facts = entries.into_iter().filter_map(|entry| match entry {
            Record::Fact(fact) if fact.subject == subject => Some(fact),
            _ => None,
        });
        Ok(Fact::most_useful(facts.collect(), most))
    }

    /// See [`Backend::remove`](crate::Backend::remove).
    pub(super) fn remove(&self, keys: &[RecordKey]) -> Result<u64, Error> {
        let kinds: BTreeSet<Kind> = keys.iter().flat_map(RecordKey::kinds).copied().collect();
        let goes = |entry: &Record| entry.key().is_some_and(|key| keys.contains(&key));
        kinds
            .into_iter()
            .map(|kind| self.strip_all(kind, &goes))
            .sum()
    }

    /// Removes entries from all files of a kind. Returns how many.
    pub(super) fn strip_all(
        &self,
        kind: Kind,
        goes: &dyn Fn(&Record) -> bool,
    ) -> Result<u64, Error> {
        let paths = self.entry_files(kind)?.into_iter();
        paths.map(|path| self.strip(&path, goes)).sum()
    }

    /// Removes entries from a file. Returns how many.
    pub(super) fn strip(&self, path: &Path, goes: &dyn Fn(&Record) -> bool) -> Result<u64, Error> {
        self.change(path, |entries| stripped(entries, goes))
    }

    /// Removes from a file what a purge covers. Returns how many entries.
    pub(super) fn strip_covered(&self, path: &Path, purge: &Purge) -> Result<u64, Error> {
        self.change(path, |entries| {
            let rows: Vec<_> = entries
                .iter()
                .filter_map(Record::message)
                .cloned()
                .collect();
            let reach = Reach::of(purge, &rows);
            stripped(entries, |entry| match entry {
                Record::Message(row) => reach.holds(row),
                other => purge.takes(other),
            })
        })
    }

    /// See [`Backend::try_writing`](crate::Backend::try_writing). More than one block, so that
    /// a file system cannot keep it in a name's place.
    pub(super) fn try_writing(&self) -> Result<(), Error> {
        let path = self.dir.join("trial");
        self.alone(&path, || {
            let written = disk::write(&path, &[0; 8 << 10]);
            let removed = disk::remove(&path);
            written.and(removed).map(drop)
        })
    }

    /// See [`Backend::claim`](crate::Backend::claim).
    pub(super) fn claim(&self, application: ApplicationId) -> Result<(), Error> {
        let path = self.dir.join("owner.json");
        self.alone(&path, || {
            if disk::read(&path, LARGEST_OWNER)?.is_none() {
                return disk::write(&path, format!("\"{application}\"\n").as_bytes());
            }
            self.owned_by(&path, application)
        })
    }

    /// Refuses the store of another application, by the file that says whose it is.
    fn owned_by(&self, path: &Path, application: ApplicationId) -> Result<(), Error> {
        let Some(text) = disk::read(path, LARGEST_OWNER)? else {
            return Ok(());
        };
        let owner: Option<String> = serde_json::from_slice(&text).ok();
        let owner: Option<ApplicationId> = owner.and_then(|owner| owner.parse().ok());
        match owner {
            Some(owner) => Error::unless_owned(&self.dir.display().to_string(), owner, application),
            None => Err(Error::Corrupt {
                operation: "see whose store it is",
                place: path.display().to_string(),
                source: None,
            }),
        }
    }

    /// Records which channels facts link into.
    pub(super) fn index_links(&self) -> Result<(), Error> {
        for kind in [Kind::UserFacts, Kind::ServerFacts] {
            for path in self.entry_files(kind)? {
                // A file of a newer version is reported when it is used.
                let entries = self.entries(&path).unwrap_or_default();
                for entry in &entries {
                    self.note_link(entry);
                }
            }
        }
        Ok(())
    }

    fn note_link(&self, entry: &Record) {
        if let Record::Fact(fact) = entry
            && let Some((channel, _)) = fact.link
        {
            let mut index = self.index();
            index
                .linked
                .entry(channel)
                .or_default()
                .insert(fact.subject);
        }
    }

    /// Visits all entries but the rows of conversations.
    pub(super) fn each_entry(&self, visit: &mut dyn FnMut(&Record)) -> Result<(), Error> {
        let mut kinds = Kind::ALL.into_iter();
        kinds.try_for_each(|kind| self.each_of(kind, visit))
    }

    /// Visits the entries of a kind; of rows the early ones.
    pub(super) fn each_of(&self, kind: Kind, visit: &mut dyn FnMut(&Record)) -> Result<(), Error> {
        for path in self.entry_files(kind)? {
            self.entries(&path)?.iter().for_each(&mut *visit);
        }
        Ok(())
    }
}

/// Takes out what goes. Returns how many.
pub(super) fn stripped<T>(all: &mut Vec<T>, goes: impl Fn(&T) -> bool) -> u64 {
    let before = all.len();
    all.retain(|one| !goes(one));
    (before - all.len()) as u64
}

fn files_in<T: std::str::FromStr + Ord + ToString>(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let ids = ids_in::<T>(folder)?;
    let path = |id: &T| folder.join(format!("{}.json", id.to_string()));
    Ok(ids.iter().map(path).collect())
}

fn parse(text: &[u8]) -> Result<Vec<Record>, Unread> {
    let mut fields = Fields::parse(text)?;
    super::check_version(&fields)?;
    Ok(fields.forms("entries")?)
}

/// A file of entries.
pub(super) fn write(entries: &[Record]) -> String {
    let lines: Vec<String> = entries.iter().map(Record::to_line).collect();
    format!(
        "{{\"version\":{VERSION},\"entries\":[\n{}\n]}}\n",
        lines.join(",\n")
    )
}
