//! One conversation's file, version 1, with more optional fields than earlier
//! programs wrote.

use std::time::Duration;

use serde::{Serialize, Serializer};

use super::super::json::{Field as _, Fields, Object};
use super::super::{Error, FormError, TurnKey};
use super::VERSION;
use super::folder::Unread;
use crate::append;
use crate::model::{AgentName, Scope, StoredMessage, StoredRole};
use clew_context::model::{ChannelId, TurnId, UnixMillis};

/// Most messages in a file.
pub(crate) const MOST_MESSAGES: usize = 15;
/// Counted from the file's creation.
pub(super) const LIFETIME: Duration = Duration::from_hours(24);

/// A file's content.
pub(super) struct Conversation {
    created: UnixMillis,
    updated: UnixMillis,
    expires: UnixMillis,
    /// The latest clear marker at the last write.
    pub(super) cleared: Option<UnixMillis>,
    /// The highest ordinal assigned.
    last_ordinal: u64,
    /// Oldest first.
    pub(super) rows: Vec<StoredMessage>,
}

impl Conversation {
    /// A new conversation that starts now.
    pub(super) fn fresh(now: UnixMillis) -> Self {
        Self {
            created: now,
            updated: now,
            expires: end_of_life(now),
            cleared: None,
            last_ordinal: 0,
            rows: Vec::new(),
        }
    }

    pub(super) fn is_expired(&self, now: UnixMillis) -> bool {
        now >= self.expires
    }

    /// Time until it expires.
    pub(super) fn expires_in(&self, now: UnixMillis) -> Duration {
        let left = self.expires.since(now).max(0);
        Duration::from_millis(left.unsigned_abs())
    }

    /// A turn's ordinal: that of its rows or early rows, or the next one, behind all that early
    /// turns were given.
    pub(super) fn ordinal_of(
        &self,
        first: &StoredMessage,
        early: &[StoredMessage],
        last_early: u64,
    ) -> u64 {
        let is_same = |row: &&StoredMessage| TurnKey::of(row) == TurnKey::of(first);
        let stored = self.rows.iter().find(is_same).map(|row| row.ordinal);
        stored
            .or(append::early_ordinal(early))
            .unwrap_or(self.last_ordinal.max(last_early) + 1)
    }

    /// Adds or replaces a turn, and drops the oldest turns over the limit.
    pub(super) fn append(
        &mut self,
        turn: &[StoredMessage],
        ordinal: u64,
        early: &[StoredMessage],
        now: UnixMillis,
    ) {
        let newest = self.rows.iter().map(|row| row.timestamp).max();
        let key = turn.first().map(TurnKey::of);
        self.rows.retain(|row| Some(TurnKey::of(row)) != key);
        let rows = append::confirmed(early, turn, self.cleared)
            .unwrap_or_else(|| append::placed(turn, ordinal, newest, self.cleared));
        self.rows.extend(rows);
        self.settle(now);
    }

    /// Stores a row unchanged, replacing one with the same turn, role and
    /// message.
    pub(super) fn put(&mut self, row: &StoredMessage, now: UnixMillis) {
        let key = |row: &StoredMessage| (row.agent.clone(), row.turn, row.role, row.message);
        match self.rows.iter_mut().find(|old| key(old) == key(row)) {
            Some(old) => row.clone_into(old),
            None => self.rows.push(row.clone()),
        }
        self.settle(now);
    }

    /// Restores order, applies the limit and notes the time of the change.
    pub(super) fn settle(&mut self, now: UnixMillis) {
        self.updated = now;
        self.rows.sort_by_key(|row| row.ordinal);
        let highest = self.rows.last().map_or(0, |row| row.ordinal);
        self.last_ordinal = self.last_ordinal.max(highest);
        while self.rows.len() > MOST_MESSAGES {
            let oldest = self.rows.first().map(|row| row.ordinal);
            if oldest == self.rows.last().map(|row| row.ordinal) {
                // A single turn stays whole, however long.
                break;
            }
            self.rows.retain(|row| Some(row.ordinal) != oldest);
        }
    }

    /// Parses a file's text.
    pub(super) fn read(scope: Scope, text: &[u8]) -> Result<Self, Unread> {
        let mut fields = Fields::parse(text)?;
        super::check_version(&fields)?;
        let created = fields.need("createdAt")?;
        let end = end_of_life(created);
        let expires = fields.maybe("expiresAt")?.unwrap_or(end);
        let mut rows = Vec::new();
        for message in fields.objects("messages")? {
            let row = read_message(scope, &message, rows.last())?;
            rows.push(row);
        }
        let highest = rows.iter().map(|row: &StoredMessage| row.ordinal).max();
        Ok(Self {
            created,
            updated: fields.maybe("lastUpdated")?.unwrap_or(created),
            expires: expires.min(end),
            cleared: fields.maybe("clearedAt")?,
            last_ordinal: fields.maybe("lastTurn")?.max(highest).unwrap_or_default(),
            rows,
        })
    }
}

/// Checks that a file can hold the row: default agent, no tool rows.
pub(super) fn check(row: &StoredMessage) -> Result<(), Error> {
    super::check_agent(&row.agent)?;
    match row.role {
        StoredRole::User | StoredRole::Assistant => Ok(()),
        StoredRole::ToolUse | StoredRole::ToolResult => Err(Error::NeedsDatabase {
            what: "calls of tools",
        }),
    }
}

fn end_of_life(created: UnixMillis) -> UnixMillis {
    let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
    UnixMillis(created.0.saturating_add(lifetime))
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::new(serializer)?;
        object.field("version", VERSION)?;
        object.field("createdAt", self.created.0)?;
        object.field("lastUpdated", self.updated.0)?;
        object.field("expiresAt", self.expires.0)?;
        if let Some(cleared) = self.cleared {
            object.field("clearedAt", cleared.0)?;
        }
        object.field("lastTurn", self.last_ordinal)?;
        object.field(
            "messages",
            self.rows.iter().map(FileRow).collect::<Vec<_>>(),
        )?;
        object.end()
    }
}

/// A row as it stands in its conversation's file.
struct FileRow<'a>(&'a StoredMessage);

impl Serialize for FileRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Self(row), mut object) = (self, Object::new(serializer)?);
        row.role.put("role", &mut object)?;
        row.content.put("content", &mut object)?;
        object.field("timestamp", row.timestamp.0)?;
        row.message.put("messageId", &mut object)?;
        object.list("partIds", &row.parts)?;
        row.turn.put("turnId", &mut object)?;
        object.field("turn", row.ordinal)?;
        row.author_name.put("authorName", &mut object)?;
        row.target.put("targetId", &mut object)?;
        // The path of direct messages does not contain it.
        let is_direct = matches!(row.scope, Scope::Direct(_));
        let channel = is_direct.then_some(row.channel);
        channel.put("channelId", &mut object)?;
        row.restored_from.put("restoredFrom", &mut object)?;
        object.list("sources", &row.sources)?;
        object.end()
    }
}

/// Messages by earlier programs have no turn, so each user message starts one,
/// named by its time, which is far below any Discord id.
fn read_message(
    scope: Scope,
    fields: &Fields,
    before: Option<&StoredMessage>,
) -> Result<StoredMessage, FormError> {
    let role = fields.need("role")?;
    let timestamp: UnixMillis = fields.need("timestamp")?;
    let owner = scope.owner().ok_or_else(|| FormError::Unfit {
        field: "the name of the file".to_owned(),
        expected: "a user's id",
    })?;
    let (guild, channel) = match scope {
        Scope::Member { guild, channel, .. } | Scope::Thread { guild, channel } => {
            (Some(guild), channel)
        }
        // Earlier programs stored no channel. It only serves to find messages
        // by id, and they stored no ids either.
        Scope::User(user) | Scope::Direct(user) => {
            let channel = fields.maybe("channelId")?;
            (None, channel.unwrap_or(ChannelId::new(user.get())))
        }
    };
    let begins = role == StoredRole::User;
    let going_on = before.filter(|_| !begins);
    let next = before.map_or(1, |before| before.ordinal + 1);
    let name = timestamp.0.max(0).unsigned_abs();
    let last = before.map_or(0, |before| before.turn.0);
    let own = TurnId(name.max(last.saturating_add(1)));
    let turn = going_on.map_or(own, |before| before.turn);
    Ok(StoredMessage {
        scope,
        agent: fields
            .maybe("agent")?
            .unwrap_or_else(AgentName::default_agent),
        turn: fields.maybe("turnId")?.unwrap_or(turn),
        ordinal: fields
            .maybe("turn")?
            .unwrap_or(going_on.map_or(next, |before| before.ordinal)),
        role,
        guild,
        channel,
        owner,
        author_name: fields.maybe("authorName")?,
        content: fields.need("content")?,
        tool_calls: None,
        tool_call_id: None,
        timestamp,
        message: fields.maybe("messageId")?,
        parts: fields.maybe("partIds")?.unwrap_or_default(),
        target: fields.maybe("targetId")?,
        restored_from: fields.maybe("restoredFrom")?,
        sources: fields.maybe("sources")?.unwrap_or_default(),
    })
}
