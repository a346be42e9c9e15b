//! What each store can hold, entry by entry.

use std::collections::{BTreeMap, HashMap};

use super::super::files::{MOST_MESSAGES, check_agent};
use super::super::{Capacity, Kind, Record, Store};
use crate::model::{
    AgentName, ContextSnapshot, Fact, Scope, StoredMessage, StoredReceipt, StoredRole,
};
use clew_context::model::{MessageId, TurnId};

/// Replaces U+0000 for PostgreSQL.
const REPLACEMENT: &str = "\u{fffd}";

// Reasons, each a phrase that follows a kind and a count.
const NUL: &str = "hold the character U+0000, which becomes U+FFFD";
const DATABASE: &str = "need a database";
const OF_AGENT: &str = "are another agent's than the default one's, and need a database";
const AGENT: &str = "are not the default one, and need a database";
const SCOPE: &str = "are of another scope than member, and need a database";
const TOOLS: &str = "are calls of tools, and need a database";
const PLACE: &str = "are of another channel or user than their conversation";
const ALIKE: &str = "look like another one of their turn";
const OLDER: &str = "are beyond the newest 15 of their conversation";

/// What the target can hold, and what was found that it cannot.
pub(crate) struct Fit {
    into: Capacity,
    /// For files: what is held of each conversation.
    conversations: HashMap<Scope, Newest>,
    losses: BTreeMap<(Kind, &'static str), u64>,
}

impl Fit {
    pub(crate) fn into(store: &Store) -> Self {
        Self {
            into: store.capacity(),
            conversations: HashMap::new(),
            losses: BTreeMap::new(),
        }
    }

    /// Checks an entry; call for all before the first [`Self::fit`].
    pub(crate) fn see(&mut self, record: &Record) {
        let lost = match self.into {
            Capacity::Everything => None,
            Capacity::NoNul => has_nul(record).then_some(NUL),
            Capacity::NewestTurns => unfit(record),
        };
        if let Some(why) = lost {
            *self.losses.entry((record.kind(), why)).or_default() += 1;
        } else if let (Capacity::NewestTurns, Record::Message(row)) = (self.into, record) {
            self.conversations.entry(row.scope).or_default().add(row);
        }
    }

    /// What cannot be held unchanged, by kind and reason.
    pub(crate) fn losses(&self) -> BTreeMap<(Kind, &'static str), u64> {
        let mut losses = self.losses.clone();
        for newest in self.conversations.values() {
            for (why, rows) in [(OLDER, newest.older), (ALIKE, newest.alike)] {
                if rows > 0 {
                    *losses.entry((Kind::Messages, why)).or_default() += rows;
                }
            }
        }
        losses
    }

    /// The entry as the target can hold it, if it can.
    pub(crate) fn fit(&mut self, record: Record) -> Option<Record> {
        match (self.into, &record) {
            (Capacity::NoNul, _) if has_nul(&record) => Some(without_nul(record)),
            (Capacity::NewestTurns, _) if unfit(&record).is_some() => None,
            (Capacity::NewestTurns, Record::Message(row)) => {
                let newest = self.conversations.get_mut(&row.scope)?;
                newest.take(row).then_some(record)
            }
            _ => Some(record),
        }
    }
}

/// Distinguishes rows in a conversation's file.
type RowKey = (TurnId, StoredRole, Option<MessageId>);

/// A conversation's newest whole turns, as many as a file holds.
#[derive(Default)]
struct Newest {
    /// By ordinal, in increasing order.
    turns: BTreeMap<u64, Vec<RowKey>>,
    rows: usize,
    /// Ordinals up to this one were dropped.
    left_out: Option<u64>,
    older: u64,
    alike: u64,
}

impl Newest {
    fn add(&mut self, row: &StoredMessage) {
        if self.left_out.is_some_and(|last| row.ordinal <= last) {
            self.older += 1;
            return;
        }
        let turn = self.turns.entry(row.ordinal).or_default();
        if turn.contains(&key(row)) {
            self.alike += 1;
            return;
        }
        turn.push(key(row));
        self.rows += 1;
        while self.rows > MOST_MESSAGES && self.turns.len() > 1 {
            let Some((ordinal, turn)) = self.turns.pop_first() else {
                return;
            };
            self.rows -= turn.len();
            self.older += turn.len() as u64;
            self.left_out = Some(ordinal);
        }
    }

    /// Whether to keep a row; of identical-looking rows, only the first.
    fn take(&mut self, row: &StoredMessage) -> bool {
        let Some(turn) = self.turns.get_mut(&row.ordinal) else {
            return false;
        };
        let place = turn.iter().position(|found| *found == key(row));
        place.map(|place| turn.swap_remove(place)).is_some()
    }
}

fn key(row: &StoredMessage) -> RowKey {
    (row.turn, row.role, row.message)
}

/// Why files cannot hold an entry.
fn unfit(record: &Record) -> Option<&'static str> {
    let is_other = |agent: &AgentName| check_agent(agent).is_err();
    match record {
        Record::Message(row) if is_other(&row.agent) => Some(OF_AGENT),
        Record::Message(row) => unfit_row(row),
        Record::Marker(key, _) => is_other(&key.agent).then_some(OF_AGENT),
        Record::Agent(agent, _) => is_other(agent).then_some(AGENT),
        Record::Snapshot(_) | Record::Receipt(_) => Some(DATABASE),
        Record::Fact(_) | Record::OptOut(..) | Record::Settings(..) | Record::Departure(..) => None,
    }
}

/// A file's path states its rows' scope, so others do not fit.
fn unfit_row(row: &StoredMessage) -> Option<&'static str> {
    let in_place = match row.scope {
        Scope::Member {
            guild,
            channel,
            user,
        } => row.guild == Some(guild) && row.channel == channel && row.owner == user,
        Scope::Direct(user) => row.guild.is_none() && row.owner == user,
        Scope::Thread { .. } | Scope::User(_) => return Some(SCOPE),
    };
    match row.role {
        StoredRole::ToolUse | StoredRole::ToolResult => Some(TOOLS),
        StoredRole::User | StoredRole::Assistant if in_place => None,
        StoredRole::User | StoredRole::Assistant => Some(PLACE),
    }
}

fn has_nul(record: &Record) -> bool {
    let mut found = false;
    let mut copy = record.clone();
    each_text(&mut copy, &mut |text| found |= text.contains('\0'));
    found
}

fn without_nul(mut record: Record) -> Record {
    each_text(&mut record, &mut |text| {
        *text = text.replace('\0', REPLACEMENT);
    });
    record
}

/// Visits an entry's texts that the database holds; a snapshot's messages are
/// in its file.
fn each_text(record: &mut Record, visit: &mut dyn FnMut(&mut String)) {
    match record {
        Record::Message(row) => {
            visit(&mut row.content);
            let others = [
                &mut row.author_name,
                &mut row.tool_calls,
                &mut row.tool_call_id,
            ];
            others.into_iter().flatten().for_each(visit);
        }
        Record::Snapshot(ContextSnapshot { info, .. }) => {
            visit(&mut info.summary);
            info.description.iter_mut().for_each(visit);
        }
        Record::Receipt(StoredReceipt { body: text, .. }) | Record::Fact(Fact { text, .. }) => {
            visit(text);
        }
        Record::Marker(..)
        | Record::OptOut(..)
        | Record::Settings(..)
        | Record::Agent(..)
        | Record::Departure(..) => {}
    }
}
