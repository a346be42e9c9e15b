//! A look at one server, for an operator.

use std::sync::Arc;

use tokio::time::Instant;

use crate::config::ServerConfig;
use crate::connection::Connection;
use crate::list;
use crate::model::Checked;

/// Connects, lists the tools and ends the connection.
///
/// # Errors
/// Why there is no connection or no list, without secrets.
pub async fn check(name: &str, config: &ServerConfig) -> Result<Checked, String> {
    let began = Instant::now();
    let connection = Connection::open(name, config, None).await?;
    let (listed, _) = connection.tools().await?;
    let names: Vec<String> = listed.iter().map(|tool| tool.name.to_string()).collect();
    let allow = &config.rules.allow;
    let (tools, mut problems) = list::allowed(&Arc::from(name), listed, allow);
    let missing = allow.iter().filter(|one| !names.contains(one));
    problems.extend(missing.map(|one| format!("{one}: in allow, and not a tool of the server")));
    Ok(Checked {
        version: connection.version.clone(),
        tools,
        others: names
            .into_iter()
            .filter(|one| !allow.contains(one))
            .collect(),
        problems,
        took: began.elapsed(),
    })
}
