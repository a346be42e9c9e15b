//! Looks up what the asker may do in the trigger's channel if the caller does not
//! know, alongside the collectors and within their budget and deadline.

use futures_util::future::join3;

use crate::engine::access::judge;
use crate::model::{Access, Channel, Missing};

use super::Collector;
use super::fetch::Fetcher;
use super::source::Source;
use super::thread;

/// The result is never unknown: what cannot be found out counts as denied.
pub(super) async fn of_asker<S: Source>(by: &Collector<'_, S>) -> Access {
    let found = match by.turn.asker_access {
        Access::Unknown(Missing::Facts) => asked(by).await,
        known => Some(known),
    };
    let found = if by.turn.us.proxy_of(by.turn.trigger()).is_some() {
        found.map(Access::as_stranger)
    } else {
        found
    };
    match found {
        Some(Access::Unknown(Missing::Membership(rights))) => {
            let (thread, asker) = (by.turn.channel_id(), by.turn.request.asker());
            match by.fetcher.is_thread_member(thread, asker).await {
                Some(true) => Access::Allowed(rights),
                Some(false) | None => Access::Denied,
            }
        }
        Some(Access::Unknown(Missing::Facts)) | None => Access::Denied,
        Some(known) => known,
    }
}

/// Computed from the channel (a thread's parent), the server's roles, and the
/// asker's roles if the trigger did not include them.
async fn asked<S: Source>(by: &Collector<'_, S>) -> Option<Access> {
    let asker = by.turn.request.asker();
    let here = thread::channel(by).await?;
    if here.kind.is_direct() {
        return Some(Access::FULL);
    }
    let id = here.guild.or(by.turn.trigger().guild)?;
    let roles = async {
        match &by.turn.request.asker_roles {
            Some(roles) => Some(roles.clone()),
            None => by.fetcher.member_roles(id, asker).await,
        }
    };
    let (guild, roles, judged) =
        join3(by.fetcher.guild(id), roles, judged(&here, by.fetcher)).await;
    let access = judge(&guild?, asker, &roles?, &here, &judged?);
    // Somebody who writes in a private thread is a member of it.
    Some(if by.turn.asker_wrote_here() {
        access.as_member()
    } else {
        access
    })
}

/// The channel whose overwrites apply.
async fn judged<S: Source>(here: &Channel, fetcher: &Fetcher<'_, S>) -> Option<Channel> {
    if here.kind.is_thread() {
        return fetcher.channel(here.parent?).await;
    }
    match here.overwrites {
        Some(_) => Some(here.clone()),
        None => fetcher.channel(here.id).await,
    }
}
