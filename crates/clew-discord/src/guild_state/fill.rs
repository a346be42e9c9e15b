//! Fetches over REST what `GUILD_CREATE` left out.

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::GuildState;
use super::partial::{PartialGuild, PartialMember};
use crate::rest::{RateLimitPool, Rest, malformed, text};
use clew_context::discord::error::RestError;
use clew_context::model::{ChannelId, GuildId, MessageId};

impl GuildState {
    /// Fetches a server with its roles, its channels, its active threads and
    /// our own member, in four or five requests, and replaces what was known.
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
        let get = |path: String| {
            rest.reader().get(
                format!("guilds/{guild}{path}"),
                RateLimitPool::Singles,
                deadline,
            )
        };
        let object = get(String::new()).await?;
        let channels = get("/channels".to_owned()).await?;
        let threads = get("/threads/active".to_owned()).await?;
        let mut filled: PartialGuild = read(&object)?;
        filled.channels = items(text(&channels)?)?;
        filled.threads = items(read::<ActiveThreads<'_>>(&threads)?.threads.get())?;
        if let Some(us) = self.current_user() {
            let member = get(format!("/members/{}", us.user)).await?;
            filled.members = vec![read::<PartialMember>(&member)?];
        }
        let newest = filled.newest_messages();
        let mut guilds = self.write();
        guilds.put(filled);
        guilds.hearing.told(guild);
        Ok(newest)
    }
}

#[derive(Deserialize)]
struct ActiveThreads<'a> {
    #[serde(borrow)]
    threads: &'a RawValue,
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, RestError> {
    serde_json::from_str(text(body)?).map_err(|_| malformed())
}

/// The readable items of an array.
fn items<T: serde::de::DeserializeOwned>(json: &str) -> Result<Vec<T>, RestError> {
    let items: Vec<&RawValue> = serde_json::from_str(json).map_err(|_| malformed())?;
    Ok(items
        .into_iter()
        .filter_map(|item| serde_json::from_str(item.get()).ok())
        .collect())
}
