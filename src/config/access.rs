//! Who may use the bot, and where.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::check::Checker;
use super::{Variable, variable as var};
use clew_context::model::{AccessRules, AllowList, ChannelId, GuildId, IdList, RoleId, UserId};

/// What a list names.
#[derive(Default)]
struct Named {
    guilds: BTreeSet<GuildId>,
    channels: BTreeSet<ChannelId>,
    users: BTreeSet<UserId>,
    roles: BTreeSet<RoleId>,
    direct_messages: bool,
}

pub(super) fn read(check: &mut Checker) -> AccessRules {
    let allowed = named(check, &var::ALLOWED);
    let denied = named(check, &var::DENIED);
    AccessRules {
        guilds: rule(allowed.guilds, denied.guilds),
        channels: rule(allowed.channels, denied.channels),
        users: rule(allowed.users, denied.users),
        roles: rule(allowed.roles, denied.roles),
        direct_messages: !denied.direct_messages,
    }
}

fn named(check: &mut Checker, variable: &Variable) -> Named {
    let accepted = format!("{}, each id 1 to 20 digits", variable.unit);
    let named = check.optional(variable, &accepted, |text| {
        let mut named = Named::default();
        let entries = text.split([',', ' ']).filter(|entry| !entry.is_empty());
        for entry in entries {
            // Allowed unless they are denied.
            if entry == "direct" && variable.name == var::DENIED.name {
                named.direct_messages = true;
                continue;
            }
            let (kind, id) = entry.split_once(':')?;
            match kind {
                "guild" => put(&mut named.guilds, id),
                "channel" => put(&mut named.channels, id),
                "user" => put(&mut named.users, id),
                "role" => put(&mut named.roles, id),
                _ => None,
            }?;
        }
        Some(named)
    });
    named.unwrap_or_default()
}

fn put<T: FromStr + Ord>(ids: &mut BTreeSet<T>, id: &str) -> Option<()> {
    ids.insert(id.parse().ok()?);
    Some(())
}

/// Of a kind of which nothing is named, everything is allowed.
fn rule<T>(named: BTreeSet<T>, denied: BTreeSet<T>) -> IdList<T> {
    let allowed = if named.is_empty() {
        AllowList::All
    } else {
        AllowList::Only(named)
    };
    IdList { allowed, denied }
}
