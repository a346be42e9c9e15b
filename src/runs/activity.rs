//! What a running turn is doing, told by the turn and read by others.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::watch;

use crate::model::{ToolName, cut};
use clew_context::engine::sanitise;

/// The most of a server's words on how far a call is, in Unicode scalars.
const PROGRESS_CHARS: usize = 100;

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
    /// What a tool's server says of how far its call is, one line.
    pub progress: Option<String>,
    /// Whether it waits for people, and holds no place meanwhile.
    pub waits: bool,
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
                *doing.called.entry(tool.clone()).or_default() += 1;
            }
            doing.running = tools.iter().cloned().collect();
            doing.progress = None;
        });
    }

    /// A tool's server says how far its call is: a stranger's words.
    pub fn progress(&self, tool: &str, said: &str) {
        let line = cut(&sanitise::line(said), PROGRESS_CHARS, "…");
        self.0
            .send_modify(|doing| doing.progress = Some(format!("{tool}: {line}")));
    }

    pub fn waits(&self, waits: bool) {
        self.0.send_modify(|doing| doing.waits = waits);
    }

    /// Returns once it waits for people.
    pub async fn until_waiting(&self) {
        // The sender is a field of ours.
        let _ = self.changes().wait_for(|doing| doing.waits).await;
    }

    pub fn called(&self) {
        self.0.send_modify(|doing| {
            doing.running.clear();
            doing.progress = None;
        });
    }
}
