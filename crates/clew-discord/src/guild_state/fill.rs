//! Fetches over REST what `GUILD_CREATE` left out.

use tokio::time::Instant;

use super::GuildState;
use crate::rest::{Rest, malformed};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, GuildId, MessageId};

impl GuildState {
    /// Fetches a server with its roles, its channels, its active threads and
    /// our own member, and replaces what was known.
    /// Unreadable items are skipped. Returns the newest message of each channel.
    ///
    /// # Errors
    /// The reason of the first request that failed; what was known then stays.
    pub async fn fill(
        &self,
        rest: &Rest,
        guild: GuildId,
        deadline: Instant,
    ) -> Result<Vec<(ChannelId, MessageId)>, RestError> {
        // The event that left something out came after READY, which names us.
        let us = self.current_user().ok_or_else(malformed)?.user;
        let filled = rest.guild_now(guild, us, deadline).await?;
        let newest = filled.newest_messages();
        let mut guilds = self.write();
        guilds.put(filled);
        guilds.hearing.told(guild);
        Ok(newest)
    }
}
