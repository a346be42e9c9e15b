//! Removes purged data from every file.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use super::super::{Error, Kind, Purge, Purged, Record, disk};
use super::folder::{ConversationsIn, StoreFolder};
use crate::model::{Origin, StoredMessage, Subject};
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UnixMillis, UserId};

impl StoreFolder {
    pub(super) fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        let mut purged = Purged::default();
        let mut all = Tally::default();
        for kind in Kind::ALL {
            let gone = self.purge_kind(kind, purge);
            purged.add(kind, all.add(gone));
        }
        let aside = self.remove_aside(&mut |path| aside_goes(path, purge));
        all.add(aside.map(|()| 0));
        all.finish()?;
        if matches!(purge, Purge::Guild(_) | Purge::Channel(_)) {
            self.vacuum()?;
        }
        Ok(purged)
    }

    fn purge_rows(&self, purge: &Purge) -> Result<u64, Error> {
        let mut gone = Tally::default();
        gone.add(self.purge_early(purge));
        for scope in self.made_from(|source| purge.takes_source(source, UnixMillis(i64::MIN))) {
            gone.add(self.strip_rows(scope, purge));
        }
        let (place, user) = match purge {
            Purge::Messages { channel, .. } | Purge::Channel(channel) => {
                (ConversationsIn::Channel(*channel), None)
            }
            Purge::Edited { .. } => return gone.finish(),
            Purge::Guild(guild) => (ConversationsIn::Guild(*guild), None),
            Purge::Member { guild, user } => (ConversationsIn::Guild(*guild), Some(*user)),
            Purge::User(user) => (ConversationsIn::Everywhere, Some(*user)),
            Purge::Before(_) => (ConversationsIn::Everywhere, None),
        };
        self.conversations(place, user, &mut |scope| {
            gone.add(match purge {
                Purge::Messages { .. }
                | Purge::Edited { .. }
                | Purge::Channel(_)
                | Purge::Before(_) => self.strip_rows(scope, purge),
                // The walk only visits conversations that the purge covers.
                Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) => {
                    self.delete_conversation(scope)
                }
            });
            Ok(())
        })?;
        gone.finish()
    }

    fn purge_kind(&self, kind: Kind, purge: &Purge) -> Result<u64, Error> {
        let paths = match kind {
            Kind::Messages => return self.purge_rows(purge),
            Kind::UserFacts | Kind::ServerFacts => match purge {
                Purge::Messages { channel, .. }
                | Purge::Edited { channel, .. }
                | Purge::Channel(channel) => self.linked_files(kind, *channel),
                Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) | Purge::Before(_) => {
                    self.entry_files(kind)?
                }
            },
            // Lists hold no text and belong to no channel.
            Kind::Markers | Kind::Settings | Kind::Departures => match purge {
                Purge::Messages { .. }
                | Purge::Edited { .. }
                | Purge::Channel(_)
                | Purge::Before(_) => return Ok(0),
                Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) => {
                    self.entry_files(kind)?
                }
            },
            // No purge takes the former two; the others are not kept here.
            Kind::OptOuts
            | Kind::Agents
            | Kind::Snapshots
            | Kind::Receipts
            | Kind::Transcripts
            | Kind::Outputs => {
                return Ok(0);
            }
        };
        let mut gone = Tally::default();
        for path in paths {
            gone.add(self.strip(&path, &|entry| purge.takes(entry)));
        }
        gone.finish()
    }

    /// Files of facts that link into a channel.
    fn linked_files(&self, kind: Kind, channel: ChannelId) -> Vec<std::path::PathBuf> {
        let subjects = self.index().linked.get(&channel).cloned();
        let of_kind = |subject: &Subject| match subject {
            Subject::User(_) => kind == Kind::UserFacts,
            Subject::Server(_) => kind == Kind::ServerFacts,
        };
        let subjects = subjects.unwrap_or_default().into_iter().filter(of_kind);
        subjects.map(|subject| self.profile(subject)).collect()
    }

    pub(super) fn held_messages(
        &self,
        channel: ChannelId,
        from: MessageId,
        to: MessageId,
    ) -> Result<Vec<MessageId>, Error> {
        let now = (self.clock)();
        let mut held = Vec::new();
        self.conversations(ConversationsIn::Channel(channel), None, &mut |scope| {
            let found = self.rows_of(scope, now)?;
            let rows = found.into_iter().flat_map(|found| found.rows);
            for row in rows.filter(|row| row.channel == channel) {
                held.extend(row.message);
                held.extend(row.parts);
            }
            Ok(())
        })?;
        let early = self.all_early()?;
        let early = early.iter().flat_map(StoredMessage::made_of);
        held.extend(early.filter_map(|(of, id)| (of == channel).then_some(id)));
        let is_here = |source: &ContentSource| source.channel == channel;
        for sources in self.index().made_from.values() {
            let here = sources.iter().filter(|source| is_here(source));
            held.extend(here.filter_map(|source| source.message));
        }
        for kind in [Kind::UserFacts, Kind::ServerFacts] {
            for path in self.linked_files(kind, channel) {
                let entries = self.entries(&path)?.into_iter();
                held.extend(entries.filter_map(|entry| {
                    match entry {
                        Record::Fact(fact) => fact.link.filter(|link| link.0 == channel),
                        _ => None,
                    }
                    .map(|link| link.1)
                }));
            }
        }
        held.retain(|message| (from..=to).contains(message));
        held.sort_unstable();
        held.dedup();
        Ok(held)
    }

    pub(super) fn guilds(&self) -> Result<Vec<GuildId>, Error> {
        let mut guilds: BTreeSet<GuildId> = self
            .guilds_in(ConversationsIn::Everywhere)?
            .into_iter()
            .collect();
        guilds.extend(self.all_early()?.iter().filter_map(|row| row.guild));
        for sources in self.index().made_from.values() {
            guilds.extend(sources.iter().filter_map(|source| source.guild));
        }
        self.each_entry(&mut |entry| guilds.extend(guild_of(entry)))?;
        Ok(guilds.into_iter().collect())
    }

    pub(super) fn recent_direct(&self, limit: usize) -> Result<Vec<ChannelId>, Error> {
        let now = (self.clock)();
        let mut rows = self.all_early()?;
        self.conversations(ConversationsIn::Direct, None, &mut |scope| {
            let found = self.rows_of(scope, now)?;
            rows.extend(found.into_iter().flat_map(|found| found.rows));
            Ok(())
        })?;
        let mut found: HashMap<ChannelId, UnixMillis> = HashMap::new();
        for row in rows.iter().filter(|row| row.guild.is_none()) {
            let at = found.entry(row.channel).or_insert(row.timestamp);
            *at = row.timestamp.max(*at);
        }
        let mut channels: Vec<(UnixMillis, ChannelId)> = found
            .into_iter()
            .map(|(channel, at)| (at, channel))
            .collect();
        channels.sort_unstable_by_key(|newest| Reverse(*newest));
        channels.truncate(limit);
        Ok(channels.into_iter().map(|(_, channel)| channel).collect())
    }

    pub(super) fn members(&self, guild: GuildId) -> Result<Vec<UserId>, Error> {
        let mut members = BTreeSet::new();
        self.conversations(ConversationsIn::Guild(guild), None, &mut |scope| {
            members.extend(scope.owner());
            Ok(())
        })?;
        let early = self.all_early()?.into_iter();
        let here = early.filter(|row| row.guild == Some(guild));
        members.extend(here.map(|row| row.owner));
        for sources in self.index().made_from.values() {
            let here = sources.iter().filter(|source| source.guild == Some(guild));
            members.extend(here.filter_map(|source| source.author));
        }
        self.each_entry(&mut |entry| members.extend(members_of(entry, guild)))?;
        Ok(members.into_iter().collect())
    }

    /// Removes set-aside files that may hold purged data.
    pub(super) fn remove_aside(&self, goes: &mut dyn FnMut(&Path) -> bool) -> Result<(), Error> {
        let aside = self.index().aside.clone();
        for path in aside.into_iter().filter(|path| goes(path)) {
            disk::remove(&path)?;
            self.index().aside.remove(&path);
        }
        Ok(())
    }
}

/// Counts what was removed. A file that fails does not stop the others: the
/// first error is returned at the end.
#[derive(Default)]
struct Tally {
    gone: u64,
    failed: Option<Error>,
}

impl Tally {
    fn add(&mut self, gone: Result<u64, Error>) -> u64 {
        match gone {
            Ok(gone) => {
                self.gone += gone;
                gone
            }
            Err(error) => {
                self.failed.get_or_insert(error);
                0
            }
        }
    }

    fn finish(self) -> Result<u64, Error> {
        self.failed.map_or(Ok(self.gone), Err)
    }
}

/// Whether to remove an unreadable file: when its path or text contains an id
/// to be purged, or when it is older than the purge's time.
fn aside_goes(path: &Path, purge: &Purge) -> bool {
    let ids: Vec<String> = match purge {
        Purge::Messages { ids, .. } => ids.iter().map(ToString::to_string).collect(),
        Purge::Edited { message, .. } => vec![message.to_string()],
        Purge::Channel(channel) => vec![channel.to_string()],
        Purge::Guild(guild) => vec![guild.to_string()],
        Purge::Member { user, .. } | Purge::User(user) => vec![user.to_string()],
        Purge::Before(moment) => return is_older(path, *moment),
    };
    let path_text = path.to_string_lossy();
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    ids.iter()
        .any(|id| names(&path_text, id) || names(&text, id))
}

fn is_older(path: &Path, moment: UnixMillis) -> bool {
    let changed = fs::metadata(path).and_then(|about| about.modified());
    let since = changed.map(|time| {
        time.duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
    });
    since.is_ok_and(|since| i64::try_from(since.as_millis()).is_ok_and(|at| at < moment.0))
}

/// Whether a text contains the id, not as part of a longer number.
fn names(text: &str, id: &str) -> bool {
    text.split(|letter: char| !letter.is_ascii_digit())
        .any(|number| number == id)
}

/// The server an entry belongs to.
fn guild_of(entry: &Record) -> Option<GuildId> {
    match entry {
        Record::Marker(key, _) => key.guild,
        Record::Settings(guild, _) => Some(*guild),
        Record::Fact(fact) => match (fact.subject, fact.origin) {
            (Subject::Server(guild), _) | (_, Origin::Guild(guild)) => Some(guild),
            (Subject::User(_), Origin::Direct | Origin::Everywhere) => None,
        },
        Record::Message(_)
        | Record::Snapshot(_)
        | Record::Receipt(_)
        | Record::OptOut(..)
        | Record::Agent(..)
        | Record::Departure(..) => None,
    }
}

/// The users that an entry of a server is of.
fn members_of(entry: &Record, guild: GuildId) -> Vec<UserId> {
    match entry {
        Record::Marker(key, _) if key.guild == Some(guild) => key.user.into_iter().collect(),
        Record::Fact(fact) if fact.is_from(guild) => match fact.subject {
            Subject::User(user) => vec![user, fact.by],
            Subject::Server(_) => vec![fact.by],
        },
        Record::Marker(..)
        | Record::Fact(_)
        | Record::Message(_)
        | Record::Snapshot(_)
        | Record::Receipt(_)
        | Record::OptOut(..)
        | Record::Settings(..)
        | Record::Agent(..)
        | Record::Departure(..) => Vec::new(),
    }
}
