//! Facts and settings as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::fields::{Fields, FormError, NUMBER, Reader, SWITCH, TEXT, TIME, Time, id, ids, parsed};
use crate::model::{Fact, GuildSettings, Origin, Subject};
use clew_context::model::{
    ChannelId, GuildId, LinkContext, LoneContext, MessageId, ReplyTarget, UserId,
};

#[derive(Serialize)]
pub(super) struct FactForm<'a> {
    id: String,
    subject: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<GuildId>,
    text: &'a str,
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_guild: Option<GuildId>,
    by: UserId,
    at: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<ChannelId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageId>,
    pinned: bool,
    seen: u32,
    last_used: Time,
}

impl<'a> FactForm<'a> {
    pub(super) fn of(fact: &'a Fact) -> Self {
        let (subject, user, server) = match fact.subject {
            Subject::User(user) => ("user", Some(user), None),
            Subject::Server(guild) => ("server", None, Some(guild)),
        };
        let (origin, origin_guild) = match fact.origin {
            Origin::Direct => ("direct", None),
            Origin::Guild(guild) => ("guild", Some(guild)),
            Origin::Everywhere => ("everywhere", None),
        };
        Self {
            id: fact.id.to_string(),
            subject,
            user,
            server,
            text: &fact.text,
            origin,
            origin_guild,
            by: fact.by,
            at: Time(fact.at),
            channel: fact.link.map(|(channel, _)| channel),
            message: fact.link.map(|(_, message)| message),
            pinned: fact.pinned,
            seen: fact.seen,
            last_used: Time(fact.last_used),
        }
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

#[derive(Serialize)]
pub(super) struct SettingsForm<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    rolling_window_s: Option<u64>,
    /// The part below a second, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    rolling_window_ns: Option<u32>,
    channels_off: Vec<&'a ChannelId>,
    channels_answered: Vec<&'a ChannelId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_target: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    learning: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lone_context: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    lone_contexts: BTreeMap<&'a ChannelId, &'static str>,
}

impl<'a> SettingsForm<'a> {
    pub(super) fn of(settings: &'a GuildSettings) -> Self {
        let window = settings.rolling_window;
        Self {
            rolling_window_s: window.map(|window| window.as_secs()),
            rolling_window_ns: window
                .map(|window| window.subsec_nanos())
                .filter(|ns| *ns > 0),
            channels_off: settings.channels_off.iter().collect(),
            channels_answered: settings.channels_answered.iter().collect(),
            reply_target: settings.reply_target.map(|target| match target {
                ReplyTarget::Newest => "newest",
                ReplyTarget::Trigger => "trigger",
            }),
            learning: settings.learning,
            link_context: settings.link_context.map(|context| context.to_string()),
            lone_context: settings.lone_context.map(lone_word),
            lone_contexts: settings
                .lone_contexts
                .iter()
                .map(|(channel, context)| (channel, lone_word(*context)))
                .collect(),
        }
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
