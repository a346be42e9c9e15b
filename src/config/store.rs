//! Where conversations are kept, who shares them, and for how long.

use std::time::Duration;

use serde::Deserialize;

use super::check::Checker;
use super::problem::Problem;
use super::variable as var;
use clew_store::model::{ScopeKind, StoreAddress};

/// The longest time that a setting in days accepts: a century.
const LONGEST_DAYS: u64 = 36_500;
/// The longest rolling window, in seconds: ten years.
const LONGEST_WINDOW_S: u64 = 10 * 366 * 24 * 60 * 60;
/// The values of `CONTEXT_SCOPE`, the default first.
const SCOPES: [(&str, ScopeKind); 3] = [
    ("member", ScopeKind::Member),
    ("thread", ScopeKind::Thread),
    ("user", ScopeKind::User),
];

#[derive(Default, Deserialize)]
struct RawStore {
    context_store: Option<String>,
    context_scope: Option<String>,
    context_rolling_window_s: Option<String>,
    retention_days: Option<String>,
    guild_retention_days: Option<String>,
    receipt_days: Option<String>,
}

/// `CONTEXT_STORE` and `CONTEXT_SCOPE`, which must fit each other.
pub(super) fn read(check: &mut Checker) -> (StoreAddress, ScopeKind) {
    let raw: RawStore = check.raw();
    let store = check.optional(
        &var::CONTEXT_STORE,
        raw.context_store,
        StoreAddress::FORMS,
        |text| text.parse().ok(),
    );
    let scope = check.one_of(&var::CONTEXT_SCOPE, raw.context_scope, &SCOPES);
    match &store {
        Some(StoreAddress::Postgres(url)) if !cfg!(feature = "postgres") => {
            check.problem(Problem::value(
                &var::CONTEXT_STORE,
                url.expose(),
                "sqlite:PATH or files:DIR, since this build is without PostgreSQL; \
                 build with `--features postgres`",
            ));
        }
        Some(StoreAddress::Files(_)) if scope != ScopeKind::Member => {
            check.problem(Problem::value(
                &var::CONTEXT_SCOPE,
                word(scope),
                "member, since CONTEXT_STORE is files:DIR; another scope needs a database",
            ));
        }
        _ => {}
    }
    // If there is no value, there is a problem, and nobody will see this one.
    let store = store.unwrap_or_else(|| StoreAddress::Files(std::path::PathBuf::new()));
    (store, scope)
}

/// `CONTEXT_ROLLING_WINDOW_S`.
pub(super) fn rolling_window(check: &mut Checker) -> Duration {
    let raw: RawStore = check.raw();
    Duration::from_secs(check.number(
        &var::CONTEXT_ROLLING_WINDOW_S,
        raw.context_rolling_window_s,
        1..=LONGEST_WINDOW_S,
    ))
}

/// `RETENTION_DAYS`; none if data is kept indefinitely.
pub(super) fn retention(check: &mut Checker) -> Option<Duration> {
    let raw: RawStore = check.raw();
    let days = check.number(&var::RETENTION_DAYS, raw.retention_days, 0..=LONGEST_DAYS);
    (days > 0).then(|| days_long(days))
}

/// `RECEIPT_DAYS`; none if no receipts are kept.
pub(super) fn receipts(check: &mut Checker) -> Option<Duration> {
    let raw: RawStore = check.raw();
    let days = check.number(&var::RECEIPT_DAYS, raw.receipt_days, 0..=LONGEST_DAYS);
    (days > 0).then(|| days_long(days))
}

/// `GUILD_RETENTION_DAYS`.
pub(super) fn guild_retention(check: &mut Checker) -> Duration {
    let raw: RawStore = check.raw();
    days_long(check.number(
        &var::GUILD_RETENTION_DAYS,
        raw.guild_retention_days,
        0..=LONGEST_DAYS,
    ))
}

const fn days_long(days: u64) -> Duration {
    Duration::from_hours(days * 24)
}

fn word(scope: ScopeKind) -> &'static str {
    let found = SCOPES.iter().find(|(_, kind)| *kind == scope);
    found.map_or("", |(word, _)| word)
}
