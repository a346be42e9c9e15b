//! Who may use the bot, and where.

use std::str::FromStr;

use serde::Deserialize;

use super::check::Checker;
use super::{Variable, variable as var};
use clew_context::model::{AccessRules, AllowList, IdList};

#[derive(Default, Deserialize)]
struct RawAccess {
    allowed_guilds: Option<String>,
    denied_guilds: Option<String>,
    allowed_channels: Option<String>,
    denied_channels: Option<String>,
    allowed_users: Option<String>,
    denied_users: Option<String>,
    allowed_roles: Option<String>,
    denied_roles: Option<String>,
    direct_messages: Option<String>,
}

pub(super) fn read(check: &mut Checker) -> AccessRules {
    let raw: RawAccess = check.raw();
    AccessRules {
        guilds: IdList {
            allowed: allowed(check, &var::ALLOWED_GUILDS, raw.allowed_guilds),
            denied: check.ids(&var::DENIED_GUILDS, raw.denied_guilds),
        },
        channels: IdList {
            allowed: allowed(check, &var::ALLOWED_CHANNELS, raw.allowed_channels),
            denied: check.ids(&var::DENIED_CHANNELS, raw.denied_channels),
        },
        users: IdList {
            allowed: allowed(check, &var::ALLOWED_USERS, raw.allowed_users),
            denied: check.ids(&var::DENIED_USERS, raw.denied_users),
        },
        roles: IdList {
            allowed: allowed(check, &var::ALLOWED_ROLES, raw.allowed_roles),
            denied: check.ids(&var::DENIED_ROLES, raw.denied_roles),
        },
        direct_messages: check.switch(&var::DIRECT_MESSAGES, raw.direct_messages),
    }
}

fn allowed<T: FromStr + Ord>(
    check: &mut Checker,
    variable: &Variable,
    raw: Option<String>,
) -> AllowList<T> {
    match raw.as_deref() {
        None | Some("*") => AllowList::All,
        Some(_) => AllowList::Only(check.ids(variable, raw)),
    }
}
