//! Where conversations are kept, who shares them, and for how long.

use std::time::Duration;

use super::check::Checker;
use super::problem::Problem;
use super::variable::{self as var, Variable};
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

/// `CONTEXT_STORE` and `CONTEXT_SCOPE`, which must fit each other.
pub(super) fn read(check: &mut Checker) -> (StoreAddress, ScopeKind) {
    let store = check.optional(&var::CONTEXT_STORE, StoreAddress::FORMS, |text| {
        text.parse().ok()
    });
    let scope = check.one_of(&var::CONTEXT_SCOPE, &SCOPES);
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
    Duration::from_secs(check.number(&var::CONTEXT_ROLLING_WINDOW_S, 1..=LONGEST_WINDOW_S))
}

/// A time in days; none if it is 0.
pub(super) fn limit_in_days(check: &mut Checker, variable: &Variable) -> Option<Duration> {
    let time = days(check, variable);
    (!time.is_zero()).then_some(time)
}

/// A time in days.
pub(super) fn days(check: &mut Checker, variable: &Variable) -> Duration {
    let days: u64 = check.number(variable, 0..=LONGEST_DAYS);
    Duration::from_hours(days * 24)
}

fn word(scope: ScopeKind) -> &'static str {
    let found = SCOPES.iter().find(|(_, kind)| *kind == scope);
    found.map_or("", |(word, _)| word)
}
