//! Turns text frames into events. The envelope is parsed without its content;
//! only event types we use are parsed further.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::commands;
use crate::event::{Event, Ready, UnreadableEvent};
use crate::guild_state::{CurrentUser, GuildState};
use crate::lenient::{each, lenient};
use clew_context::discord::convert::{self, Incoming, WhyUnreadable};
use clew_context::model::{
    ApplicationId, ChannelId, ChannelKind, GuildId, MessageId, MessageKind, UserId,
};

/// Application flags that allow message content (Discord's reference,
/// "Application Flags": 1 << 18, and 1 << 19 for small bots).
const CONTENT_FLAGS: u64 = 1 << 18 | 1 << 19;

pub(super) enum Frame<'a> {
    /// Opcode 0.
    Dispatch(Dispatch<'a>),
    /// Opcode 10.
    Hello,
    /// Opcode 7: twilight reconnects.
    Reconnect,
    /// Opcode 9: twilight resumes or starts a fresh session.
    InvalidSession,
    /// Anything twilight handles alone.
    Other,
}

/// An event as received.
pub(super) struct Dispatch<'a> {
    pub(super) event_type: &'a str,
    pub(super) sequence: u64,
    pub(super) data: &'a str,
}

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

/// What an event means to the bot; `None` for types we do not use.
pub(super) fn event(dispatch: &Dispatch<'_>, guild_state: &GuildState) -> Option<Event> {
    let event = match dispatch.event_type {
        "MESSAGE_CREATE" => Some(message(dispatch, Event::Message)),
        "MESSAGE_UPDATE" => Some(message(dispatch, Event::MessageEdited)),
        "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => Some(deleted(dispatch)),
        "GUILD_MEMBER_REMOVE" => Some(member_left(dispatch)),
        "CHANNEL_PINS_UPDATE" => Some(pins_changed(dispatch)),
        "INTERACTION_CREATE" => match commands::parse(dispatch.data) {
            Ok(incoming) => incoming.map(|incoming| Event::Interaction(Box::new(incoming))),
            Err(part) => Some(Event::Unreadable(unreadable(dispatch, vec![part]))),
        },
        other => guild_state.apply(other, dispatch.data),
    };
    event.inspect(|event| count(event, guild_state))
}

/// Keeps count of a thread's messages, since Discord sends its count only when
/// the thread itself changes.
fn count(event: &Event, guild_state: &GuildState) {
    match event {
        Event::Message(incoming) => {
            let in_thread = incoming.channel_kind.is_none_or(ChannelKind::is_thread);
            if in_thread && incoming.message.kind != MessageKind::ThreadStarter {
                guild_state.count_messages(incoming.message.channel, 1);
            }
        }
        Event::MessagesDeleted { channel, ids } => {
            let deleted = i64::try_from(ids.len()).unwrap_or(0);
            guild_state.count_messages(*channel, -deleted);
        }
        _ => {}
    }
}

fn message(dispatch: &Dispatch<'_>, event: fn(Box<Incoming>) -> Event) -> Event {
    match convert::incoming(dispatch.data) {
        Ok(incoming) => event(Box::new(incoming)),
        Err(error) => Event::MessagesMissed(unreadable(dispatch, vec![missing_part(error.reason)])),
    }
}

fn deleted(dispatch: &Dispatch<'_>) -> Event {
    let reason = match serde_json::from_str(dispatch.data) {
        Ok(MessageDelete {
            channel_id: Some(channel),
            id,
            ids,
        }) => {
            let mut ids = ids.unwrap_or_default();
            ids.extend(id);
            if !ids.is_empty() {
                return Event::MessagesDeleted { channel, ids };
            }
            WhyUnreadable::Id
        }
        Ok(_) => WhyUnreadable::Channel,
        Err(_) => WhyUnreadable::Json,
    };
    Event::MessagesMissed(unreadable(dispatch, vec![missing_part(reason)]))
}

fn member_left(dispatch: &Dispatch<'_>) -> Event {
    match serde_json::from_str(dispatch.data) {
        Ok(MemberRemove { guild_id, user }) => Event::MemberLeft {
            guild: guild_id,
            user: user.id,
        },
        Err(_) => Event::Unreadable(unreadable(dispatch, Vec::new())),
    }
}

fn pins_changed(dispatch: &Dispatch<'_>) -> Event {
    match serde_json::from_str(dispatch.data) {
        Ok(PinsUpdate { channel_id }) => Event::PinsChanged(channel_id),
        Err(_) => Event::MessagesMissed(unreadable(dispatch, Vec::new())),
    }
}

/// Logs that an event could not be read, and says what is known of it.
fn unreadable(dispatch: &Dispatch<'_>, parts: Vec<&'static str>) -> UnreadableEvent {
    let event = UnreadableEvent::new(dispatch.event_type, dispatch.data, parts);
    tracing::warn!(
        event_type = dispatch.event_type,
        channel = ?event.channel,
        message = ?event.message,
        parts = ?event.parts,
        "an event could not be read"
    );
    event
}

/// The missing part, by Discord's field name.
const fn missing_part(reason: WhyUnreadable) -> &'static str {
    match reason {
        WhyUnreadable::Json => "json",
        WhyUnreadable::Id => "id",
        WhyUnreadable::Channel => "channel_id",
        WhyUnreadable::Author => "author",
        WhyUnreadable::Type => "type",
        WhyUnreadable::Roles => "roles",
    }
}

pub(super) fn ready(data: &str) -> Option<Ready> {
    let ready: ReadyObject = serde_json::from_str(data).ok()?;
    let (user, application) = (ready.user.id, ready.application);
    let own = ApplicationId::new(user.get());
    Some(Ready {
        user,
        name: ready.user.username,
        application: application.as_ref().map_or(own, |one| one.id),
        content_granted: application.is_none_or(|one| one.flags & CONTENT_FLAGS != 0),
        guilds: ready.guilds.iter().map(|guild| guild.id).collect(),
        shards: ready.shard.map_or(1, |(_, shards)| shards.max(1)),
    })
}

impl Ready {
    /// Who we are.
    pub(super) fn us(&self) -> CurrentUser {
        CurrentUser {
            user: self.user,
            name: self.name.clone(),
            application: self.application,
        }
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    op: u8,
    s: Option<u64>,
    #[serde(default, borrow)]
    t: Option<&'a str>,
    #[serde(default, borrow)]
    d: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageDelete {
    #[serde(default, deserialize_with = "lenient")]
    channel_id: Option<ChannelId>,
    #[serde(default, deserialize_with = "lenient")]
    id: Option<MessageId>,
    /// One unreadable id makes the whole list unknown.
    #[serde(default, deserialize_with = "lenient")]
    ids: Option<Vec<MessageId>>,
}

#[derive(Deserialize)]
struct PinsUpdate {
    channel_id: ChannelId,
}

#[derive(Deserialize)]
struct MemberRemove {
    guild_id: GuildId,
    user: UserObject,
}

#[derive(Deserialize)]
struct ReadyObject {
    user: UserObject,
    /// Some Discord-compatible servers leave it out; a bot's application id
    /// usually equals the bot's id.
    #[serde(default, deserialize_with = "lenient")]
    application: Option<ApplicationObject>,
    #[serde(default, deserialize_with = "each")]
    guilds: Vec<GuildObject>,
    /// Shard number and number of shards.
    #[serde(default, deserialize_with = "lenient")]
    shard: Option<(u32, u32)>,
}

#[derive(Deserialize)]
struct UserObject {
    id: UserId,
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct ApplicationObject {
    id: ApplicationId,
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct GuildObject {
    id: GuildId,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch<'a>(event_type: &'a str, data: &'a str) -> Dispatch<'a> {
        Dispatch {
            event_type,
            sequence: 1,
            data,
        }
    }

    /// Describes the frame in a few words and compares.
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
        let ids = |data: &str| match deleted(&dispatch("MESSAGE_DELETE", data)) {
            Event::MessagesDeleted { ids, .. } => ids,
            other => panic!("{other:?}"),
        };
        let [one, two] = [1, 2].map(MessageId::new);
        assert_eq!(ids(r#"{"id":"1","channel_id":"5","guild_id":"6"}"#), [one]);
        assert_eq!(ids(r#"{"ids":["1","2"],"channel_id":"5"}"#), [one, two]);
    }

    #[test]
    fn of_an_unreadable_call_or_leaving_the_place_is_told() {
        #[track_caller]
        fn check(event_type: &str, data: &str, parts: &[&str]) {
            let found = event(&dispatch(event_type, data), &GuildState::default());
            let Some(Event::Unreadable(found)) = found else {
                panic!("it was read: {data}");
            };
            assert_eq!(found.event, event_type.to_ascii_lowercase());
            assert_eq!(found.guild, Some(GuildId::new(6)));
            assert_eq!(found.parts, parts);
        }
        check("GUILD_MEMBER_REMOVE", r#"{"guild_id":"6","user":7}"#, &[]);
        check(
            "INTERACTION_CREATE",
            r#"{"guild_id":"6","id":[]}"#,
            &["json"],
        );
        let nobody = r#"{"guild_id":"6","id":"1","application_id":"2","token":"t","type":2,
            "channel_id":"5","data":{"name":"help"}}"#;
        check("INTERACTION_CREATE", nobody, &["user"]);
    }

    #[test]
    fn of_an_unreadable_delete_the_rest_is_told() {
        #[track_caller]
        fn check(data: &str, channel: Option<u64>, message: Option<u64>, part: &str) {
            let found = deleted(&dispatch("MESSAGE_DELETE", data));
            let Event::MessagesMissed(found) = found else {
                panic!("it was read: {data}");
            };
            assert_eq!(found.event, "message_delete");
            assert_eq!(found.channel, channel.map(ChannelId::new));
            assert_eq!(found.message, message.map(MessageId::new));
            assert_eq!(found.parts, [part]);
        }
        check("7", None, None, "json");
        check(r#"{"id":"1","channel_id":{}}"#, None, Some(1), "channel_id");
        check(r#"{"id":[],"channel_id":"5"}"#, Some(5), None, "id");
        check(r#"{"ids":["1",{}],"channel_id":"5"}"#, Some(5), None, "id");
    }
}
