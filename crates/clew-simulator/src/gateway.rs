//! The gateway: sessions that outlive their connections, and events that are sent
//! to every session whose intents include them.
//!
//! Envelopes are written with `d` last, as Discord does, so that no nested `op`
//! can be mistaken for the envelope's own.

mod link;
mod session;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::broadcast;
use tokio::sync::mpsc::UnboundedSender;

use super::ids::Id;
use super::log::Dispatch;
use super::render;
use super::state::State;

pub(super) use link::{closed_by_client, open, serve};

/// The gateway intents that the simulator distinguishes.
pub(super) mod intent {
    pub(crate) const GUILDS: u64 = 1;
    pub(crate) const GUILD_MEMBERS: u64 = 1 << 1;
    /// In guilds, in direct messages; the next two as well.
    pub(crate) const MESSAGES: [u64; 2] = [1 << 9, 1 << 12];
    /// Pins come with the intent for guilds.
    pub(crate) const PINS: [u64; 2] = [GUILDS, 1 << 12];
    pub(crate) const REACTIONS: [u64; 2] = [1 << 10, 1 << 13];
    pub(crate) const TYPING: [u64; 2] = [1 << 11, 1 << 14];
    pub(crate) const MESSAGE_CONTENT: u64 = 1 << 15;
    /// Every bit that the documentation defines; any other bit closes with 4013.
    pub(crate) const KNOWN: u64 = 0x0331_FFFF;
}

/// How many events a subscriber may be behind before it misses the oldest.
const SUBSCRIBED_EVENTS: usize = 4_096;

/// Sessions, connections, and the faults set for them.
#[derive(Debug)]
pub(super) struct Hub {
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) links: BTreeMap<u64, Link>,
    /// Whoever watches the events beside the sessions.
    pub(super) subscribers: broadcast::Sender<Dispatch>,
    pub(super) silent_heartbeats: bool,
    pub(super) refuse_resumes: u64,
    pub(super) refuse_identifies: u64,
    /// When the last IDENTIFY of each bucket came, since the start.
    pub(super) identified: BTreeMap<u64, Duration>,
    next_link: u64,
    next_session: u64,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            sessions: BTreeMap::new(),
            links: BTreeMap::new(),
            subscribers: broadcast::Sender::new(SUBSCRIBED_EVENTS),
            silent_heartbeats: false,
            refuse_resumes: 0,
            refuse_identifies: 0,
            identified: BTreeMap::new(),
            next_link: 0,
            next_session: 0,
        }
    }
}

/// What a client identified with; it outlives the connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) intents: u64,
    pub(super) shard: (u64, u64),
    pub(super) seq: u64,
    pub(super) link: Option<u64>,
    /// The highest sequence number that the client has reported as read.
    pub(super) read: u64,
    sent: VecDeque<(u64, Arc<str>)>,
}

/// One connection. Its queue is unbounded: a client that never reads costs
/// memory, but does not block anyone else.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) queue: UnboundedSender<Outgoing>,
    pub(super) session: Option<String>,
}

/// What a connection does next.
#[derive(Debug)]
pub(super) enum Outgoing {
    Text(Arc<str>),
    Close(u16, &'static str),
    Drop,
}

impl State {
    /// Sends an event to every session that it is for, connected or not, but in an outage of the guild.
    ///
    /// A session needs at least one of the intents (0: none of them), and its shard is that of the
    /// guild; without one it is shard 0.
    pub(super) fn emit(&mut self, name: &str, intents: u64, guild: Option<Id>, data: &Value) {
        if self.hub.subscribers.receiver_count() > 0 {
            // It fails if the last one has just left.
            let _ = self.hub.subscribers.send(Dispatch::new(name, data));
        }
        let outage =
            guild.is_some_and(|guild| self.world.guilds.get(&guild).is_some_and(|g| g.unavailable));
        if outage {
            return;
        }
        let wanted: Vec<(String, u64)> = self
            .hub
            .sessions
            .iter()
            .filter(|(_, session)| session.wants(intents, guild))
            .map(|(id, session)| (id.clone(), session.intents))
            .collect();
        // Content is blanked without the message content intent.
        let message = matches!(name, "MESSAGE_CREATE" | "MESSAGE_UPDATE");
        for (session, intents) in wanted {
            if message && intents & intent::MESSAGE_CONTENT == 0 {
                let mut blanked = data.clone();
                let direct = guild.is_none();
                render::blank_unless_allowed(self.world.bot, &mut blanked, direct);
                self.send_event(&session, name, &blanked.to_string());
            } else {
                self.send_event(&session, name, &data.to_string());
            }
        }
    }

    /// Sends one event to one session; `data` is JSON, or whatever a test wants to
    /// send instead.
    pub(super) fn send_event(&mut self, session: &str, name: &str, data: &str) {
        let limit = self.world.settings.replay_limit;
        let Some(found) = self.hub.sessions.get_mut(session) else {
            return;
        };
        found.seq += 1;
        let text: Arc<str> =
            format!(r#"{{"t":"{name}","s":{},"op":0,"d":{data}}}"#, found.seq).into();
        found.sent.push_back((found.seq, Arc::clone(&text)));
        if found.sent.len() > limit {
            found.sent.pop_front();
        }
        if let Some(link) = found.link {
            self.hub.send(link, Outgoing::Text(text));
        }
    }
}

impl Hub {
    /// Queues something on a connection; ignored if it is closed.
    pub(super) fn send(&self, link: u64, outgoing: Outgoing) {
        if let Some(link) = self.links.get(&link) {
            // Sending fails if the client has just left; then there is nobody to tell.
            let _ = link.queue.send(outgoing);
        }
    }

    /// Queues something on every connection.
    pub(super) fn broadcast(&self, outgoing: impl Fn() -> Outgoing) {
        for &link in self.links.keys() {
            self.send(link, outgoing());
        }
    }

    /// Queues an envelope without a sequence number on a connection.
    pub(super) fn send_op(&self, link: u64, op: u8, data: &Value) {
        let text = format!(r#"{{"t":null,"s":null,"op":{op},"d":{data}}}"#);
        self.send(link, Outgoing::Text(text.into()));
    }

    pub(super) fn open(&mut self, queue: UnboundedSender<Outgoing>) -> u64 {
        self.next_link += 1;
        let session = None;
        self.links.insert(self.next_link, Link { queue, session });
        self.next_link
    }

    /// Removes a connection; its session stays unless `end_session` is true.
    pub(super) fn close(&mut self, link: u64, end_session: bool) {
        let Some(gone) = self.links.remove(&link) else {
            return;
        };
        let Some(id) = gone.session else { return };
        if end_session {
            self.sessions.remove(&id);
        } else if let Some(session) = self.sessions.get_mut(&id)
            && session.link == Some(link)
        {
            session.link = None;
        }
    }

    /// Sessions that are connected now.
    pub(super) fn connected(&self) -> impl Iterator<Item = &Session> {
        self.sessions
            .values()
            .filter(|session| session.link.is_some())
    }
}

impl Session {
    fn wants(&self, intents: u64, guild: Option<Id>) -> bool {
        let (id, count) = self.shard;
        let shard = guild.map_or(0, |guild| (guild.0 >> 22) % count);
        shard == id && (intents == 0 || self.intents & intents != 0)
    }
}
