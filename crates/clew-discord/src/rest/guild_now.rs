//! What the gateway would tell of ourselves and of a server, asked for at once.

use futures_util::future::try_join4;
use serde::Deserialize;
use tokio::time::Instant;

use super::{Rest, malformed};
use crate::guild_state::{
    CurrentUser, PartialChannel, PartialGuild, PartialMember, PartialThreadMember,
};
use crate::lenient::each;
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, GuildId, UserId};

#[derive(Deserialize)]
struct WireUser {
    id: UserId,
    username: String,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct WireChannels(#[serde(deserialize_with = "each")] Vec<PartialChannel>);

#[derive(Deserialize)]
struct WireThreads {
    #[serde(deserialize_with = "each")]
    threads: Vec<PartialChannel>,
    /// Our memberships.
    #[serde(default, deserialize_with = "each")]
    members: Vec<WireThreadMember>,
}

#[derive(Deserialize)]
struct WireThreadMember {
    id: ChannelId,
}

impl Rest {
    /// Who we are: two requests.
    ///
    /// # Errors
    /// Why there is no readable answer.
    pub async fn current_user(&self, deadline: Instant) -> Result<CurrentUser, RestError> {
        let wire: WireUser = self.fetch("users/@me", deadline).await?;
        Ok(CurrentUser {
            user: wire.id,
            name: wire.username,
            application: self.application(deadline).await?.id,
        })
    }

    /// What a member is called in a server.
    ///
    /// # Errors
    /// [`Fallback::NotFound`](clew_context::model::Fallback::NotFound) if they are none; otherwise
    /// why there is no readable answer.
    pub async fn member_name(
        &self,
        guild: GuildId,
        user: UserId,
        deadline: Instant,
    ) -> Result<String, RestError> {
        let path = format!("guilds/{guild}/members/{user}");
        let PartialMember { user, nick, .. } = self.fetch(&path, deadline).await?;
        Ok(nick.or(user.global_name).unwrap_or(user.username))
    }

    /// A server with its roles, channels and active threads, and of its members us: four
    /// requests at once.
    ///
    /// # Errors
    /// Why one of them has no readable answer.
    pub async fn guild_now(
        &self,
        id: GuildId,
        us: UserId,
        deadline: Instant,
    ) -> Result<PartialGuild, RestError> {
        let paths = ["", "/channels", "/threads/active"].map(|path| format!("guilds/{id}{path}"));
        let our = format!("guilds/{id}/members/{us}");
        let fetched = try_join4(
            self.fetch::<PartialGuild>(&paths[0], deadline),
            self.fetch::<WireChannels>(&paths[1], deadline),
            self.fetch::<WireThreads>(&paths[2], deadline),
            self.fetch::<PartialMember>(&our, deadline),
        );
        let (guild, channels, active, our) = fetched.await?;
        let mut threads = active.threads;
        for thread in &mut threads {
            let is_ours = active.members.iter().any(|member| member.id == thread.id);
            thread.member = is_ours.then(PartialThreadMember::default);
        }
        let whole = PartialGuild {
            channels: channels.0,
            threads,
            members: vec![our],
            ..guild
        };
        let is_usable = whole.id == id && whole.missing().is_empty();
        is_usable.then_some(whole).ok_or_else(malformed)
    }
}
