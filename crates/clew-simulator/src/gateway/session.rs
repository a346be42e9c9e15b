//! Handles what clients send: IDENTIFY, RESUME, heartbeats.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Outgoing, Session, State, intent};
use crate::ids::Id;
use crate::log::GatewayEvent;
use crate::render;

impl State {
    /// Handles one frame from a client.
    pub(crate) fn on_frame(&mut self, link: u64, text: &str) {
        let Ok(frame) = serde_json::from_str::<Value>(text) else {
            return self.close_link(link, 4002, "Error while decoding payload.");
        };
        let known = self.hub.links.get(&link).and_then(|l| l.session.clone());
        let data = &frame["d"];
        match (frame["op"].as_u64(), known) {
            (Some(1), known) => self.on_heartbeat(link, known.as_deref(), data.as_u64()),
            (Some(2), None) => self.on_identify(link, data),
            (Some(6), None) => self.on_resume(link, data),
            (Some(2 | 6), Some(_)) => self.close_link(link, 4005, "Already authenticated."),
            (Some(op @ (3 | 4 | 8 | 31)), Some(session)) => {
                self.on_command(link, op, &session, data);
            }
            (Some(3 | 4 | 8 | 31), None) => self.close_link(link, 4003, "Not authenticated."),
            _ => self.close_link(link, 4001, "Unknown opcode."),
        }
    }

    /// Closes a connection with a code; the session stays resumable unless the code ends it.
    pub(crate) fn close_link(&mut self, link: u64, code: u16, reason: &'static str) {
        self.hub.send(link, Outgoing::Close(code, reason));
        let ends = matches!(code, 1000 | 1001 | 4004 | 4007 | 4009..=4014);
        self.hub.close(link, ends);
        self.note(link, GatewayEvent::ClosedByServer { code: Some(code) });
    }

    /// Refuses a session with op 9.
    pub(crate) fn invalidate(&mut self, link: u64, resumable: bool) {
        self.hub.send_op(link, 9, &resumable.into());
        self.note(link, GatewayEvent::Invalidated { resumable });
        let session = self.hub.links.get_mut(&link).and_then(|l| l.session.take());
        if let Some(session) = session {
            match self.hub.sessions.get_mut(&session) {
                Some(found) if resumable => found.link = None,
                _ => drop(self.hub.sessions.remove(&session)),
            }
        }
    }

    fn on_heartbeat(&mut self, link: u64, session: Option<&str>, seq: Option<u64>) {
        self.note(link, GatewayEvent::Heartbeat { seq });
        if let (Some(seq), Some(session)) = (seq, session)
            && let Some(found) = self.hub.sessions.get_mut(session)
        {
            found.read = found.read.max(seq);
        }
        if !self.hub.silent_heartbeats {
            self.hub.send_op(link, 11, &Value::Null);
        }
    }

    fn on_identify(&mut self, link: u64, data: &Value) {
        let intents = data["intents"].as_u64().unwrap_or(u64::MAX);
        let shard = data["shard"].as_array().map_or((0, 1), |pair| {
            let number = |index: usize| pair.get(index).and_then(Value::as_u64).unwrap_or(0);
            (number(0), number(1))
        });
        if !self.is_authentic(data) {
            return self.close_link(link, 4004, "Authentication failed.");
        }
        if shard.0 >= shard.1 {
            return self.close_link(link, 4010, "Invalid shard.");
        }
        if intents & !intent::KNOWN != 0 {
            return self.close_link(link, 4013, "Invalid intent(s).");
        }
        if intents & self.world.settings.disallowed_intents != 0 {
            return self.close_link(link, 4014, "Disallowed intent(s).");
        }
        let starts = &mut self.world.settings.session_starts_remaining;
        *starts = starts.saturating_sub(1);
        if self.hub.refuse_identifies > 0 {
            self.hub.refuse_identifies -= 1;
            return self.invalidate(link, false);
        }
        let bucket = shard.0 % self.world.settings.max_concurrency.max(1);
        let now = self.elapsed();
        let last = self.hub.identified.insert(bucket, now);
        let interval = self.world.settings.identify_interval;
        if last.is_some_and(|last| now.saturating_sub(last) < interval) {
            return self.invalidate(link, false);
        }
        self.begin_session(link, intents, shard);
    }

    /// Whether an IDENTIFY or RESUME has the bot's token.
    fn is_authentic(&self, data: &Value) -> bool {
        let token = data["token"].as_str().unwrap_or_default();
        token.strip_prefix("Bot ").unwrap_or(token) == self.world.token
    }

    fn begin_session(&mut self, link: u64, intents: u64, shard: (u64, u64)) {
        self.hub.next_session += 1;
        let id = format!("{:032x}", self.hub.next_session);
        let session = Session {
            intents,
            shard,
            seq: 0,
            link: Some(link),
            read: 0,
            sent: VecDeque::new(),
        };
        self.hub.sessions.insert(id.clone(), session);
        if let Some(found) = self.hub.links.get_mut(&link) {
            found.session = Some(id.clone());
        }
        let session = id.clone();
        self.note(
            link,
            GatewayEvent::Identified {
                session,
                intents,
                shard,
            },
        );
        self.greet(&id, intents, shard);
    }

    /// READY, and a `GUILD_CREATE` for each guild of the shard.
    fn greet(&mut self, session: &str, intents: u64, shard: (u64, u64)) {
        let world = &self.world;
        let guilds: Vec<Id> = world
            .guilds
            .values()
            .filter(|guild| guild.members.contains_key(&world.bot))
            .filter(|guild| (guild.id.0 >> 22) % shard.1 == shard.0)
            .map(|guild| guild.id)
            .collect();
        let unavailable: Vec<Value> = guilds
            .iter()
            .map(|id| json!({"id": id.json(), "unavailable": true}))
            .collect();
        let ready = json!({
            "v": 10, "user": render::own_user(world), "guilds": unavailable,
            "session_id": session, "session_type": "normal",
            "resume_gateway_url": world.base_url.replacen("http", "ws", 1),
            "shard": [shard.0, shard.1],
            "application": {"id": world.bot.json(), "flags": render::application_flags(world)},
            "private_channels": [], "relationships": [], "presences": [], "user_settings": {},
        });
        self.send_event(session, "READY", &ready.to_string());
        if intents & intent::GUILDS == 0 {
            return;
        }
        for id in guilds {
            let world = &self.world;
            let guild = world.guilds.get(&id).filter(|guild| !guild.unavailable);
            if let Some(text) = guild.map(|g| render::guild_create(world, g).to_string()) {
                self.send_event(session, "GUILD_CREATE", &text);
            }
        }
    }

    fn on_resume(&mut self, link: u64, data: &Value) {
        if !self.is_authentic(data) {
            return self.close_link(link, 4004, "Authentication failed.");
        }
        if self.hub.refuse_resumes > 0 {
            self.hub.refuse_resumes -= 1;
            return self.invalidate(link, false);
        }
        let id = data["session_id"].as_str().unwrap_or_default().to_owned();
        let seq = data["seq"].as_u64().unwrap_or(0);
        let Some(session) = self.hub.sessions.get_mut(&id) else {
            return self.invalidate(link, false);
        };
        if seq > session.seq {
            self.hub.sessions.remove(&id);
            return self.close_link(link, 4007, "Invalid seq.");
        }
        let oldest = session.sent.front().map_or(session.seq + 1, |(s, _)| *s);
        if seq + 1 < oldest {
            return self.invalidate(link, false);
        }
        let missed = session.sent.iter().filter(|(s, _)| *s > seq);
        let missed: Vec<Arc<str>> = missed.map(|(_, text)| Arc::clone(text)).collect();
        session.link = Some(link);
        session.read = seq;
        self.replay(link, id, seq, missed);
    }

    fn replay(&mut self, link: u64, id: String, seq: u64, missed: Vec<Arc<str>>) {
        let replayed = missed.len();
        for text in missed {
            self.hub.send(link, Outgoing::Text(text));
        }
        if let Some(found) = self.hub.links.get_mut(&link) {
            found.session = Some(id.clone());
        }
        self.send_event(&id, "RESUMED", r#"{"_trace":[]}"#);
        self.note(
            link,
            GatewayEvent::Resumed {
                session: id,
                seq,
                replayed,
            },
        );
    }

    fn on_command(&mut self, link: u64, op: u64, session: &str, data: &Value) {
        self.note(link, GatewayEvent::Command { op });
        if op != 8 {
            return;
        }
        let guild = Id::parse(&data["guild_id"]).and_then(|id| self.world.guilds.get(&id));
        let Some(guild) = guild else { return };
        let wanted = |id: Id| match &data["user_ids"] {
            Value::Array(ids) => ids.iter().any(|each| Id::parse(each) == Some(id)),
            Value::Null => true,
            one => Id::parse(one) == Some(id),
        };
        let members = guild.members.values().filter(|m| wanted(m.user));
        let members: Vec<Value> = members
            .map(|member| render::member(&self.world, member, true))
            .collect();
        let chunk = json!({
            "guild_id": guild.id.json(), "members": members, "chunk_index": 0, "chunk_count": 1,
            "not_found": [], "nonce": data["nonce"],
        });
        self.send_event(session, "GUILD_MEMBERS_CHUNK", &chunk.to_string());
    }
}
