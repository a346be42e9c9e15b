//! Facts and settings as JSON.

use std::time::Duration;

use serde::ser::SerializeMap;

use super::fields::{Field, Fields, Form, FormError, Object, form};
use crate::model::{Fact, GuildSettings, Origin, Subject};
use clew_context::model::{ChannelId, MessageId};

form! {
    Fact {
        id,
        subject: flat,
        text,
        origin: flat,
        by,
        at,
        link: flat,
        pinned,
        seen,
        last_used,
    }
    GuildSettings {
        rolling_window: flat,
        channels_off: whole,
        channels_answered: whole,
        reply_target,
        learning,
        link_context,
        lone_context,
        lone_contexts: list,
        place_context,
        buttons,
        programs,
        prompt,
        blocked: list,
        role_limits: list,
    }
}

impl Form for Subject {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        match self {
            Self::User(user) => {
                object.field("subject", "user")?;
                object.field("user", user)
            }
            Self::Server(guild) => {
                object.field("subject", "server")?;
                object.field("server", guild)
            }
        }
    }

    fn read(fields: &mut Fields) -> Result<Self, FormError> {
        match fields.need::<String>("subject")?.as_str() {
            "user" => Ok(Self::User(fields.need("user")?)),
            "server" => Ok(Self::Server(fields.need("server")?)),
            _ => Err(fields.unfit("subject", "`user` or `server`")),
        }
    }
}

impl Form for Origin {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        object.field("origin", self.as_str())?;
        self.guild().put("origin_guild", object)
    }

    fn read(fields: &mut Fields) -> Result<Self, FormError> {
        match fields.need::<String>("origin")?.as_str() {
            "direct" => Ok(Self::Direct),
            "guild" => Ok(Self::Guild(fields.need("origin_guild")?)),
            "everywhere" => Ok(Self::Everywhere),
            _ => Err(fields.unfit("origin", "`direct`, `guild` or `everywhere`")),
        }
    }
}

/// The message that a fact links to.
impl Form for Option<(ChannelId, MessageId)> {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        self.map(|(channel, _)| channel).put("channel", object)?;
        self.map(|(_, message)| message).put("message", object)
    }

    fn read(fields: &mut Fields) -> Result<Self, FormError> {
        let channel: Option<ChannelId> = fields.maybe("channel")?;
        Ok(channel.zip(fields.maybe("message")?))
    }
}

/// A rolling window: its seconds, and the part below a second, if any.
impl Form for Option<Duration> {
    fn write<M: SerializeMap>(&self, object: &mut Object<M>) -> Result<(), M::Error> {
        self.map(|window| window.as_secs())
            .put("rolling_window_s", object)?;
        let below = self.map(|window| window.subsec_nanos());
        below.filter(|ns| *ns > 0).put("rolling_window_ns", object)
    }

    fn read(fields: &mut Fields) -> Result<Self, FormError> {
        let nanos: Option<u32> = fields.maybe("rolling_window_ns")?;
        let below = Duration::from_nanos(nanos.unwrap_or_default().into());
        let seconds = fields.maybe("rolling_window_s")?;
        Ok(seconds.map(|seconds| Duration::from_secs(seconds).saturating_add(below)))
    }
}
