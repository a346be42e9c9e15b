//! Conversations: appending, reading, editing, deleting, expiring.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::json;
use super::super::{
    ConversationStats, Error, ExchangeQuery, Exchanges, Kind, Purge, Reach, Record, TurnKey,
    WindowQuery, disk,
};
use super::check_agent;
use super::conversation::{Conversation, LIFETIME, check};
use super::entries::stripped;
use super::folder::{ConversationsIn, StoreFolder};
use crate::append;
use crate::model::{AgentName, Scope, StoredMessage};
use crate::snapshots::held_sources;
use clew_context::model::{ChannelId, ContentSource, GuildId, MessageId, UnixMillis, UserId};

impl StoreFolder {
    pub(super) fn append(&self, turn: &[StoredMessage]) -> Result<u64, Error> {
        let first = append::first_of(turn);
        let first = first.map_err(|why| Error::database("append a turn", why))?;
        turn.iter().try_for_each(check)?;
        let now = (self.clock)();
        let cleared = self.cleared_at(&first.agent, first.guild, first.owner)?;
        let early = self.early_turn(&self.early_file(&TurnKey::of(first))?)?;
        let ordinal = self.extend(first.scope, now, |conversation| {
            conversation.cleared = conversation.cleared.max(cleared);
            let last = self.index().early.get(&first.scope).copied();
            let ordinal = conversation.ordinal_of(first, &early, last.unwrap_or_default());
            conversation.append(turn, ordinal, &early, now);
            ordinal
        })?;
        let mut index = self.index();
        let last = index.early.get(&first.scope);
        if last.is_some_and(|last| *last <= ordinal) {
            index.early.remove(&first.scope);
        }
        drop(index);
        self.confirmed(&TurnKey::of(first))?;
        Ok(ordinal)
    }

    /// Writes rows of one conversation unchanged.
    pub(super) fn put_rows(&self, scope: Scope, rows: &[&StoredMessage]) -> Result<(), Error> {
        let now = (self.clock)();
        self.extend(scope, now, |conversation| {
            for row in rows {
                conversation.put(row, now);
            }
        })
    }

    pub(super) fn read_window(&self, query: &WindowQuery) -> Result<Vec<StoredMessage>, Error> {
        check_agent(&query.agent)?;
        let cleared = match query.scope.owner() {
            Some(owner) => self.cleared_at(&query.agent, query.scope.guild(), owner)?,
            None => None,
        };
        let now = (self.clock)();
        let Some(conversation) = self.rows_of(query.scope, now)? else {
            return Ok(Vec::new());
        };
        // A file that was moved here carries its marker with it.
        let brought = conversation.cleared.filter(|at| Some(*at) > cleared);
        let asked = match query.cleared {
            Some(asker) => self.cleared_at(&query.agent, asker.guild, asker.user)?,
            None => None,
        };
        let since = query.start(brought.max(asked));
        let mut rows = conversation.rows;
        rows.retain(|row| {
            row.agent == query.agent && row.timestamp > since && row.scope == query.scope
        });
        Ok(rows.split_off(rows.len().saturating_sub(query.limit)))
    }

    pub(super) fn read_exchanges(
        &self,
        query: &ExchangeQuery,
    ) -> Result<Vec<StoredMessage>, Error> {
        let mut rows = self.read_window(&WindowQuery {
            scope: query.scope,
            agent: query.agent.clone(),
            since: UnixMillis(i64::MIN),
            cleared: None,
            with_tools: false,
            limit: usize::MAX,
        })?;
        rows.retain(|row| match &query.which {
            Exchanges::Below(ordinal) => row.ordinal < *ordinal,
            Exchanges::Above(ordinal) => row.ordinal > *ordinal,
            Exchanges::Turns(turns) => turns.contains(&row.turn),
        });
        if matches!(query.which, Exchanges::Below(_)) {
            rows.drain(..rows.len().saturating_sub(query.limit));
        }
        rows.truncate(query.limit);
        Ok(rows)
    }

    pub(super) fn conversation(
        &self,
        scope: Scope,
        now: UnixMillis,
    ) -> Result<ConversationStats, Error> {
        let stats = |conversation: Conversation| ConversationStats {
            exists: true,
            message_count: conversation.rows.len(),
            expires_in: Some(conversation.expires_in(now)),
        };
        Ok(self.rows_of(scope, now)?.map(stats).unwrap_or_default())
    }

    pub(super) fn delete_conversation(&self, scope: Scope) -> Result<u64, Error> {
        let path = self.conversation_file(scope)?;
        let gone = self.alone(&path, || {
            let found = self.load(&path, |text| Conversation::read(scope, text))?;
            self.drop_file(scope, &path)?;
            Ok(found.map_or(0, |found| found.rows.len() as u64))
        })?;
        self.remove_aside(&mut |aside| is_aside_of(aside, &path))?;
        let is_of = |entry: &Record| entry.message().is_some_and(|row| row.scope == scope);
        Ok(gone + self.strip_all(Kind::Messages, &is_of)?)
    }

    pub(super) fn own_messages(
        &self,
        owner: UserId,
        agent: &AgentName,
        guild: Option<GuildId>,
        since: UnixMillis,
    ) -> Result<Vec<StoredMessage>, Error> {
        check_agent(agent)?;
        let mut rows = Vec::new();
        let place = guild.map_or(ConversationsIn::Direct, ConversationsIn::Guild);
        self.each_row(place, Some(owner), &mut |row| {
            rows.extend(Some(row).filter(|row| row.agent == *agent && row.timestamp > since));
        })?;
        rows.sort_by_key(|row: &StoredMessage| row.timestamp);
        Ok(rows)
    }

    pub(super) fn edit_message(
        &self,
        channel: ChannelId,
        message: MessageId,
        text: &str,
    ) -> Result<u64, Error> {
        let mut edited = 0;
        self.conversations(ConversationsIn::Channel(channel), None, &mut |scope| {
            edited += self.revise(scope, |conversation| {
                edit_rows(conversation.rows.iter_mut(), channel, message, text)
            })?;
            Ok(())
        })?;
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

    /// Removes the rows of a conversation that a purge covers.
    pub(super) fn strip_rows(&self, scope: Scope, purge: &Purge) -> Result<u64, Error> {
        self.revise(scope, |conversation| {
            let before = conversation.rows.clone();
            let reach = Reach::of(purge, &before);
            stripped(&mut conversation.rows, |row| reach.holds(row))
        })
    }

    pub(super) fn sweep(&self, now: UnixMillis) -> Result<u64, Error> {
        let mut gone = 0;
        self.conversations(ConversationsIn::Everywhere, None, &mut |scope| {
            let path = self.conversation_file(scope)?;
            match self.alone(&path, || self.find(scope, &path, now)) {
                Ok((_, expired)) => gone += expired,
                // One unreadable file does not stop the others.
                Err(error) => tracing::error!(file = %path.display(), %error, "not swept"),
            }
            Ok(())
        })?;
        // Early rows that would have expired by now.
        let expired = Purge::Before(now.before(LIFETIME));
        for path in self.early_files()? {
            gone += self.strip_covered(&path, &expired)?;
        }
        self.vacuum()?;
        Ok(gone)
    }

    /// Visits the rows of conversations; early ones are not among them.
    pub(super) fn each_row(
        &self,
        place: ConversationsIn,
        user: Option<UserId>,
        visit: &mut dyn FnMut(StoredMessage),
    ) -> Result<(), Error> {
        let now = (self.clock)();
        self.conversations(place, user, &mut |scope| {
            let found = self.rows_of(scope, now)?;
            let rows = found.into_iter().flat_map(|found| found.rows);
            rows.for_each(&mut *visit);
            Ok(())
        })
    }

    /// A conversation, unless it has expired.
    pub(super) fn rows_of(
        &self,
        scope: Scope,
        now: UnixMillis,
    ) -> Result<Option<Conversation>, Error> {
        let path = self.conversation_file(scope)?;
        let (found, _) = self.alone(&path, || self.find(scope, &path, now))?;
        Ok(found)
    }

    /// Adds to a conversation, which begins now if there is none.
    fn extend<T>(
        &self,
        scope: Scope,
        now: UnixMillis,
        add: impl FnOnce(&mut Conversation) -> T,
    ) -> Result<T, Error> {
        let path = self.conversation_file(scope)?;
        self.alone(&path, || {
            let (found, _) = self.find(scope, &path, now)?;
            let mut conversation = found.unwrap_or_else(|| Conversation::fresh(now));
            let added = add(&mut conversation);
            self.store(scope, &path, &conversation)?;
            Ok(added)
        })
    }

    /// Changes rows. Writes nothing if `change` returns zero, and removes a
    /// file left without rows.
    fn revise(
        &self,
        scope: Scope,
        change: impl FnOnce(&mut Conversation) -> u64,
    ) -> Result<u64, Error> {
        let path = self.conversation_file(scope)?;
        let now = (self.clock)();
        self.alone(&path, || {
            let (Some(mut conversation), _) = self.find(scope, &path, now)? else {
                return Ok(0);
            };
            let changes = change(&mut conversation);
            if conversation.rows.is_empty() {
                self.drop_file(scope, &path)?;
            } else if changes > 0 {
                self.store(scope, &path, &conversation)?;
            }
            Ok(changes)
        })
    }

    /// Writes a conversation's file; call it within [`Self::alone`].
    fn store(&self, scope: Scope, path: &Path, conversation: &Conversation) -> Result<(), Error> {
        disk::write(path, json::indented(&conversation).as_bytes())?;
        self.note(scope, &conversation.rows);
        Ok(())
    }

    /// Removes a conversation's file; call it within [`Self::alone`].
    fn drop_file(&self, scope: Scope, path: &Path) -> Result<(), Error> {
        disk::remove(path)?;
        self.note(scope, &[]);
        Ok(())
    }

    /// Records the channels of direct messages, and what rows were made from.
    fn note(&self, scope: Scope, rows: &[StoredMessage]) {
        let sources = held_sources(rows);
        let mut index = self.index();
        if let Scope::Direct(user) = scope {
            let channels = rows.iter().map(|row| (row.channel, user));
            index.direct.extend(channels);
        }
        if sources.is_empty() {
            index.made_from.remove(&scope);
        } else {
            index.made_from.insert(scope, sources);
        }
    }

    /// Conversations with anything made from such a source.
    pub(super) fn made_from(&self, is_meant: impl Fn(&ContentSource) -> bool) -> BTreeSet<Scope> {
        let index = self.index();
        let meant = index.made_from.iter();
        let meant = meant.filter(|(_, sources)| sources.iter().any(&is_meant));
        meant.map(|(scope, _)| *scope).collect()
    }

    /// Reads a file; removes it if it has expired. Also returns how many rows went so.
    pub(super) fn find(
        &self,
        scope: Scope,
        path: &Path,
        now: UnixMillis,
    ) -> Result<(Option<Conversation>, u64), Error> {
        match self.load(path, |text| Conversation::read(scope, text))? {
            Some(conversation) if conversation.is_expired(now) => {
                self.drop_file(scope, path)?;
                Ok((None, conversation.rows.len() as u64))
            }
            Some(conversation) => Ok((Some(conversation), 0)),
            None => {
                // It may have become unreadable.
                self.note(scope, &[]);
                Ok((None, 0))
            }
        }
    }

    /// Makes the index of conversations.
    pub(super) fn index_conversations(&self) -> Result<(), Error> {
        self.conversations(ConversationsIn::Everywhere, None, &mut |scope| {
            let path = self.conversation_file(scope)?;
            let load = || self.load(&path, |text| Conversation::read(scope, text));
            // A file of a newer version is reported when it is used.
            let found = self.alone(&path, load).ok().flatten();
            let rows = found.map(|found| found.rows).unwrap_or_default();
            self.note(scope, &rows);
            Ok(())
        })?;
        for path in self.early_files()? {
            for row in self.early_turn(&path).unwrap_or_default() {
                let mut index = self.index();
                let last = index.early.entry(row.scope).or_default();
                *last = row.ordinal.max(*last);
            }
        }
        Ok(())
    }
}

/// Gives an edited message its new text. Returns how many rows had another.
fn edit_rows<'a>(
    rows: impl Iterator<Item = &'a mut StoredMessage>,
    channel: ChannelId,
    message: MessageId,
    text: &str,
) -> u64 {
    let is_it = |row: &&mut StoredMessage| row.is_text_of(channel, message) && row.content != text;
    let rows = rows.filter(is_it);
    rows.map(|row| text.clone_into(&mut row.content)).count() as u64
}

/// `1.json.corrupt-2` for `1.json`.
fn is_aside_of(aside: &Path, path: &Path) -> bool {
    let name = |path: &Path| {
        path.file_name()
            .and_then(|name| name.to_str())
            .map(str::to_owned)
    };
    let starts = name(aside)
        .zip(name(path))
        .is_some_and(|(aside, name)| aside.strip_prefix(&name).is_some());
    starts && aside.parent() == path.parent()
}
