//! Tools of MCP servers: their file, and who may allow a call; where Clew is such a server.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use super::check::Checker;
use super::problem::Problem;
use super::variable as var;
use clew_context::model::RoleId;

/// How long a call waits for consent.
const PATIENCE: Duration = Duration::from_mins(5);
/// The most bytes of the file that are read.
const MAX_BYTES: usize = 256 * 1024;

/// The servers whose tools models may call, and who allows calls that need it.
#[derive(Debug, Clone, PartialEq)]
pub struct McpConfig {
    /// `MCP_CONFIG`, as the file reads.
    pub servers: clew_mcp::Config,
    /// `APPROVER_ROLES`: roles whose members may allow any call.
    pub approvers: BTreeSet<RoleId>,
    /// How long a call waits for them.
    pub patience: Duration,
}

/// Where Clew is a server of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpListen {
    /// For the operator's own programs, on this machine.
    Socket,
    /// For these, and for members' programs over HTTP.
    Http(SocketAddr),
}

impl McpListen {
    /// Where members' programs come, if they may.
    pub const fn address(self) -> Option<SocketAddr> {
        match self {
            Self::Socket => None,
            Self::Http(address) => Some(address),
        }
    }
}

/// None without `MCP_CONFIG`.
pub(super) fn read(check: &mut Checker) -> Option<McpConfig> {
    let variable = &var::MCP_CONFIG;
    let approvers = check.ids(&var::APPROVER_ROLES);
    let Some(path) = check.optional_path(variable) else {
        if !approvers.is_empty() {
            check.warn_of_no_effect(&var::APPROVER_ROLES, "without MCP_CONFIG");
        }
        return None;
    };
    let file = path.display().to_string();
    match servers(&path, check) {
        Ok(servers) => Some(McpConfig {
            servers,
            approvers,
            patience: PATIENCE,
        }),
        Err(accepted) => {
            check.problem(Problem::value(variable, &file, accepted));
            None
        }
    }
}

/// Where Clew is a server itself.
pub(super) fn read_listen(check: &mut Checker) -> Option<McpListen> {
    let accepted = "an IP address and a port, such as 127.0.0.1:9470 or [::1]:9470, or `socket`";
    let listen = check.optional(&var::MCP_LISTEN, accepted, |text| match text {
        "socket" => Some(McpListen::Socket),
        address => address.parse().ok().map(McpListen::Http),
    })?;
    let address = listen.address().filter(|it| !it.ip().is_loopback());
    if let Some(address) = address {
        check.warn(format!(
            "MCP_LISTEN={address} can be reached from other machines, and members' tokens are sent \
             to it unencrypted: listen on 127.0.0.1 behind a proxy with TLS"
        ));
    }
    Some(listen)
}

/// What the file says, or what it should be.
fn servers(path: &Path, check: &mut Checker) -> Result<clew_mcp::Config, String> {
    if !cfg!(feature = "mcp") {
        return Err("nothing in this build, which is without the feature mcp".to_owned());
    }
    let text = fs::read_to_string(path)
        .map_err(|error| format!("a file that the user who runs clew may read ({error})"))?;
    if text.len() > MAX_BYTES {
        return Err(format!("a file of at most {MAX_BYTES} bytes"));
    }
    let check = RefCell::new(check);
    let parsed = clew_mcp::Config::parse(&text, &|name| check.borrow_mut().any(name));
    parsed.map_err(|error| format!("a file in the form of docs/mcp.md; at {error}"))
}
