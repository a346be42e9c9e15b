//! What REST tells of ourselves, without a gateway session: `clew doctor` asks.

use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use super::{Rest, malformed};
use crate::invite::missing;
use clew_context::discord::error::RestError;
use clew_context::engine::access::judge;
use clew_context::model::{
    Access, ApplicationId, Channel, ChannelKind, Fallback, GuildId, UnixMillis, UserId,
};

/// Our application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Its id.
    pub id: ApplicationId,
    /// Its name.
    pub name: String,
    /// Its bot.
    pub bot: UserId,
    /// Whether the portal grants the message content intent.
    pub has_message_content: bool,
    /// Whether the portal grants the intent for members.
    pub has_members: bool,
}

/// A server that we are in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGuild {
    /// Its id.
    pub id: GuildId,
    /// Its name.
    pub name: String,
    /// The permissions of the invite link that our roles lack, by Discord's names.
    pub missing: Vec<&'static str>,
}

/// What we may read of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSurvey {
    /// How many channels people write in.
    pub channels: usize,
    /// The names of those whose messages we cannot read, though some overwrite may want it so.
    pub unreadable: Vec<String>,
}

#[derive(Deserialize)]
struct WireApplication {
    id: ApplicationId,
    #[serde(default)]
    name: String,
    #[serde(default)]
    flags: u64,
    bot: Option<WireBot>,
}

#[derive(Deserialize)]
struct WireBot {
    id: UserId,
}

#[derive(Deserialize)]
struct WireGuild {
    id: GuildId,
    #[serde(default)]
    name: String,
    #[serde(default)]
    permissions: String,
}

/// Flags of an application (Discord's reference, "Application Flags"): an intent is
/// granted, in full or for bots in fewer than 100 servers.
const MESSAGE_CONTENT: u64 = 1 << 18 | 1 << 19;
const MEMBERS: u64 = 1 << 14 | 1 << 15;

impl Rest {
    /// Our application (Get Current Application).
    ///
    /// # Errors
    /// Why there is no readable answer.
    pub async fn application(&self, deadline: Instant) -> Result<Application, RestError> {
        let wire: WireApplication = self.fetch("applications/@me", deadline).await?;
        Ok(Application {
            id: wire.id,
            name: wire.name,
            // Bots made since 2016 have their application's id.
            bot: wire.bot.map_or(UserId::new(wire.id.get()), |bot| bot.id),
            has_message_content: wire.flags & MESSAGE_CONTENT != 0,
            has_members: wire.flags & MEMBERS != 0,
        })
    }

    /// The servers that we are in, at most 200 (Get Current User Guilds).
    ///
    /// # Errors
    /// Why there is no readable answer.
    pub async fn own_guilds(&self, deadline: Instant) -> Result<Vec<OwnGuild>, RestError> {
        let wire: Vec<WireGuild> = self.fetch("users/@me/guilds", deadline).await?;
        let guilds = wire.into_iter().map(|guild| OwnGuild {
            id: guild.id,
            name: guild.name,
            missing: missing(guild.permissions.parse().unwrap_or(0)),
        });
        Ok(guilds.collect())
    }

    /// Which channels of a server we may read: three requests.
    ///
    /// # Errors
    /// Why there is no readable answer.
    pub async fn channel_survey(
        &self,
        guild: GuildId,
        bot: UserId,
        deadline: Instant,
    ) -> Result<ChannelSurvey, RestError> {
        let reader = self.reader();
        let roles = reader.member_roles(guild, bot, deadline).await?;
        let facts = reader.guild(guild, deadline).await?;
        let channels = reader.guild_channels(guild, deadline).await?;
        let of_messages: Vec<&Channel> = channels
            .iter()
            .filter(|channel| holds_messages(channel.kind))
            .collect();
        let is_closed = |channel: &&&Channel| {
            let access = judge(&facts, bot, &roles, channel, channel);
            !matches!(access, Access::Allowed(rights) if rights.read_history)
        };
        let closed = of_messages.iter().filter(is_closed);
        Ok(ChannelSurvey {
            channels: of_messages.len(),
            unreadable: closed.map(|channel| channel.name.clone()).collect(),
        })
    }

    /// Discord's clock, to the second, from the header of an answer.
    ///
    /// # Errors
    /// Why there is no answer; [`Fallback::Malformed`] if it tells no time.
    pub async fn server_time(&self, deadline: Instant) -> Result<UnixMillis, RestError> {
        let client = self.reader().client();
        let answer = timeout_at(deadline, client.gateway().into_future()).await;
        let answer = answer
            .map_err(|_| RestError::lasting(Fallback::Timeout))?
            .map_err(|error| RestError::of_twilight(&error))?;
        let mut headers = answer.headers();
        let date = headers.find(|(name, _)| name.eq_ignore_ascii_case("date"));
        let time =
            date.and_then(|(_, value)| UnixMillis::parse_http(std::str::from_utf8(value).ok()?));
        time.ok_or_else(malformed)
    }
}

const fn holds_messages(kind: ChannelKind) -> bool {
    matches!(
        kind,
        ChannelKind::Text
            | ChannelKind::Announcement
            | ChannelKind::Forum
            | ChannelKind::Media
            | ChannelKind::Voice
            | ChannelKind::Stage
    )
}
