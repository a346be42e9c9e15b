//! Where conversations are kept, who shares them, and for how long.

use std::time::Duration;

use super::Variable;
use super::check::Checker;
use super::problem::Problem;
use super::variable as var;
use clew_store::model::{ScopeKind, StoreAddress};

/// The longest time that a setting in days accepts: a century.
const LONGEST_DAYS: u64 = 36_500;
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

/// A span of days; none for none.
pub(super) fn days(check: &mut Checker, variable: &Variable) -> Option<Duration> {
    let days: u64 = check.number(variable, 0..=LONGEST_DAYS);
    (days > 0).then(|| Duration::from_hours(days * 24))
}

fn word(scope: ScopeKind) -> &'static str {
    let found = SCOPES.iter().find(|(_, kind)| *kind == scope);
    found.map_or("", |(word, _)| word)
}
