//! Watches the folder of all agents: reads what changed, and keeps the last good
//! version of what cannot be used now. Blocking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::Agent;
use clew_store::model::AgentName;

use super::folder::{self, AGENT_FILE, ListError, Seen};
use super::problem::AgentProblem;

/// The most agents: each is held in memory with its docs.
const MOST_AGENTS: usize = 64;
/// What the folder of all agents should be.
const ACCEPTED: &str = "a folder with a folder for each agent";

/// What the last look found.
#[derive(Debug, Default)]
pub(super) struct Watch {
    slots: BTreeMap<AgentName, Slot>,
    /// What is wrong with the folder itself.
    problems: Vec<AgentProblem>,
}

#[derive(Debug, Default)]
struct Slot {
    seen: Seen,
    prompt_file: Option<PathBuf>,
    /// Whether it looked the same twice. Two writes of the same size within one
    /// tick of the file system's clock look alike, so once is not enough.
    is_settled: bool,
    good: Option<Arc<Agent>>,
    problems: Vec<AgentProblem>,
}

/// The result of a look.
#[derive(Debug)]
pub(super) struct Look {
    /// The last good version of each agent, by name.
    pub(super) agents: Vec<Arc<Agent>>,
    /// All current problems.
    pub(super) problems: Vec<AgentProblem>,
    /// Those that are new since the last look.
    pub(super) fresh: Vec<AgentProblem>,
}

impl Watch {
    /// Looks at the folder and reads what changed.
    pub(super) fn look(&mut self, root: &Path) -> Look {
        let mut fresh = Vec::new();
        let problems = match list_agents(root) {
            Ok((folders, problems)) => {
                self.slots.retain(|name, _| folders.contains_key(name));
                for (name, folder) in folders {
                    let slot = self.slots.entry(name.clone()).or_default();
                    fresh.extend(slot.look(&folder, &name));
                }
                problems
            }
            // The agents stay until there is a folder again.
            Err(problem) => vec![problem],
        };
        let is_new = |problem: &&AgentProblem| !self.problems.contains(problem);
        fresh.extend(problems.iter().filter(is_new).cloned());
        self.problems = problems;
        let of_slots = self.slots.values().flat_map(|slot| &slot.problems);
        Look {
            agents: self
                .slots
                .values()
                .filter_map(|slot| slot.good.clone())
                .collect(),
            problems: self.problems.iter().chain(of_slots).cloned().collect(),
            fresh,
        }
    }
}

impl Slot {
    /// Reads the folder if it changed; returns the problems with the change.
    fn look(&mut self, folder: &Path, name: &AgentName) -> Vec<AgentProblem> {
        let seen = folder::look(folder, self.prompt_file.as_deref());
        let changed = seen != self.seen;
        if !changed && self.is_settled {
            return Vec::new();
        }
        self.is_settled = !changed;
        if seen.is_kept_for_snapshots {
            *self = Self {
                seen,
                is_settled: self.is_settled,
                ..Self::default()
            };
            return Vec::new();
        }
        let reading = folder::read(folder, name);
        self.seen = reading.seen;
        self.prompt_file = reading.prompt_file;
        let problems = match reading.agent {
            Ok(agent) => {
                if self.good.as_deref() != Some(&agent) {
                    self.good = Some(Arc::new(agent));
                }
                Vec::new()
            }
            Err(problems) => problems,
        };
        let is_told = !changed && problems == self.problems;
        self.problems.clone_from(&problems);
        if is_told { Vec::new() } else { problems }
    }
}

/// The agents' folders by name, and problems with entries that look like agents.
type Listing = (BTreeMap<AgentName, PathBuf>, Vec<AgentProblem>);

fn list_agents(root: &Path) -> Result<Listing, AgentProblem> {
    let entries = match folder::list(root) {
        Ok(entries) => entries,
        Err(ListError::None) => return Ok(Listing::default()),
        Err(problem) => return Err(AgentProblem::of(root, problem.what(ACCEPTED))),
    };
    let mut folders = BTreeMap::new();
    let mut problems = Vec::new();
    let mut left_out = 0;
    for path in entries {
        match agent_name(&path) {
            Ok(Some(_)) if folders.len() == MOST_AGENTS => left_out += 1,
            Ok(Some(name)) => drop(folders.insert(name, path)),
            Ok(None) => {}
            Err(problem) => problems.push(problem),
        }
    }
    if left_out > 0 {
        let what = format!(
            "has {} agents; accepted: at most {MOST_AGENTS}, the last by name are left out",
            MOST_AGENTS + left_out
        );
        problems.push(AgentProblem::of(root, what));
    }
    Ok((folders, problems))
}

/// The agent whose folder this is. Other files are ignored, unless their name
/// suggests that they were meant to be an agent.
fn agent_name(path: &Path) -> Result<Option<AgentName>, AgentProblem> {
    let name = path.file_name().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    if path.is_dir() {
        let parsed = name.parse().map(Some);
        return parsed.map_err(|error: clew_store::model::AgentNameError| {
            AgentProblem::of(path, error.to_string())
        });
    }
    let stem = name.strip_suffix(".json").unwrap_or(&name);
    match stem.parse::<AgentName>() {
        Ok(stem) => {
            let what = format!("is a file; accepted: a folder {stem} with {AGENT_FILE} in it");
            Err(AgentProblem::of(path, what))
        }
        Err(_) => Ok(None),
    }
}
