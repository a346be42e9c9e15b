//! Purges, and what is asked about everything that is held.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use super::super::{Error, Kind, Purge, Purged, Record, disk};
use super::folder::{ConversationsIn, StoreFolder};
use crate::model::Subject;
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UnixMillis, UserId};

impl StoreFolder {
    pub(super) fn purge(&self, purge: &Purge) -> Result<Purged, Error> {
        let mut purged = Purged::default();
        let mut failed = FirstError::default();
        let mut scopes = self.made_from(|source| purge.takes_source(source, UnixMillis(i64::MIN)));
        if let Some((place, user)) = place_of(purge) {
            let walked = self.conversations(place, user, &mut |scope| {
                scopes.insert(scope);
                Ok(())
            });
            failed.of(walked);
        }
        for scope in scopes {
            purged.add(Kind::Messages, failed.of(self.strip_rows(scope, purge)));
        }
        for kind in Kind::ALL {
            for path in failed.of(self.files_for(purge, kind)) {
                purged.add(kind, failed.of(self.strip_covered(&path, purge)));
            }
        }
        failed.of(self.remove_aside(&mut |path| aside_goes(path, purge)));
        failed.finish()?;
        if matches!(purge, Purge::Guild(_) | Purge::Channel(_)) {
            self.vacuum()?;
        }
        Ok(purged)
    }

    /// The files of a kind, other than conversations, that may hold what a purge covers.
    fn files_for(&self, purge: &Purge, kind: Kind) -> Result<Vec<PathBuf>, Error> {
        let in_channel = match purge {
            Purge::Messages { channel, .. }
            | Purge::Edited { channel, .. }
            | Purge::Channel(channel) => Some(*channel),
            Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) | Purge::Before(_) => None,
        };
        match kind {
            Kind::Messages => self.entry_files(kind),
            Kind::UserFacts | Kind::ServerFacts => match in_channel {
                Some(channel) => Ok(self.linked_files(kind, channel)),
                None => self.entry_files(kind),
            },
            // Lists hold no text and belong to no channel.
            Kind::Markers | Kind::Settings | Kind::Departures => match purge {
                Purge::Guild(_) | Purge::Member { .. } | Purge::User(_) => self.entry_files(kind),
                _ => Ok(Vec::new()),
            },
            // No purge takes the former two; the others are not kept here.
            Kind::OptOuts
            | Kind::Agents
            | Kind::Snapshots
            | Kind::Receipts
            | Kind::Transcripts
            | Kind::Outputs => Ok(Vec::new()),
        }
    }

    /// Files of facts that link into a channel.
    fn linked_files(&self, kind: Kind, channel: ChannelId) -> Vec<PathBuf> {
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
        let mut held = BTreeSet::new();
        self.each_row(ConversationsIn::Channel(channel), None, &mut |row| {
            held.extend(row.made_of());
        })?;
        for row in self.early(usize::MAX)? {
            held.extend(row.made_of());
        }
        let sources = self.sources().into_iter();
        held.extend(sources.filter_map(|source| Some((source.channel, source.message?))));
        for kind in [Kind::UserFacts, Kind::ServerFacts] {
            for path in self.linked_files(kind, channel) {
                for entry in self.entries(&path)? {
                    if let Record::Fact(fact) = entry {
                        held.extend(fact.link);
                    }
                }
            }
        }
        let here = held.into_iter().filter(|(of, _)| *of == channel);
        let ids = here.map(|(_, id)| id);
        Ok(ids.filter(|id| (from..=to).contains(id)).collect())
    }

    pub(super) fn guilds(&self) -> Result<Vec<GuildId>, Error> {
        let mut guilds = BTreeSet::new();
        // A folder may be left without a conversation.
        self.conversations(ConversationsIn::Everywhere, None, &mut |scope| {
            guilds.extend(scope.guild());
            Ok(())
        })?;
        guilds.extend(self.sources().iter().filter_map(|source| source.guild));
        self.each_entry(&mut |entry| guilds.extend(entry.guilds()))?;
        Ok(guilds.into_iter().collect())
    }

    pub(super) fn recent_direct(&self, limit: usize) -> Result<Vec<ChannelId>, Error> {
        let mut rows = self.early(usize::MAX)?;
        self.each_row(ConversationsIn::Direct, None, &mut |row| rows.push(row))?;
        let mut found: HashMap<ChannelId, UnixMillis> = HashMap::new();
        for row in rows.iter().filter(|row| row.guild.is_none()) {
            let at = found.entry(row.channel).or_insert(row.timestamp);
            *at = row.timestamp.max(*at);
        }
        let mut channels: Vec<(ChannelId, UnixMillis)> = found.into_iter().collect();
        channels.sort_unstable_by_key(|(channel, at)| Reverse((*at, *channel)));
        channels.truncate(limit);
        Ok(channels.into_iter().map(|(channel, _)| channel).collect())
    }

    pub(super) fn members(&self, guild: GuildId) -> Result<Vec<UserId>, Error> {
        let mut members = BTreeSet::new();
        self.conversations(ConversationsIn::Guild(guild), None, &mut |scope| {
            members.extend(scope.owner());
            Ok(())
        })?;
        let sources = self.sources().into_iter();
        let here = sources.filter(|source| source.guild == Some(guild));
        members.extend(here.filter_map(|source| source.author));
        self.each_entry(&mut |entry| {
            if entry.guilds().contains(&guild) {
                members.extend(entry.people());
            }
        })?;
        Ok(members.into_iter().collect())
    }

    /// What the rows of any conversation were made from.
    fn sources(&self) -> Vec<ContentSource> {
        let index = self.index();
        index.made_from.values().flatten().copied().collect()
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

/// A file that fails does not stop the others: the first error is returned at the end.
#[derive(Default)]
struct FirstError(Option<Error>);

impl FirstError {
    /// What was done; nothing if it failed.
    fn of<T: Default>(&mut self, done: Result<T, Error>) -> T {
        done.unwrap_or_else(|error| {
            self.0.get_or_insert(error);
            T::default()
        })
    }

    fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The conversations, and of one user, whose rows a purge may cover by themselves.
const fn place_of(purge: &Purge) -> Option<(ConversationsIn, Option<UserId>)> {
    match purge {
        Purge::Messages { channel, .. } | Purge::Channel(channel) => {
            Some((ConversationsIn::Channel(*channel), None))
        }
        Purge::Edited { .. } => None,
        Purge::Guild(guild) => Some((ConversationsIn::Guild(*guild), None)),
        Purge::Member { guild, user } => Some((ConversationsIn::Guild(*guild), Some(*user))),
        Purge::User(user) => Some((ConversationsIn::Everywhere, Some(*user))),
        Purge::Before(_) => Some((ConversationsIn::Everywhere, None)),
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
