//! Waits for what the bot does; woken by changes, limited by a deadline.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::Simulator;
use crate::faults::path_fits;
use crate::ids::Id;
use crate::log::{GatewayEvent, GatewayRecord, RequestRecord};
use crate::script::ScriptError;
use crate::state::State;
use crate::world::Message;

/// What was waited for did not happen in time.
#[derive(Clone, Debug, thiserror::Error)]
#[error("waited {waited:?} in vain for {what}; the latest calls were {latest}")]
pub struct TimedOut {
    what: String,
    waited: Duration,
    latest: String,
}

/// Why a wait failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WaitError {
    /// It did not happen in time.
    #[error(transparent)]
    TimedOut(#[from] TimedOut),
    /// The script is wrong, so that waiting is pointless.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// How many of the latest calls an error names.
const LATEST_CALLS: usize = 12;

impl Simulator {
    /// How long each wait may take; ten seconds by default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Waits until a session is connected and was sent READY.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_ready(&self) -> Result<(), WaitError> {
        self.wait("a session", |state| {
            state.hub.connected().next().map(|_| ())
        })
        .await
    }

    /// Waits for a message in a channel that meets a condition.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_for_message(
        &self,
        channel: Id,
        fits: impl Fn(&Message) -> bool,
    ) -> Result<Message, WaitError> {
        let what = format!("a message in {channel}");
        self.wait(&what, |state| {
            let messages = &state.world.channels.get(&channel)?.messages;
            messages
                .values()
                .rev()
                .find(|message| fits(message))
                .cloned()
        })
        .await
    }

    /// Waits for this many messages by the bot in a channel; returns them oldest first.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_answers(&self, channel: Id, count: usize) -> Result<Vec<Message>, WaitError> {
        let what = format!("{count} answers in {channel}");
        self.wait(&what, |state| {
            let answers = state.world.answers_in(channel)?;
            (answers.len() >= count).then_some(answers)
        })
        .await
    }

    /// Waits until an interaction was answered with a message that meets a condition.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_interaction(
        &self,
        interaction: Id,
        fits: impl Fn(&Message) -> bool,
    ) -> Result<Message, WaitError> {
        let what = format!("an answer to interaction {interaction}");
        self.wait(&what, |state| {
            let mut answers = state.world.answers_to(interaction);
            answers.find(|message| fits(message)).cloned()
        })
        .await
    }

    /// Waits until this many calls of a method to a path (a part of it, or a
    /// pattern as in [`crate::Fault::new`]) have arrived.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_request(
        &self,
        method: &str,
        path: &str,
        count: usize,
    ) -> Result<Vec<RequestRecord>, WaitError> {
        let what = format!("{count} calls {method} {path}");
        self.wait(&what, |state| {
            let calls = state.known_requests().iter();
            let fitting = calls.filter(|c| c.method == method && path_fits(path, &c.path));
            let fitting: Vec<RequestRecord> = fitting.cloned().collect();
            (fitting.len() >= count).then_some(fitting)
        })
        .await
    }

    /// Waits for an event on the gateway.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_gateway(
        &self,
        what: &str,
        fits: impl Fn(&GatewayEvent) -> bool,
    ) -> Result<GatewayRecord, WaitError> {
        self.wait(what, |state| {
            let mut records = state.gateway_log.iter();
            records.find(|record| fits(&record.event)).cloned()
        })
        .await
    }

    /// How many sessions have been started or resumed so far.
    pub fn sessions_begun(&self) -> usize {
        self.shared.read(State::sessions_begun)
    }

    /// Waits until this many sessions have been started or resumed.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_sessions(&self, count: usize) -> Result<(), WaitError> {
        self.wait("a further session", |state| {
            (state.sessions_begun() >= count).then_some(())
        })
        .await
    }

    /// Waits until no REST call is in progress.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn wait_idle(&self) -> Result<(), WaitError> {
        self.wait("no open call", |state| (state.in_flight == 0).then_some(()))
            .await
    }

    /// Waits until every connected client has read every event sent so far: asks
    /// each for a heartbeat, which contains the last sequence number it has read.
    ///
    /// # Errors
    ///
    /// It did not happen in time, or the script is wrong.
    pub async fn settled(&self) -> Result<(), WaitError> {
        let wanted: Vec<(String, u64)> = self.shared.with(|state| {
            let sessions = state.hub.sessions.iter();
            let connected = sessions.filter_map(|(id, session)| {
                state.hub.send_op(session.link?, 1, &Value::Null);
                Some((id.clone(), session.seq))
            });
            connected.collect()
        });
        self.wait("the client to have read everything", |state| {
            let read = |(id, seq): &(String, u64)| {
                let session = state.hub.sessions.get(id);
                session.is_none_or(|session| session.read >= *seq)
            };
            wanted.iter().all(read).then_some(())
        })
        .await
    }

    /// The calls so far of a method to a path (a part of it, or a pattern).
    pub fn requests_to(&self, method: &str, path: &str) -> Vec<RequestRecord> {
        let mut requests = self.requests();
        requests.retain(|call| call.method == method && path_fits(path, &call.path));
        requests
    }

    /// Checks after every change until `look` finds something.
    pub(super) async fn wait<T>(
        &self,
        what: &str,
        look: impl Fn(&State) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut changes = self.shared.watch();
        let found = async {
            loop {
                if let Some(mistake) = self.mistake() {
                    return Some(Err(mistake));
                }
                if let Some(found) = self.shared.read(&look) {
                    return Some(Ok(found));
                }
                changes.changed().await.ok()?;
            }
        };
        match tokio::time::timeout(self.patience, found).await {
            Ok(Some(found)) => Ok(found?),
            Ok(None) | Err(_) => Err(WaitError::TimedOut(TimedOut {
                what: what.to_owned(),
                waited: self.patience,
                latest: self.latest_calls(),
            })),
        }
    }

    fn latest_calls(&self) -> String {
        self.shared.read(|state| {
            let newest = state.requests.iter().rev().take(LATEST_CALLS);
            let lines: Vec<String> = newest.map(ToString::to_string).collect();
            lines.join(", ")
        })
    }
}

acts! {
    /// The script's first mistake, if any: such an action changed nothing, and from
    /// then on every wait fails with it.
    read mistake() -> Option<ScriptError> = |state| state.world.mistake().cloned();
    /// Every REST call so far, in order of arrival.
    read requests() -> Vec<RequestRecord> = |state| state.known_requests().to_vec();
    /// Clears the log of REST calls.
    with clear_requests() = |state| state.forgotten = state.requests.len();
    /// Everything that happened on the gateway so far.
    read gateway_log() -> Vec<GatewayRecord> = |state| state.gateway_log.clone();
}

impl State {
    fn sessions_begun(&self) -> usize {
        use GatewayEvent::{Identified, Resumed};
        let records = self.gateway_log.iter();
        records
            .filter(|record| matches!(record.event, Identified { .. } | Resumed { .. }))
            .count()
    }
}

impl fmt::Display for RequestRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        match self.status {
            Some(status) => write!(f, " -> {status}"),
            None => write!(f, " -> open"),
        }
    }
}
