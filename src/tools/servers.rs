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
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::Arguments;
use super::result::{ToolError, ToolImage, ToolOutput};
use crate::config::McpConfig;
use crate::memory::Keywords;
use crate::model::{ToolDefinition, ToolName, ToolParameters, count};
use crate::runs::{Activity, Approvers, StateFile};
use clew_context::engine::sanitise;
use clew_context::model::{ChannelId, GuildId, Image, RoleId, UserId};
use clew_context::outside::Lease;

/// Tools of servers in one request; beyond, those that share words with the question.
const MAX_OFFERED: usize = 20;
/// Bytes that their schemas take in one request.
const MAX_SCHEMAS: usize = 32 * 1024;

/// The servers of `MCP_CONFIG`; none without it.
#[derive(Default)]
pub struct ToolServers {
    servers: Option<Servers>,
    seen: Mutex<SeenTools>,
    /// Tells that a tool reads otherwise than before.
    changed: watch::Sender<()>,
    /// `APPROVER_ROLES`.
    approvers: BTreeSet<RoleId>,
    /// How long a call waits for them.
    pub patience: Duration,
    /// Without it nothing is called; none without a cluster.
    lease: Option<Lease>,
}

/// The tools as they were last listed, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenTools(pub BTreeMap<String, SeenTool>);

/// What a server said of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTool {
    /// As a hash.
    pub hash: String,
    /// Whether it once said otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_changed: bool,
}

/// A tool, and on which terms it may be called as it reads now.
#[derive(Debug, Clone)]
pub struct AgreedTool {
    tool: Tool,
    pub terms: Terms,
    /// Whether images that it gives are attached.
    attach: bool,
}

impl AgreedTool {
    /// The server and its own name for the tool.
    pub fn names(&self) -> (&str, &str) {
        (&self.tool.server, &self.tool.remote)
    }

    /// What a server says of it, as a hash.
    pub fn fingerprint(&self) -> String {
        self.tool.fingerprint()
    }
}

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
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The agent's name.
    pub agent: &'a str,
    pub guild: Option<GuildId>,
    pub channel: ChannelId,
    /// The channel that a thread is in.
    pub parent: Option<ChannelId>,
    pub roles: &'a [RoleId],
    /// Whether the server has a role; direct messages have none.
    pub has_role: &'a (dyn Fn(RoleId) -> bool + Sync),
    /// The asker, unless an app wrote for them.
    pub asker: Option<UserId>,
    /// Whether only the asker sees the answer.
    pub is_private: bool,
    /// Where it is told how far a call is.
    pub activity: &'a Activity,
}

impl ToolServers {
    /// Begins to connect to the servers, whose tools read so when an earlier process saw them.
    pub fn start(config: Option<&McpConfig>, seen: SeenTools, lease: Option<Lease>) -> Arc<Self> {
        let changed = watch::Sender::default();
        let hashes = seen
            .0
            .iter()
            .map(|(tool, seen)| (tool.clone(), seen.hash.clone()));
        let hashes: BTreeMap<String, String> = hashes.collect();
        let start = |config: &McpConfig| Servers::start(&config.servers, &hashes, &changed);
        Arc::new(Self {
            servers: config.map(start),
            approvers: config
                .map(|config| config.approvers.clone())
                .unwrap_or_default(),
            patience: config.map_or(Duration::ZERO, |config| config.patience),
            seen: Mutex::new(seen),
            changed,
            lease,
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

    /// Tools of servers that are not configured any more go.
    fn content(&self) -> SeenTools {
        let now = self.servers.as_ref().map(Servers::seen).unwrap_or_default();
        let mut seen = self.seen.lock();
        let entry = |(tool, hash): (String, String)| {
            let before = seen.0.get(&tool);
            let is_changed = before.is_some_and(|one| one.is_changed || one.hash != hash);
            (tool, SeenTool { hash, is_changed })
        };
        let now = SeenTools(now.into_iter().map(entry).collect());
        seen.clone_from(&now);
        now
    }

    fn written(&self, _: SeenTools, _: bool) {}
}

impl CallerTools<'_> {
    /// The same by other roles.
    #[must_use]
    pub const fn with_roles<'b>(&'b self, roles: &'b [RoleId]) -> CallerTools<'b> {
        CallerTools {
            servers: self.servers,
            caller: Caller {
                roles,
                ..self.caller
            },
        }
    }

    /// The wanted ones of the tools that the caller may use, alone or with consent; of many
    /// those that fit what was said, within a bound of what their schemas take.
    pub fn offered(
        &self,
        said: &Keywords,
        is_wanted: impl Fn(&ToolName) -> bool,
    ) -> Vec<ToolDefinition> {
        let tools = self.all().map(|(tool, ..)| definition(tool));
        let mut tools: Vec<ToolDefinition> = tools.filter(|tool| is_wanted(&tool.name)).collect();
        if tools.len() > MAX_OFFERED {
            let fits =
                |tool: &ToolDefinition| said.shared_with(&format!("{} {}", tool.name, tool.about));
            tools.sort_by_cached_key(|tool| std::cmp::Reverse(fits(tool)));
            tools.truncate(MAX_OFFERED);
        }
        let mut room = MAX_SCHEMAS;
        tools.retain(|tool| {
            let bytes = match &tool.parameters {
                ToolParameters::Schema(schema) => {
                    Value::Object((**schema).clone()).to_string().len()
                }
                ToolParameters::Texts(_) => 0,
            };
            let fits = bytes <= room;
            room -= if fits { bytes } else { 0 };
            fits
        });
        tools
    }

    /// A tool and on which terms it may be called, before or after the model has read what
    /// should not leave this place; none if it may not.
    pub fn agreed(&self, name: &str, has_read: bool) -> Option<AgreedTool> {
        let (tool, rules, approvers) = self.all().find(|(tool, ..)| *tool.name == *name)?;
        let is_in = |names: &[String]| names.iter().any(|one| **one == *tool.remote);
        let terms = if is_in(&rules.auto) && (!has_read || is_in(&rules.local)) {
            Terms::Alone
        } else {
            Terms::Consent(approvers?)
        };
        let attach = rules.attach;
        Some(AgreedTool {
            tool,
            terms,
            attach,
        })
    }

    /// Calls a tool as it was agreed on.
    pub(super) async fn call(
        &self,
        agreed: &AgreedTool,
        arguments: &Arguments,
        time: Duration,
    ) -> Result<ToolOutput, ToolError> {
        let servers = self.servers.servers.as_ref().ok_or(ToolError::Unknown)?;
        let tool = &agreed.tool;
        let progress = |said: &str| self.caller.activity.progress(&tool.name, said);
        // Boxed: it is large.
        let call = Box::pin(servers.call(tool, arguments.0.clone(), time, &progress));
        let given = match &self.servers.lease {
            Some(lease) => lease.during(call).await.ok_or(ToolError::Timeout)?,
            None => call.await,
        };
        given
            .map(|given| output(given, agreed.attach))
            .map_err(|error| match error {
                CallError::Timeout => ToolError::Timeout,
                other => ToolError::Server(sanitise::line(&other.to_string())),
            })
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
            roles: roles
                .filter(|role| (caller.has_role)(**role))
                .copied()
                .collect(),
            asker: caller.asker.filter(|_| rules.asker_approves),
        };
        let is_any = !approvers.roles.is_empty() || approvers.asker.is_some();
        (is_any && !caller.is_private).then_some(approvers)
    }
}

impl Caller<'_> {
    fn may_use(&self, rules: &Rules) -> bool {
        let is_in = |ids: &[String], of: &[u64]| {
            let is_one = |id: &String| id.parse().is_ok_and(|id| of.contains(&id));
            ids.is_empty() || ids.iter().any(is_one)
        };
        let guild: Vec<u64> = self.guild.iter().map(|guild| guild.get()).collect();
        let channels = [Some(self.channel), self.parent].into_iter().flatten();
        let channels: Vec<u64> = channels.map(ChannelId::get).collect();
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
        about: sanitise::text(&tool.description).into(),
        parameters: ToolParameters::Schema(tool.schema.into()),
    }
}

/// What a server gave, with what was not taken of it.
fn output(given: Given, attach: bool) -> ToolOutput {
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
        is_attached: attach,
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
