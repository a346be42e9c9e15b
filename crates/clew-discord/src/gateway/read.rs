//! Text frames into events: the envelope is opened without its content, and
//! only the event types in use are read further.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::commands;
use crate::event::{Event, Ready};
use crate::facts::{Facts, Us, each, lenient};
use clew_context::discord::convert::{self, Incoming, Unreadable};
use clew_context::model::{
    ApplicationId, ChannelId, ChannelKind, GuildId, MessageId, MessageKind, UserId,
};

/// Application flags that allow message content (Discord's reference,
/// "Application Flags": 1 << 18, and 1 << 19 for small bots).
const CONTENT_FLAGS: u64 = 1 << 18 | 1 << 19;

/// A text frame.
pub(super) enum Frame<'a> {
    /// Opcode 0.
    Dispatch(Dispatch<'a>),
    /// Opcode 10.
    Hello,
    /// Opcode 7: twilight makes another connection.
    Reconnect,
    /// Opcode 9: twilight resumes or begins a fresh session.
    InvalidSession,
    /// What twilight deals with alone.
    Other,
}

/// An event as it came.
pub(super) struct Dispatch<'a> {
    pub(super) event_type: &'a str,
    pub(super) sequence: u64,
    pub(super) data: &'a str,
}

/// Opens the envelope.
pub(super) fn frame(text: &str) -> Option<Frame<'_>> {
    let envelope: Envelope<'_> = serde_json::from_str(text).ok()?;
    match (envelope.op, envelope.t, envelope.s) {
        (0, Some(event_type), Some(sequence)) => Some(Frame::Dispatch(Dispatch {
            event_type,
            sequence,
            data: envelope.d.map_or("null", RawValue::get),
        })),
        (10, ..) => Some(Frame::Hello),
        (7, ..) => Some(Frame::Reconnect),
        (9, ..) => Some(Frame::InvalidSession),
        _ => Some(Frame::Other),
    }
}

/// What an event tells the bot; nothing for types not in use.
pub(super) fn event(dispatch: &Dispatch<'_>, facts: &Facts) -> Option<Event> {
    let data = dispatch.data;
    let event = match dispatch.event_type {
        "MESSAGE_CREATE" => Some(message(data, Event::Message)),
        "MESSAGE_UPDATE" => Some(message(data, Event::MessageEdited)),
        "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => Some(deleted(data)),
        "GUILD_MEMBER_REMOVE" => {
            serde_json::from_str(data)
                .ok()
                .map(|MemberRemove { guild_id, user }| Event::MemberLeft {
                    guild: guild_id,
                    user: user.id,
                })
        }
        "INTERACTION_CREATE" => commands::called(data).map(|call| Event::Called(Box::new(call))),
        other => facts.apply(other, data),
    };
    event.inspect(|event| count(event, facts))
}

/// Threads say how many messages they hold only when they themselves change.
fn count(event: &Event, facts: &Facts) {
    match event {
        Event::Message(incoming) => {
            let in_thread = incoming.channel_kind.is_none_or(ChannelKind::is_thread);
            if in_thread && incoming.message.kind != MessageKind::ThreadStarter {
                facts.count_messages(incoming.message.channel, 1);
            }
        }
        Event::MessagesDeleted { channel, ids } => {
            let deleted = i64::try_from(ids.len()).unwrap_or(0);
            facts.count_messages(*channel, -deleted);
        }
        _ => {}
    }
}

fn message(data: &str, event: fn(Box<Incoming>) -> Event) -> Event {
    match convert::incoming(data) {
        Ok(incoming) => event(Box::new(incoming)),
        Err(Unreadable {
            id,
            channel,
            reason,
        }) => {
            tracing::warn!(?id, ?channel, %reason, "a message event could not be read");
            Event::MessageUnreadable { channel }
        }
    }
}

fn deleted(data: &str) -> Event {
    match serde_json::from_str::<Deleted>(data) {
        Ok(Deleted {
            channel_id: channel,
            id,
            mut ids,
        }) => {
            ids.extend(id);
            Event::MessagesDeleted { channel, ids }
        }
        Err(error) => {
            tracing::warn!(%error, "a delete event could not be read");
            Event::MessageUnreadable { channel: None }
        }
    }
}

/// Reads READY.
pub(super) fn ready(data: &str) -> Option<Ready> {
    let ready: WireReady = serde_json::from_str(data).ok()?;
    Some(Ready {
        user: ready.user.id,
        name: ready.user.username,
        application: match &ready.application {
            Some(application) => application.id,
            None => ApplicationId::new(ready.user.id.get()),
        },
        content_granted: match &ready.application {
            Some(application) => application.flags & CONTENT_FLAGS != 0,
            None => true,
        },
        guilds: ready.guilds.iter().map(|guild| guild.id).collect(),
        shards: ready.shard.map_or(1, |(_, shards)| shards.max(1)),
    })
}

impl Ready {
    /// Who we are.
    pub(super) fn us(&self) -> Us {
        Us {
            user: self.user,
            name: self.name.clone(),
            application: self.application,
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    op: u8,
    #[serde(default)]
    s: Option<u64>,
    #[serde(default, borrow)]
    t: Option<&'a str>,
    #[serde(default, borrow)]
    d: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Deleted {
    channel_id: ChannelId,
    #[serde(default)]
    id: Option<MessageId>,
    #[serde(default)]
    ids: Vec<MessageId>,
}

#[derive(Deserialize)]
struct MemberRemove {
    guild_id: GuildId,
    user: WireUser,
}

#[derive(Deserialize)]
struct WireReady {
    user: WireUser,
    /// Some Discord-compatible servers leave it out; a bot's application has
    /// the bot's id as a rule.
    #[serde(default, deserialize_with = "lenient")]
    application: Option<WireApplication>,
    #[serde(default, deserialize_with = "each")]
    guilds: Vec<WireGuild>,
    /// Which shard of how many.
    #[serde(default, deserialize_with = "lenient")]
    shard: Option<(u32, u32)>,
}

#[derive(Deserialize)]
struct WireUser {
    id: UserId,
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct WireApplication {
    id: ApplicationId,
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct WireGuild {
    id: GuildId,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame in a few words.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = match frame(text) {
            Some(Frame::Dispatch(found)) => {
                format!("{} {} {}", found.event_type, found.sequence, found.data)
            }
            Some(Frame::Hello) => "hello".to_owned(),
            Some(Frame::Reconnect) => "reconnect".to_owned(),
            Some(Frame::InvalidSession) => "invalid session".to_owned(),
            Some(Frame::Other) => "other".to_owned(),
            None => "unreadable".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn envelopes_are_opened_in_any_order() {
        check(
            r#"{"t":"X","s":7,"op":0,"d":{"op":10}}"#,
            r#"X 7 {"op":10}"#,
        );
        check(
            r#"{"d":{"t":"Y"},"op":0,"s":7,"t":"X"}"#,
            r#"X 7 {"t":"Y"}"#,
        );
        check(r#"{"t":"X","s":7,"op":0,"d":null}"#, "X 7 null");
        check(r#"{"t":"X","s":7,"op":0}"#, "X 7 null");
        check(
            r#"{"t":null,"s":null,"op":10,"d":{"heartbeat_interval":1}}"#,
            "hello",
        );
        check(r#"{"op":10,"d":{"heartbeat_interval":1}}"#, "hello");
        check(r#"{"t":null,"s":null,"op":7,"d":null}"#, "reconnect");
        check(r#"{"t":null,"s":null,"op":9,"d":false}"#, "invalid session");
        check(r#"{"t":null,"s":null,"op":11}"#, "other");
        check(r#"{"t":null,"s":7,"op":0,"d":{}}"#, "other");
        check("{}", "unreadable");
        check(r#"{"t":"X","s":7,"op":0,"d":{"a":"#, "unreadable");
    }

    #[test]
    fn of_ready_only_our_user_is_needed() {
        let data =
            r#"{"user":{"id":"5"},"application":{"id":"0"},"guilds":[{"id":"0"},{"id":"6"}]}"#;
        let ready = ready(data).unwrap();
        assert_eq!(ready.application, ApplicationId::new(5));
        assert_eq!(ready.guilds, [GuildId::new(6)]);
        assert!(super::ready(r#"{"user":{"id":"0"}}"#).is_none());
    }

    #[test]
    fn deletes_of_one_and_of_many_are_told_alike() {
        let ids = |data: &str| match deleted(data) {
            Event::MessagesDeleted { ids, .. } => ids,
            other => panic!("{other:?}"),
        };
        let [one, two] = [1, 2].map(MessageId::new);
        assert_eq!(ids(r#"{"id":"1","channel_id":"5","guild_id":"6"}"#), [one]);
        assert_eq!(ids(r#"{"ids":["1","2"],"channel_id":"5"}"#), [one, two]);
    }
}
