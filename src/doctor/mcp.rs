//! Each MCP server: whether it can be reached, in which generation of the protocol, and which
//! of its tools are offered to whom.

use clew_mcp::{Checked, Rules, Tool};
use futures_util::future::join_all;

use super::{Finding, Outcome};
use crate::app;
use crate::config::{Config, McpConfig};
use crate::model::count;
use crate::tools::SeenTools;

/// What to do about a tool that was changed.
const CHANGED: &str = "look at it, stop the bot and remove mcp_tools.json in STATE_DIR";

/// What is said of a server, and of each of its tools.
pub struct CheckedServer {
    pub finding: Finding,
    /// Lines: the tool, how a call of it comes about, and what its server says it does.
    pub tools: Vec<String>,
}

pub(super) async fn look(config: &Config, tell: &mut dyn FnMut(Finding)) {
    for server in servers(config).await {
        tell(server.finding);
    }
}

/// Connects to each server of `MCP_CONFIG`, all at once.
pub async fn servers(config: &Config) -> Vec<CheckedServer> {
    let Some(mcp) = &config.mcp else {
        return Vec::new();
    };
    let seen = app::seen_tools(config);
    let checks = mcp.servers.servers.iter().map(async |(name, server)| {
        match clew_mcp::check(name, server).await {
            Ok(checked) => found(name, &server.rules, mcp, &checked, &seen),
            Err(problem) => CheckedServer {
                finding: Finding::failed(
                    "mcp",
                    format!("{name} gives no tools: {problem}"),
                    format!(
                        "mend mcpServers.{name} in MCP_CONFIG, or write \"disabled\": true there"
                    ),
                ),
                tools: Vec::new(),
            },
        }
    });
    join_all(checks).await
}

fn found(
    name: &str,
    rules: &Rules,
    mcp: &McpConfig,
    checked: &Checked,
    seen: &SeenTools,
) -> CheckedServer {
    let (version, tools) = (&checked.version, count(checked.tools.len(), "tool"));
    let ms = checked.took.as_millis();
    let found = format!("{name} speaks {version}, {tools} offered, in {ms} ms");
    let is_changed = |tool: &&Tool| {
        let before = seen.0.get(&*tool.name);
        before.is_some_and(|before| before.is_changed || before.hash != tool.fingerprint())
    };
    let changed = checked.tools.iter().filter(is_changed);
    let changed =
        changed.map(|tool| format!("{} reads otherwise than at first: {CHANGED}", tool.remote));
    let problems: Vec<String> = checked.problems.iter().cloned().chain(changed).collect();
    let finding = Finding::ok("mcp", found);
    let finding = if problems.is_empty() {
        finding
    } else {
        Finding {
            outcome: Outcome::Warning,
            remedy: Some(problems.join("; ")),
            ..finding
        }
    };
    let offered = checked.tools.iter().map(|tool| {
        format!(
            "{}: {}; {}",
            tool.name,
            terms(rules, mcp, tool),
            tool.description
        )
    });
    let others = checked.others.iter();
    let others = others.map(|name| format!("{name}: not in allow, so not offered"));
    CheckedServer {
        finding,
        tools: offered.chain(others).collect(),
    }
}

/// How a call comes about, in words, and who may.
fn terms(rules: &Rules, mcp: &McpConfig, tool: &Tool) -> String {
    let is_in = |names: &[String]| names.iter().any(|name| **name == *tool.remote);
    let asks = match (!mcp.approvers.is_empty(), rules.asker_approves) {
        (true, true) => Some("asks approvers or the asker"),
        (true, false) => Some("asks approvers"),
        (false, true) => Some("asks the asker"),
        (false, false) => None,
    };
    let mut terms = match (is_in(&rules.auto), is_in(&rules.local), asks) {
        (true, true, _) => "runs alone".to_owned(),
        (true, false, Some(asks)) => format!("runs alone; {asks} after reading elsewhere"),
        (true, false, None) => "runs alone; refused after reading elsewhere".to_owned(),
        (false, _, Some(asks)) => asks.to_owned(),
        (false, _, None) => {
            "not offered: nobody may allow it (auto, askerApproves, APPROVER_ROLES)".to_owned()
        }
    };
    for (what, names) in [
        ("agents", &rules.agents),
        ("roles", &rules.roles),
        ("guilds", &rules.guilds),
        ("channels", &rules.channels),
    ] {
        if !names.is_empty() {
            terms.push_str(&format!("; {what} {}", names.join(", ")));
        }
    }
    terms
}
