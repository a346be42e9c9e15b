//! Faults: in REST by rule, on the gateway at once.

use std::time::Duration;

use serde_json::Value;

use crate::gateway::Outgoing;
use crate::ids::Id;
use crate::log::GatewayEvent;
use crate::state::State;
use crate::{Fault, Limit, Simulator};

impl Simulator {
    /// Serves this object in place of a message, in pages and alone, for example a
    /// malformed one.
    pub fn override_message(&self, message: Id, object: Value) {
        self.world(|world| world.overrides.insert(message, object));
    }

    /// Drops every gateway connection without a close frame.
    pub fn drop_gateway(&self) {
        self.each_link(|state, link| {
            state.hub.send(link, Outgoing::Drop);
            state.hub.close(link, false);
            state.note(link, GatewayEvent::ClosedByServer { code: None });
        });
    }

    /// Closes every gateway connection with a code.
    pub fn close_gateway(&self, code: u16) {
        self.each_link(|state, link| state.close_link(link, code, "Closed by the test."));
    }

    /// Asks every client to reconnect (op 7).
    pub fn ask_to_reconnect(&self) {
        self.each_link(|state, link| state.hub.send_op(link, 7, &Value::Null));
    }

    /// Invalidates every session (op 9).
    pub fn invalidate_sessions(&self, resumable: bool) {
        self.each_link(|state, link| state.invalidate(link, resumable));
    }

    /// Sends an event unchanged to every session. `data` is inserted as it is,
    /// valid JSON or not.
    pub fn dispatch_raw(&self, name: &str, data: &str) {
        self.shared.with(|state| {
            let sessions: Vec<String> = state.hub.sessions.keys().cloned().collect();
            for session in sessions {
                state.send_event(&session, name, data);
            }
        });
    }

    fn each_link(&self, mut act: impl FnMut(&mut State, u64)) {
        self.shared.with(|state| {
            let links: Vec<u64> = state.hub.links.keys().copied().collect();
            for link in links {
                act(state, link);
            }
        });
    }
}

acts! {
    /// Activates a fault; returns its number for [`Simulator::hits`].
    with fault(fault: Fault) -> usize = |state| state.faults.add(fault);
    /// How many calls a fault has hit.
    read hits(fault: usize) -> usize = |state| state.faults.hits(fault);
    /// Ends all REST faults.
    with end_faults() = |state| state.faults.end_all();
    /// Delay added to every REST call from now on.
    with set_latency(latency: Duration) = |state| state.latency = latency;
    /// Limits calls; further ones get a 429 until the window has passed.
    with limit(limit: Limit) = |state| state.limits.configured.push(limit);
    /// Turns answers to heartbeats on or off.
    with set_heartbeats_answered(answered: bool) = |state| state.hub.silent_heartbeats = !answered;
    /// Refuses this many resumes with op 9 false.
    with refuse_resumes(times: u64) = |state| state.hub.refuse_resumes = times;
    /// Refuses this many identifies with op 9 false.
    with refuse_identifies(times: u64) = |state| state.hub.refuse_identifies = times;
    /// Forgets every session, so that the next resume fails.
    with forget_sessions() = |state| state.hub.sessions.clear();
}
