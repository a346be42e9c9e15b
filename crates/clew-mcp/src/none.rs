//! A build without connections has no tools.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::config::{Config, Rules, ServerConfig};
use crate::model::{CallError, Checked, Given, Tool};

/// There is nothing to look at.
///
/// # Errors
/// Always.
pub async fn check(_: &str, _: &ServerConfig) -> Result<Checked, String> {
    Err("this build has no connections to servers".to_owned())
}

/// No servers.
#[derive(Debug)]
pub struct Servers;

impl Servers {
    /// Connects to none.
    pub const fn start(_: &Config, _: &BTreeMap<String, String>, _: &watch::Sender<()>) -> Self {
        Self
    }

    /// None.
    pub const fn tools(&self) -> Vec<(Tool, &Rules)> {
        Vec::new()
    }

    /// There is no such tool.
    ///
    /// # Errors
    /// Always.
    #[expect(clippy::unused_async, reason = "as with connections")]
    pub async fn call(
        &self,
        _: &Tool,
        _: Map<String, Value>,
        _: Duration,
        _: &(dyn Fn(&str) + Sync),
    ) -> Result<Given, CallError> {
        Err(CallError::Unknown)
    }

    /// None.
    pub const fn seen(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}
