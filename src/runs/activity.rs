//! What a running turn is doing, told by the turn and read by others.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;

use crate::model::ToolName;

/// What a turn is doing now; shared.
#[derive(Debug, Default)]
pub struct Activity(watch::Sender<Doing>);

/// What a turn has done so far, and is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doing {
    /// How often the model has been asked.
    pub rounds: usize,
    pub running: BTreeSet<ToolName>,
    /// How often each tool was called.
    pub called: BTreeMap<ToolName, usize>,
    /// The tokens of all requests that were answered, and of their answers.
    pub tokens: u64,
    pub last_tokens: u64,
}

impl Activity {
    /// What it is at this moment.
    pub fn now(&self) -> Doing {
        self.0.borrow().clone()
    }

    /// Tells of each change.
    pub fn changes(&self) -> watch::Receiver<Doing> {
        self.0.subscribe()
    }

    pub fn asks_model(&self) {
        self.0.send_modify(|doing| doing.rounds += 1);
    }

    pub fn answered(&self, tokens: u64) {
        self.0.send_modify(|doing| {
            doing.tokens = doing.tokens.saturating_add(tokens);
            doing.last_tokens = tokens;
        });
    }

    pub fn calls(&self, tools: &[ToolName]) {
        self.0.send_modify(|doing| {
            for tool in tools {
                *doing.called.entry(*tool).or_default() += 1;
            }
            doing.running = tools.iter().copied().collect();
        });
    }

    pub fn called(&self) {
        self.0.send_modify(|doing| doing.running.clear());
    }
}
