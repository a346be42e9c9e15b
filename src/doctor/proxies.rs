//! The apps through which people write: which of them are in a server.

use tokio::time::Instant;

use super::Finding;
use crate::config::Config;
use clew_context::model::{ProxyId, UserId};
use clew_discord::rest::{OwnGuild, Rest};

/// So often Discord is asked whether an app is in a server.
const MAX_ASKED: usize = 40;

/// What is to be said of `PROXY_APPS`, if it lists any.
pub(super) async fn found(
    config: &Config,
    rest: &Rest,
    guilds: &[OwnGuild],
    deadline: impl Fn() -> Instant,
) -> Option<Finding> {
    let triggers = &config.triggers;
    if triggers.proxies.is_empty() {
        return None;
    }
    let (mut known, mut others) = (Vec::new(), Vec::new());
    let mut left = MAX_ASKED;
    for app in triggers.proxies.iter() {
        match home(rest, app, guilds, &mut left, &deadline).await {
            Some(guild) => known.push(format!("{app} (in {})", guild.name)),
            None => others.push(app.to_string()),
        }
    }
    let wait = triggers.proxy_hold.as_millis();
    let mut found = format!("questions wait {wait} ms for copies by PROXY_APPS");
    if !known.is_empty() {
        found = format!("{found}: {}", known.join(", "));
    }
    if !others.is_empty() {
        let others = others.join(", ");
        found = format!("{found}; in no server that was looked at, as webhooks are: {others}");
    }
    Some(Finding::ok("proxies", found))
}

/// A server that an app is in, as far as it was looked for.
async fn home<'a>(
    rest: &Rest,
    app: ProxyId,
    guilds: &'a [OwnGuild],
    left: &mut usize,
    deadline: impl Fn() -> Instant,
) -> Option<&'a OwnGuild> {
    let user = UserId::new(app.get());
    for guild in guilds {
        *left = left.checked_sub(1)?;
        let is_member = rest.reader().is_member(guild.id, user, deadline()).await;
        if is_member.unwrap_or(false) {
            return Some(guild);
        }
    }
    None
}
