//! Text frames into events: the envelope is opened without its content, and
//! only the event types in use are read further.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::discord::commands;
use crate::discord::convert::{self, Incoming, Unreadable};
use crate::discord::event::{Event, Ready};
use crate::discord::facts::{Facts, Us};
use crate::model::{ApplicationId, ChannelId, GuildId, MessageId, UserId};

/// Application flags that allow message content (Discord's reference,
/// "Application Flags": 1 << 18, and 1 << 19 for small bots).
const CONTENT_FLAGS: u64 = 1 << 18 | 1 << 19;

/// A text frame.
pub(super) enum Frame<'a> {
    /// Opcode 0.
    Dispatch(Dispatch<'a>),
    /// Opcode 10.
    Hello,
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
        _ => Some(Frame::Other),
    }
}

/// What an event tells the bot; nothing for types not in use.
pub(super) fn event(dispatch: &Dispatch<'_>, facts: &Facts) -> Option<Event> {
    let data = dispatch.data;
    match dispatch.event_type {
        "MESSAGE_CREATE" => Some(message(data, Event::Message)),
        "MESSAGE_UPDATE" => Some(message(data, Event::MessageEdited)),
        "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK" => Some(deleted(data)),
        "INTERACTION_CREATE" => commands::called(data).map(|call| Event::Called(Box::new(call))),
        other => facts.apply(other, data),
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
            Event::MessageUnreadable { channel, id }
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
            Event::MessageUnreadable {
                channel: None,
                id: None,
            }
        }
    }
}

/// Reads READY.
pub(super) fn ready(data: &str) -> Option<Ready> {
    let ready: WireReady = serde_json::from_str(data).ok()?;
    Some(Ready {
        user: ready.user.id,
        name: ready.user.username,
        application: ready.application.id,
        content_granted: ready.application.flags & CONTENT_FLAGS != 0,
        guilds: ready.guilds.iter().map(|guild| guild.id).collect(),
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
struct WireReady {
    user: WireUser,
    application: WireApplication,
    #[serde(default)]
    guilds: Vec<WireGuild>,
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
