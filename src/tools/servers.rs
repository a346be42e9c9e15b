//! The tools of MCP servers: which of them a turn is offered, and what calling one gives.
//!
//! Invariant: what a server says of its tools decides nothing; who may use which is in the
//! operator's file alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clew_mcp::{CallError, Given, Rules, Servers, Tool};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::Arguments;
use super::result::{ToolError, ToolImage, ToolOutput};
use crate::config::McpConfig;
use crate::memory::Keywords;
use crate::model::{ToolDefinition, ToolName, ToolParameters, count};
use crate::runs::{Activity, Approvers, StateFile};
use clew_context::model::{ChannelId, GuildId, Image, RoleId, UserId};

/// Tools of servers in one request; beyond, those that share words with the question.
const MAX_OFFERED: usize = 20;

/// The servers of `MCP_CONFIG`; none without it.
#[derive(Default)]
pub struct ToolServers {
    servers: Option<Servers>,
    /// Tells that a tool reads otherwise than before.
    changed: watch::Sender<()>,
    /// `APPROVER_ROLES`.
    approvers: BTreeSet<RoleId>,
    /// How long a call waits for them.
    pub patience: Duration,
}

/// By tool, a hash of what its server said of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenTools(pub BTreeMap<String, String>);

/// What a caller may use of them.
#[derive(Clone, Copy)]
pub struct CallerTools<'a> {
    servers: &'a ToolServers,
    caller: Caller<'a>,
}

/// What has to be before a tool may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terms {
    /// Nothing.
    Alone,
    /// One of these has to allow it.
    Consent(Approvers),
}

/// For whom tools are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// The agent's name.
    pub agent: &'a str,
    pub guild: Option<GuildId>,
    pub channel: ChannelId,
    /// The channel that a thread is in.
    pub parent: Option<ChannelId>,
    pub roles: &'a [RoleId],
    /// The asker, unless an app wrote for them.
    pub asker: Option<UserId>,
    /// Whether only the asker sees the answer.
    pub is_private: bool,
    /// Where it is told how far a call is.
    pub activity: &'a Activity,
}

impl ToolServers {
    /// Begins to connect to the servers, whose tools read so when an earlier process saw them.
    pub fn start(config: Option<&McpConfig>, seen: SeenTools) -> Arc<Self> {
        let changed = watch::Sender::default();
        let start = |config: &McpConfig| Servers::start(&config.servers, seen.0, changed.clone());
        Arc::new(Self {
            servers: config.map(start),
            approvers: config
                .map(|config| config.approvers.clone())
                .unwrap_or_default(),
            patience: config.map_or(Duration::ZERO, |config| config.patience),
            changed,
        })
    }

    /// Whether there are any.
    pub const fn are_any(&self) -> bool {
        self.servers.is_some()
    }

    /// What a caller may use of them.
    pub const fn for_caller<'a>(&'a self, caller: Caller<'a>) -> CallerTools<'a> {
        CallerTools {
            servers: self,
            caller,
        }
    }
}

impl StateFile for Arc<ToolServers> {
    type Content = SeenTools;

    fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn content(&self) -> SeenTools {
        SeenTools(self.servers.as_ref().map(Servers::seen).unwrap_or_default())
    }

    fn written(&self, _: SeenTools) {}
}

impl CallerTools<'_> {
    /// The tools that the caller may use, alone or with consent; of many those that fit what
    /// was said.
    pub fn offered(&self, said: &Keywords) -> Vec<ToolDefinition> {
        let mut tools: Vec<Tool> = self.all().map(|(tool, ..)| tool).collect();
        if tools.len() > MAX_OFFERED {
            let fits =
                |tool: &Tool| said.shared_with(&format!("{} {}", tool.name, tool.description));
            tools.sort_by_cached_key(|tool| std::cmp::Reverse(fits(tool)));
            tools.truncate(MAX_OFFERED);
        }
        tools.into_iter().map(definition).collect()
    }

    /// On which terms a tool may be called, before or after the model has read what should not
    /// leave this place; none if it may not.
    pub fn terms(&self, name: &str, has_read: bool) -> Option<Terms> {
        let (tool, rules, approvers) = self.named(name)?;
        let is_in = |names: &[String]| names.iter().any(|one| **one == *tool.remote);
        if is_in(&rules.auto) && (!has_read || is_in(&rules.local)) {
            return Some(Terms::Alone);
        }
        approvers.map(Terms::Consent)
    }

    /// Calls a tool, on whose terms it was agreed.
    pub(super) async fn call(
        &self,
        name: &str,
        arguments: &Arguments,
        time: Duration,
    ) -> Result<ToolOutput, ToolError> {
        let servers = self.servers.servers.as_ref().ok_or(ToolError::Unknown)?;
        let (tool, rules, _) = self.named(name).ok_or(ToolError::Unknown)?;
        let progress = |said: &str| self.caller.activity.progress(name, said);
        let given = servers
            .call(&tool, arguments.0.clone(), time, &progress)
            .await;
        given
            .map(|given| output(given, rules))
            .map_err(|error| match error {
                CallError::Timeout => ToolError::Timeout,
                other => ToolError::Server(other.to_string()),
            })
    }

    fn named(&self, name: &str) -> Option<(Tool, &Rules, Option<Approvers>)> {
        self.all().find(|(tool, ..)| *tool.name == *name)
    }

    /// All that the caller may use, with whose rules they are and who may allow a call.
    fn all(&self) -> impl Iterator<Item = (Tool, &Rules, Option<Approvers>)> {
        let servers = self.servers.servers.as_ref();
        let all = servers.map(Servers::tools).unwrap_or_default();
        all.into_iter().filter_map(|(tool, rules)| {
            let approvers = self.approvers(rules);
            let runs_alone = rules.auto.iter().any(|name| **name == *tool.remote);
            let may = self.caller.may_use(rules) && (runs_alone || approvers.is_some());
            may.then_some((tool, rules, approvers))
        })
    }

    /// Who may allow a call here; none if there is nobody, or the question is not for
    /// everybody's eyes.
    fn approvers(&self, rules: &Rules) -> Option<Approvers> {
        let caller = &self.caller;
        let roles = self.servers.approvers.iter();
        let approvers = Approvers {
            roles: roles.filter(|_| caller.guild.is_some()).copied().collect(),
            asker: caller.asker.filter(|_| rules.asker_approves),
        };
        let is_any = !approvers.roles.is_empty() || approvers.asker.is_some();
        (is_any && !caller.is_private).then_some(approvers)
    }
}

impl Caller<'_> {
    fn may_use(&self, rules: &Rules) -> bool {
        let is_in = |ids: &[String], of: &[u64]| {
            let known: BTreeSet<u64> = of.iter().copied().collect();
            ids.is_empty()
                || ids
                    .iter()
                    .filter_map(|id| id.parse().ok())
                    .any(|id| known.contains(&id))
        };
        let guild: Vec<u64> = self.guild.iter().map(|guild| guild.get()).collect();
        let channels = [Some(self.channel), self.parent];
        let channels: Vec<u64> = channels
            .iter()
            .flatten()
            .map(|channel| channel.get())
            .collect();
        let roles: Vec<u64> = self.roles.iter().map(|role| role.get()).collect();
        let agents = &rules.agents;
        (agents.is_empty() || agents.iter().any(|agent| agent == self.agent))
            && is_in(&rules.guilds, &guild)
            && is_in(&rules.channels, &channels)
            && is_in(&rules.roles, &roles)
    }
}

fn definition(tool: Tool) -> ToolDefinition {
    ToolDefinition {
        name: ToolName::Server(tool.name),
        about: tool.description.into(),
        parameters: ToolParameters::Schema(tool.schema.into()),
    }
}

/// What a server gave, with what was not taken of it.
fn output(given: Given, rules: &Rules) -> ToolOutput {
    let mut text = given.text;
    let mut note = |line: &str| {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(line);
    };
    if given.is_error {
        note("(The tool says that it failed.)");
    }
    if given.asked_for_input {
        note("(It asked people for more input, which was declined.)");
    }
    let images = given.images.iter().map(|one| {
        let bytes = BASE64_STANDARD.decode(&one.base64).ok()?;
        Image::of_bytes(&bytes)
    });
    let images: Vec<Option<Image>> = images.collect();
    let unread = images.iter().filter(|one| one.is_none()).map(|_| "image");
    let left_out: BTreeSet<&str> = unread.chain(given.left_out.iter().copied()).collect();
    let images = images.into_iter().flatten().map(|image| ToolImage {
        image,
        is_attached: rules.attach,
    });
    let images: Vec<ToolImage> = images.collect();
    if !images.is_empty() {
        note(&format!("(It gave {}.)", count(images.len(), "image")));
    }
    if !left_out.is_empty() {
        let kinds: Vec<&str> = left_out.into_iter().collect();
        note(&format!("(Not shown: {}.)", kinds.join(", ")));
    }
    ToolOutput {
        content: text.into_bytes(),
        images,
        ..ToolOutput::default()
    }
}
