//! Agents: personas that the operator writes as folders, and which of them
//! answers where. Changed files are read again while the bot runs.
//!
//! Invariant: `agents` imports only domain types, never reads files on the calling
//! thread, and never replaces a working agent with one that cannot be used.
//!
//! # Files
//! `AGENTS_DIR/{name}/agent.json` is a JSON object; unknown fields are errors:
//!
//! - `system_prompt`, a text, or `system_prompt_file`, a file in the folder
//! - `model`, instead of `LLM_MODEL`
//! - `rolling_window_s`, in seconds, instead of `CONTEXT_ROLLING_WINDOW_S`
//! - `scope`: `member`, `thread` or `user`, instead of `CONTEXT_SCOPE`
//! - `tools`: a list of names of tools; without the field all
//! - `channels`: a list of ids; threads count as their parent. Without the
//!   field, or with `"*"`: everywhere. An empty list: only when called by name
//! - `docs_chars`: what of its docs goes into a prompt, in Unicode scalars; 8,000
//!
//! `docs/*.md` go into each prompt, sorted by name; if they are longer than
//! `docs_chars`, the passages that match do. Limits: 64 agents, 64 KiB for
//! `agent.json` and for the prompt file, 256 KiB of docs per agent. A folder
//! `default` replaces the built-in agent.

mod fields;
mod folder;
mod problem;
mod watch;

pub use problem::AgentProblem;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::model::{Agent, AgentChannels};
use clew_context::engine::docs::Docs;
use clew_context::model::ChannelId;
use clew_context::outside::blocking;
use clew_store::model::AgentName;

use watch::{Look, Watch};

/// The shortest time between two looks at the folder.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// How long a turn waits for a look at most: if the disk does not answer, it goes
/// on with what is known.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Agents {
    root: Option<PathBuf>,
    builtin: Option<Arc<Agent>>,
    looked: Mutex<Option<Instant>>,
    shared: Arc<Shared>,
}

/// The state that the reading thread updates.
#[derive(Debug, Default)]
struct Shared {
    known: Mutex<Loaded>,
    /// Held while the files are read, so that only one thread reads.
    watch: Mutex<Watch>,
}

#[derive(Debug, Default)]
struct Loaded {
    agents: Arc<Vec<Arc<Agent>>>,
    problems: Vec<AgentProblem>,
    /// Problems that have not been logged yet.
    untold: Vec<AgentProblem>,
}

impl Agents {
    /// Reads `AGENTS_DIR`, if there is one. `builtin_prompt` is the operator's
    /// `SYSTEM_PROMPT` with `DEFAULT_AGENT=on`, none with `off`. A folder that does
    /// not exist counts as empty; what cannot be used is logged and listed in
    /// [`Agents::problems`].
    pub async fn load(root: Option<PathBuf>, builtin_prompt: Option<String>, now: Instant) -> Self {
        let agents = Self {
            root,
            builtin: builtin_prompt.map(|prompt| Arc::new(builtin(prompt))),
            looked: Mutex::new(Some(now)),
            shared: Arc::default(),
        };
        agents.look(None).await;
        agents
    }

    /// Picks up changes in the folder. Looks at most every two seconds and waits
    /// for at most one; a look that takes longer continues and counts when it ends.
    /// A problem is logged once for each change that causes it.
    pub async fn refresh(&self, now: Instant) {
        let is_due = {
            let mut looked = self.looked.lock();
            let is_due = looked.is_none_or(|last| {
                now.checked_duration_since(last)
                    .is_some_and(|since| since >= BETWEEN_LOOKS)
            });
            if is_due {
                *looked = Some(now);
            }
            is_due
        };
        if is_due {
            self.look(Some(LONGEST_WAIT)).await;
        }
    }

    /// The agent that answers in a channel; `parent` is a thread's channel. An
    /// agent that names the channel takes precedence over one that names the
    /// parent, then one that answers everywhere, then the built-in one. Among
    /// several, the first by name answers.
    pub fn pick(&self, channel: ChannelId, parent: Option<ChannelId>) -> Option<Arc<Agent>> {
        let agents = self.agents();
        let first = |fits: &dyn Fn(&AgentChannels) -> bool| {
            agents.iter().find(|agent| fits(&agent.channels)).cloned()
        };
        first(&|channels| channels.names(channel))
            .or_else(|| first(&|channels| parent.is_some_and(|parent| channels.names(parent))))
            .or_else(|| first(&|channels| *channels == AgentChannels::Everywhere))
            .or_else(|| self.builtin_unless_replaced(&agents))
    }

    /// The agents that may be called by name in a channel, sorted by name: all but those
    /// that are for other channels alone.
    pub fn callable(&self, channel: ChannelId, parent: Option<ChannelId>) -> Vec<Arc<Agent>> {
        let here = [Some(channel), parent];
        let may_be = |agent: &Arc<Agent>| match &agent.channels {
            AgentChannels::Everywhere => true,
            AgentChannels::Only(channels) => {
                let mut here = here.iter().flatten();
                channels.is_empty() || here.any(|one| channels.contains(one))
            }
        };
        let mut callable = self.all();
        callable.retain(may_be);
        callable
    }

    /// The agent with this name.
    #[cfg(feature = "test-util")]
    pub fn named(&self, name: &AgentName) -> Option<Arc<Agent>> {
        let agents = self.agents();
        let found = agents.iter().find(|agent| agent.name == *name).cloned();
        let builtin = || self.builtin.clone().filter(|agent| agent.name == *name);
        found.or_else(builtin)
    }

    /// The names of all agents, sorted.
    pub fn names(&self) -> Vec<AgentName> {
        let all = self.all();
        all.iter().map(|agent| agent.name.clone()).collect()
    }

    /// The current problems with the files.
    #[cfg(feature = "test-util")]
    pub fn problems(&self) -> Vec<AgentProblem> {
        self.shared.known.lock().problems.clone()
    }

    fn all(&self) -> Vec<Arc<Agent>> {
        let agents = self.agents();
        let builtin = self.builtin_unless_replaced(&agents);
        let mut all: Vec<Arc<Agent>> = agents.iter().chain(&builtin).cloned().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn agents(&self) -> Arc<Vec<Arc<Agent>>> {
        Arc::clone(&self.shared.known.lock().agents)
    }

    fn builtin_unless_replaced(&self, agents: &[Arc<Agent>]) -> Option<Arc<Agent>> {
        let is_replaced = |builtin: &Arc<Agent>| agents.iter().any(|one| one.name == builtin.name);
        self.builtin.clone().filter(|builtin| !is_replaced(builtin))
    }

    /// Looks at the files on a thread that may block.
    async fn look(&self, longest: Option<Duration>) {
        let Some(root) = self.root.clone() else {
            return;
        };
        let path = root.display().to_string();
        let shared = Arc::clone(&self.shared);
        let look = blocking(move || {
            // Unless another look is under way, at a disk that does not answer.
            let Some(mut watch) = shared.watch.try_lock() else {
                return;
            };
            let found = watch.look(&root);
            shared.take(found);
        });
        let ended = match longest {
            Some(longest) => tokio::time::timeout(longest, look).await.is_ok(),
            None => look.await.is_ok(),
        };
        if !ended {
            tracing::warn!(
                path,
                "AGENTS_DIR does not answer, so the last version is used: look at its disk"
            );
        }
        self.tell();
    }

    /// Logs the problems not logged yet.
    fn tell(&self) {
        let untold = std::mem::take(&mut self.shared.known.lock().untold);
        for problem in untold {
            tracing::warn!(%problem,
                "an agent's files cannot be used; its last good version is, if there was one");
        }
    }
}

impl Shared {
    fn take(&self, found: Look) {
        let mut known = self.known.lock();
        known.agents = Arc::new(found.agents);
        known.problems = found.problems;
        for problem in found.fresh {
            if !known.untold.contains(&problem) {
                known.untold.push(problem);
            }
        }
    }
}

/// The agent that `SYSTEM_PROMPT` describes.
fn builtin(prompt: String) -> Agent {
    Agent {
        name: AgentName::default_agent(),
        system: prompt,
        docs: Docs::default(),
        model: None,
        rolling_window: None,
        scope: None,
        channels: AgentChannels::Everywhere,
        tools: None,
    }
}
