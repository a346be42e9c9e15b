//! The gateway: sessions that outlive their connections, and events that go to
//! every session that asked for them.
//!
//! Envelopes are written with `d` last, as Discord does, so that nothing nested
//! is mistaken for the envelope's own `op`.

mod link;
mod session;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::ids::Id;
use super::render;
use super::state::State;

pub(super) use link::serve;

/// Gateway intents that the simulator tells apart.
pub(super) mod intent {
    pub(crate) const GUILDS: u64 = 1;
    pub(crate) const GUILD_MEMBERS: u64 = 1 << 1;
    pub(crate) const GUILD_MESSAGES: u64 = 1 << 9;
    pub(crate) const GUILD_REACTIONS: u64 = 1 << 10;
    pub(crate) const GUILD_TYPING: u64 = 1 << 11;
    pub(crate) const DIRECT_MESSAGES: u64 = 1 << 12;
    pub(crate) const DIRECT_REACTIONS: u64 = 1 << 13;
    pub(crate) const DIRECT_TYPING: u64 = 1 << 14;
    pub(crate) const MESSAGE_CONTENT: u64 = 1 << 15;
    /// Every bit the documentation gives a meaning; another one is 4013.
    pub(crate) const KNOWN: u64 = 0x0331_FFFF;
}

/// Sessions, connections and what is wrong with them on purpose.
#[derive(Debug, Default)]
pub(super) struct Hub {
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) links: BTreeMap<u64, Link>,
    pub(super) silent_heartbeats: bool,
    pub(super) refuse_resumes: u64,
    pub(super) refuse_identifies: u64,
    next_link: u64,
    next_session: u64,
}

/// What a client identified as; it survives its connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) intents: u64,
    pub(super) shard: (u64, u64),
    pub(super) seq: u64,
    pub(super) link: Option<u64>,
    /// The highest sequence number the client said it has read.
    pub(super) read: u64,
    sent: VecDeque<(u64, Arc<str>)>,
}

/// One connection. Its queue is not bounded: a client that never reads costs
/// the simulator memory, and blocks no one else.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) queue: UnboundedSender<Outgoing>,
    pub(super) session: Option<String>,
}

/// What a connection sends next.
#[derive(Debug)]
pub(super) enum Outgoing {
    Text(Arc<str>),
    Close(u16, &'static str),
    Drop,
}

/// Who is told of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope {
    /// Any of these intents; 0: everyone.
    pub(super) intents: u64,
    /// The guild, which decides the shard; without one the first shard.
    pub(super) guild: Option<Id>,
    /// A message, whose content needs an intent of its own.
    pub(super) message: bool,
}

impl State {
    /// Sends an event to every session in its scope, connected or not.
    pub(super) fn emit(&mut self, name: &str, scope: Scope, data: &Value) {
        let outage = scope
            .guild
            .is_some_and(|guild| self.world.guilds.get(&guild).is_some_and(|g| g.unavailable));
        if outage {
            return;
        }
        let wanted: Vec<(String, u64)> = self
            .hub
            .sessions
            .iter()
            .filter(|(_, session)| session.wants(scope))
            .map(|(id, session)| (id.clone(), session.intents))
            .collect();
        for (session, intents) in wanted {
            if scope.message && intents & intent::MESSAGE_CONTENT == 0 {
                let mut blanked = data.clone();
                let direct = scope.guild.is_none();
                render::blank_unless_allowed(self.world.bot, &mut blanked, direct);
                self.send_event(&session, name, &blanked.to_string());
            } else {
                self.send_event(&session, name, &data.to_string());
            }
        }
    }

    /// Sends one event to one session; `data` is JSON, or what a test wants
    /// in its place.
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
    /// Queues something on a connection; one that is gone is passed over.
    pub(super) fn send(&self, link: u64, outgoing: Outgoing) {
        if let Some(link) = self.links.get(&link) {
            // The receiver is gone when the client just left: nobody is told.
            let _ = link.queue.send(outgoing);
        }
    }

    /// Queues something on every connection.
    pub(super) fn broadcast(&self, outgoing: impl Fn() -> Outgoing) {
        for &link in self.links.keys() {
            self.send(link, outgoing());
        }
    }

    /// Queues an envelope without sequence number on a connection.
    pub(super) fn send_op(&self, link: u64, op: u8, data: &Value) {
        let text = format!(r#"{{"t":null,"s":null,"op":{op},"d":{data}}}"#);
        self.send(link, Outgoing::Text(text.into()));
    }

    /// Registers a connection.
    pub(super) fn open(&mut self, queue: UnboundedSender<Outgoing>) -> u64 {
        self.next_link += 1;
        let session = None;
        self.links.insert(self.next_link, Link { queue, session });
        self.next_link
    }

    /// Takes a connection off; its session stays unless it is ended.
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

    /// Sessions that have a connection now.
    pub(super) fn connected(&self) -> impl Iterator<Item = &Session> {
        self.sessions
            .values()
            .filter(|session| session.link.is_some())
    }
}

impl Session {
    fn wants(&self, scope: Scope) -> bool {
        let (id, count) = self.shard;
        let shard = scope.guild.map_or(0, |guild| (guild.0 >> 22) % count);
        shard == id && (scope.intents == 0 || self.intents & scope.intents != 0)
    }
}
