//! Facts and settings as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde_json::Value;

use super::fields::{
    Fields, Form, FormError, NUMBER, Object, Reader, SWITCH, TEXT, TIME, Time, id, ids, parsed,
};
use crate::model::{Fact, GuildSettings, Origin, Subject};
use clew_context::model::{ChannelId, LinkContext, LoneContext, ReplyTarget};

impl Form for Fact {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        object.field("id", self.id.to_string())?;
        match self.subject {
            Subject::User(user) => {
                object.field("subject", "user")?;
                object.field("user", user)?;
            }
            Subject::Server(guild) => {
                object.field("subject", "server")?;
                object.field("server", guild)?;
            }
        }
        object.field("text", &self.text)?;
        let origin = match self.origin {
            Origin::Direct => "direct",
            Origin::Guild(_) => "guild",
            Origin::Everywhere => "everywhere",
        };
        object.field("origin", origin)?;
        object.maybe("origin_guild", self.origin.guild())?;
        object.field("by", self.by)?;
        object.field("at", Time(self.at))?;
        if let Some((channel, message)) = self.link {
            object.field("channel", channel)?;
            object.field("message", message)?;
        }
        object.field("pinned", self.pinned)?;
        object.field("seen", self.seen)?;
        object.field("last_used", Time(self.last_used))
    }
}

pub(super) fn read_fact_fields(fields: &Fields) -> Result<Fact, FormError> {
    let unfit = |field: &str, expected| FormError::Unfit {
        field: field.to_owned(),
        expected,
    };
    let subject = match fields.need("subject", TEXT)?.as_str() {
        "user" => Subject::User(fields.need("user", id())?),
        "server" => Subject::Server(fields.need("server", id())?),
        _ => return Err(unfit("subject", "`user` or `server`")),
    };
    let origin = match fields.need("origin", TEXT)?.as_str() {
        "direct" => Origin::Direct,
        "guild" => Origin::Guild(fields.need("origin_guild", id())?),
        "everywhere" => Origin::Everywhere,
        _ => return Err(unfit("origin", "`direct`, `guild` or `everywhere`")),
    };
    let channel = fields.maybe("channel", id())?;
    let message = fields.maybe("message", id())?;
    Ok(Fact {
        id: fields.need("id", parsed("the id of a fact"))?,
        subject,
        text: fields.need("text", TEXT)?,
        origin,
        by: fields.need("by", id())?,
        at: fields.need("at", TIME)?,
        link: channel.zip(message),
        pinned: fields.need("pinned", SWITCH)?,
        seen: fields.need("seen", SEEN)?,
        last_used: fields.need("last_used", TIME)?,
    })
}

impl Form for GuildSettings {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        let window = self.rolling_window;
        object.maybe("rolling_window_s", window.map(|window| window.as_secs()))?;
        // The part below a second, if any.
        let below = window.map(|window| window.subsec_nanos());
        object.maybe("rolling_window_ns", below.filter(|ns| *ns > 0))?;
        object.field("channels_off", &self.channels_off)?;
        object.field("channels_answered", &self.channels_answered)?;
        let target = self.reply_target.map(|target| match target {
            ReplyTarget::Newest => "newest",
            ReplyTarget::Trigger => "trigger",
        });
        object.maybe("reply_target", target)?;
        object.maybe("learning", self.learning)?;
        object.maybe(
            "link_context",
            self.link_context.map(|context| context.to_string()),
        )?;
        object.maybe("lone_context", self.lone_context.map(lone_word))?;
        let contexts = self.lone_contexts.iter();
        let contexts = contexts.map(|(channel, context)| (channel, lone_word(*context)));
        let contexts: BTreeMap<_, _> = contexts.collect();
        object.maybe(
            "lone_contexts",
            Some(contexts).filter(|contexts| !contexts.is_empty()),
        )
    }
}

pub(super) fn read_settings_fields(fields: &Fields) -> Result<GuildSettings, FormError> {
    let nanos = fields.maybe("rolling_window_ns", SEEN)?.unwrap_or_default();
    let seconds = fields.maybe("rolling_window_s", NUMBER)?;
    Ok(GuildSettings {
        rolling_window: seconds
            .map(|seconds| Duration::from_secs(seconds).saturating_add(nanoseconds(nanos))),
        channels_off: fields.maybe("channels_off", ids())?.unwrap_or_default(),
        channels_answered: fields
            .maybe("channels_answered", ids())?
            .unwrap_or_default(),
        reply_target: fields.maybe("reply_target", REPLY_TARGET)?,
        learning: fields.maybe("learning", SWITCH)?,
        link_context: fields.maybe("link_context", LINK_CONTEXT)?,
        lone_context: fields.maybe("lone_context", LONE_CONTEXT)?,
        lone_contexts: fields
            .maybe("lone_contexts", LONE_CONTEXTS)?
            .unwrap_or_default(),
    })
}

fn nanoseconds(nanos: u32) -> Duration {
    Duration::from_nanos(nanos.into())
}

const LINK_CONTEXT: Reader<LinkContext> = (
    |value| LinkContext::parse(value.as_str()?),
    "two numbers such as `3,1`",
);
const LONE_CONTEXT: Reader<LoneContext> = (read_lone_context, "`off`, `recent` or `conversation`");
const LONE_CONTEXTS: Reader<BTreeMap<ChannelId, LoneContext>> = (
    |value| {
        let channels = value.as_object()?.iter();
        let read = channels.map(|(id, value)| Some((id.parse().ok()?, read_lone_context(value)?)));
        read.collect()
    },
    "a Discord id each with `off`, `recent` or `conversation`",
);

const fn lone_word(context: LoneContext) -> &'static str {
    match context {
        LoneContext::Off => "off",
        LoneContext::Recent => "recent",
        LoneContext::Conversation => "conversation",
    }
}

fn read_lone_context(value: &Value) -> Option<LoneContext> {
    match value.as_str()? {
        "off" => Some(LoneContext::Off),
        "recent" => Some(LoneContext::Recent),
        "conversation" => Some(LoneContext::Conversation),
        _ => None,
    }
}

const REPLY_TARGET: Reader<ReplyTarget> = (
    |value| match value.as_str()? {
        "newest" => Some(ReplyTarget::Newest),
        "trigger" => Some(ReplyTarget::Trigger),
        _ => None,
    },
    "`newest` or `trigger`",
);
const SEEN: Reader<u32> = (
    |value: &Value| u32::try_from(value.as_u64()?).ok(),
    "a whole number",
);
