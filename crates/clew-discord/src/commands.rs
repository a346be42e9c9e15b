//! Commands: registering their definitions, and reading calls of them. Which there
//! are and what they do is the bot's.

mod definitions;
mod interaction;
mod same;

use std::time::Duration;

use tokio::time::Instant;
use twilight_http::request::{Method, RequestBuilder};
use twilight_model::application::command::Command;

pub use interaction::parse;

use self::same::same;
use super::rest::{RateLimitPool, Rest, build, malformed};
use crate::model::CommandSpec;
use clew_context::discord::error::RestError;
use clew_context::model::{ApplicationId, GuildId};

/// How long listing and setting them may take together.
const PATIENCE: Duration = Duration::from_secs(30);

/// Registers these commands, and no others, if they differ from those registered, in one server
/// (which takes effect at once) or everywhere. Returns whether they differed.
///
/// # Errors
/// Discord's refusal; the bot carries on without commands.
pub async fn register(
    rest: &Rest,
    application: ApplicationId,
    guild: Option<GuildId>,
    commands: &[CommandSpec],
) -> Result<bool, RegisterError> {
    let path = match guild {
        Some(guild) => format!("applications/{application}/guilds/{guild}/commands"),
        None => format!("applications/{application}/commands"),
    };
    let everywhere = guild.is_none();
    let wanted = commands.iter();
    let wanted = wanted.map(|spec| definitions::command(spec, everywhere));
    let wanted: Vec<_> = wanted.collect();
    let (pool, deadline) = (RateLimitPool::Aside, Instant::now() + PATIENCE);
    let registered = rest.reader().get(path.clone(), pool, deadline).await;
    let registered = registered.map_err(RegisterError::List)?;
    // A list we cannot read counts as different.
    let registered: Vec<Command> = serde_json::from_slice(&registered).unwrap_or_default();
    if same(&registered, &wanted, everywhere) {
        return Ok(false);
    }
    let body = serde_json::to_vec(&wanted).map_err(|_| RegisterError::Set(malformed()))?;
    let request = build(RequestBuilder::raw(Method::Put, path).body(body));
    let request = request.map_err(RegisterError::Set)?;
    let set = rest.reader().call(request, pool, deadline).await;
    set.map_err(RegisterError::Set)?;
    Ok(true)
}

/// Why the commands could not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Listing the registered commands failed.
    #[error("cannot list the registered commands")]
    List(#[source] RestError),
    /// Replacing them failed.
    #[error("cannot register the commands")]
    Set(#[source] RestError),
}
