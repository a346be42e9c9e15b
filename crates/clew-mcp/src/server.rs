//! The servers, each with a task that keeps its connection and its list of tools.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::config::{Config, Rules, ServerConfig};
use crate::connection::{Connection, Generation};
use crate::list;
use crate::model::{CallError, Given, Tool};

/// Pauses between attempts to connect, or to subscribe: doubled from the first to the last, and
/// from the first again after one that lasted.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_mins(5);
const LASTED: Duration = Duration::from_mins(1);

/// Calls of one server at the same time.
const MAX_CALLS: usize = 4;

/// All servers of the file. Their processes and connections end when this is dropped.
pub struct Servers {
    servers: BTreeMap<Arc<str>, Arc<Server>>,
    _tasks: JoinSet<()>,
}

struct Server {
    name: Arc<str>,
    config: ServerConfig,
    state: Mutex<State>,
    calls: tokio::sync::Semaphore,
    /// Told whenever a tool reads otherwise than before.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// As they were listed the last time, also while there is no connection.
    tools: Arc<[Tool]>,
    known: Option<Generation>,
    /// The fingerprints of tools as they were last listed, also by an earlier process.
    seen: BTreeMap<String, String>,
}

impl State {
    fn offered(&self) -> Arc<[Tool]> {
        let has_any = self.connection.is_some();
        if has_any {
            self.tools.clone()
        } else {
            Arc::default()
        }
    }
}

impl Servers {
    /// Begins to connect to each; a server that cannot be reached is tried again. `seen` are
    /// the fingerprints that an earlier process saw, by tool; `changed` is told of changes.
    pub fn start(
        config: &Config,
        seen: &BTreeMap<String, String>,
        changed: &watch::Sender<()>,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let mut servers = BTreeMap::new();
        for (name, config) in &config.servers {
            let name: Arc<str> = name.as_str().into();
            let prefix = format!("{name}__");
            let own = seen.iter().filter(|(tool, _)| tool.starts_with(&prefix));
            let state = State {
                seen: own
                    .map(|(tool, hash)| (tool.clone(), hash.clone()))
                    .collect(),
                ..State::default()
            };
            let server = Arc::new(Server {
                name: name.clone(),
                config: config.clone(),
                state: Mutex::new(state),
                calls: tokio::sync::Semaphore::new(MAX_CALLS),
                changed: changed.clone(),
            });
            tasks.spawn(server.clone().keep());
            servers.insert(name, server);
        }
        Self {
            servers,
            _tasks: tasks,
        }
    }

    /// The allowed tools of all servers by name, with whose rules hold for each.
    pub fn tools(&self) -> Vec<(Tool, &Rules)> {
        let mut all = Vec::new();
        for server in self.servers.values() {
            let tools = server.state().offered();
            all.extend(
                tools
                    .iter()
                    .map(|tool| (tool.clone(), &server.config.rules)),
            );
        }
        all
    }

    /// Calls a tool that [`Servers::tools`] gave. `progress` is told what the server says of
    /// how far the call is.
    ///
    /// # Errors
    /// Why it gave nothing.
    pub async fn call(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        time: Duration,
        progress: &(dyn Fn(&str) + Sync),
    ) -> Result<Given, CallError> {
        let server = self.servers.get(&tool.server).ok_or(CallError::Unknown)?;
        let began = Instant::now();
        let place = timeout(time, server.calls.acquire()).await;
        let _place = place
            .map_err(|_| CallError::Timeout)?
            .map_err(|_| CallError::Unreachable)?;
        let connection = server
            .state()
            .connection
            .clone()
            .ok_or(CallError::Unreachable)?;
        let left = time.saturating_sub(began.elapsed());
        connection
            .call(&tool.remote, arguments, left, progress)
            .await
    }

    /// The fingerprints of all tools as they were last listed, for the next process.
    pub fn seen(&self) -> BTreeMap<String, String> {
        let servers = self.servers.values();
        servers
            .flat_map(|server| server.state().seen.clone())
            .collect()
    }
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
    }

    async fn keep(self: Arc<Self>) {
        let mut last = None;
        loop {
            let began = Instant::now();
            let problem = self.connect().await;
            let pause = pause_after(last, began.elapsed());
            tracing::warn!(server = %self.name, "no MCP server: {problem}; tried again in {} s", pause.as_secs());
            self.note(|state| state.connection = None);
            sleep(pause).await;
            last = Some(pause);
        }
    }

    /// Connects and keeps the list of tools until the connection ends; why it did.
    async fn connect(&self) -> String {
        let known = self.state().known;
        let connection = match Connection::open(&self.name, &self.config, known).await {
            Ok(connection) => Arc::new(connection),
            Err(problem) => {
                // It may have been replaced by one of the other generation.
                self.note(|state| state.known = None);
                return problem;
            }
        };
        self.note(|state| state.known = Some(connection.generation));
        tokio::select! {
            biased;
            () = connection.closed() => "the connection ended".to_owned(),
            problem = self.list(&connection) => problem,
            never = hear(&connection) => match never {},
        }
    }

    /// Lists the tools whenever they may have changed, until they cannot be listed. One failure is
    /// none where they were: a server may be busy.
    async fn list(&self, connection: &Arc<Connection>) -> String {
        let mut may_fail = false;
        loop {
            let (listed, fresh) = match connection.tools().await {
                Ok(listed) => listed,
                Err(_) if mem::take(&mut may_fail) => {
                    sleep(FIRST_PAUSE).await;
                    continue;
                }
                Err(problem) => return problem,
            };
            may_fail = true;
            let (tools, _) = list::allowed(&self.name, listed, &self.config.rules.allow);
            self.tell_changes(&tools);
            self.note(|state| {
                state.tools = tools.into();
                state.connection = Some(connection.clone());
            });
            let _ = timeout(fresh, connection.changed()).await;
            // A server that says so all the time is not asked all the time.
            sleep(FIRST_PAUSE).await;
        }
    }

    /// A tool that is told differently than before may be another tool.
    fn tell_changes(&self, tools: &[Tool]) {
        let mut is_new = false;
        self.note(|state| {
            for tool in tools {
                let hash = tool.fingerprint();
                let before = state.seen.insert(tool.name.to_string(), hash.clone());
                is_new |= before.as_ref() != Some(&hash);
                if before.is_some_and(|before| before != hash) {
                    tracing::warn!(tool = %tool.name, "an MCP server describes its tool differently now: look at it with `clew mcp check`");
                }
            }
        });
        if is_new {
            self.changed.send_replace(());
        }
    }
}

/// Keeps a subscription to changes; where it does not last, the pauses before the next grow.
async fn hear(connection: &Connection) -> Infallible {
    let mut last = None;
    loop {
        let mut pause = LAST_PAUSE;
        if let Some(mut told) = connection.subscribe().await {
            let began = Instant::now();
            // What changed before it stood, or changes once it has ended, is not told.
            connection.look_again();
            while matches!(told.next().await, Ok(Some(_))) {
                connection.look_again();
            }
            connection.look_again();
            pause = pause_after(last, began.elapsed());
            last = Some(pause);
        }
        sleep(pause).await;
    }
}

/// The pause after a connection, an attempt at one, or a subscription, that lasted so long;
/// `last` came before it.
fn pause_after(last: Option<Duration>, lasted: Duration) -> Duration {
    let last = last.filter(|_| lasted < LASTED);
    last.map_or(FIRST_PAUSE, |last| (last * 2).min(LAST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_connection_lasts() {
        let mut last = None;
        let pauses = [0, 0, 59, 0, 0, 0, 0, 0, 0, 0, 0, 60, 0].map(|seconds| {
            let pause = pause_after(last, Duration::from_secs(seconds));
            last = Some(pause);
            pause.as_secs()
        });
        let grown = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300];
        assert_eq!((&pauses[..11], &pauses[11..]), (&grown[..], &[1, 2][..]));
    }
}
