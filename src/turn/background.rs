//! What the agent that answers knows from before: the conversation's history and facts,
//! and what it does elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::sources::Inherited;
use crate::memory::{Memory, Place, PromptFacts, Readable, Words};
use crate::model::Agent;
use clew_context::model::TurnId;
use clew_store::model::{Scope, StoredMessage};

/// The agent that answers, and what it knows.
#[derive(Debug, Clone)]
pub(super) struct Background {
    pub(super) agent: Arc<Agent>,
    pub(super) place: Place,
    /// Which facts could be read; none in an agent run, or for who asks through an app.
    pub(super) facts: Option<Readable>,
    /// The asker's and the server's facts.
    pub(super) shown_facts: PromptFacts,
    /// What was said before, oldest first: what is recalled, then the history.
    pub(super) rows: Vec<StoredMessage>,
    /// The number of what was noted of deletions and edits when the rows were last judged
    /// by it.
    pub(super) noted: u64,
    pub(super) recalled: BTreeSet<TurnId>,
    /// What the answer is made from because earlier texts are.
    pub(super) inherited: Inherited,
    /// What the agent does elsewhere.
    pub(super) status: String,
    /// Results of tools from earlier that match the question, a line each.
    pub(super) offers: Vec<String>,
}

impl Background {
    /// Nothing of a conversation is remembered yet.
    pub(super) fn new(agent: Arc<Agent>, place: Place) -> Self {
        Self {
            facts: None,
            shown_facts: PromptFacts::default(),
            rows: Vec::new(),
            noted: 0,
            recalled: BTreeSet::new(),
            inherited: Inherited::new(place.channel),
            status: String::new(),
            offers: Vec::new(),
            agent,
            place,
        }
    }

    /// Drops the history of a shared thread for an asker who may not read the thread.
    pub(super) fn leave_out_shared(&mut self) {
        if matches!(self.place.scope, Scope::Thread { .. }) {
            self.rows.clear();
        }
    }

    /// Leaves out the turns of rows whose messages changed since they were read into something
    /// that they do not say.
    pub(super) fn confirmed(&mut self, memory: &Memory, says: &Words) {
        let noted = memory.noted().after(self.noted);
        self.leave_out_turns(|row| noted.changed_row(row, says));
        drop(noted);
        self.noted = memory.noted().revision();
    }

    /// Leaves out the whole turns of such rows.
    pub(super) fn leave_out_turns(&mut self, is_meant: impl Fn(&StoredMessage) -> bool) {
        let rows = self.rows.iter().filter(|row| is_meant(row));
        let turns: BTreeSet<TurnId> = rows.map(|row| row.turn).collect();
        self.rows.retain(|row| !turns.contains(&row.turn));
    }

    /// All rows, and the turns of those that are recalled.
    pub(super) const fn rows_and_recalled(
        &mut self,
    ) -> (&mut Vec<StoredMessage>, &BTreeSet<TurnId>) {
        (&mut self.rows, &self.recalled)
    }

    /// What is recalled, and the history.
    pub(super) fn parts(&self) -> (&[StoredMessage], &[StoredMessage]) {
        let is_recalled = |row: &StoredMessage| self.recalled.contains(&row.turn);
        self.rows.split_at(self.rows.partition_point(is_recalled))
    }

    /// The same after the older half of each has been dropped this often.
    pub(super) fn newest(&self, halvings: u32) -> (&[StoredMessage], &[StoredMessage]) {
        let newest = |rows| {
            (0..halvings).fold(rows, |rows: &[StoredMessage], _| {
                &rows[rows.len().div_ceil(2)..]
            })
        };
        let (recalled, history) = self.parts();
        (newest(recalled), newest(history))
    }
}
