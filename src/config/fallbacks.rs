//! `LLM_FALLBACKS`: the servers that stand in for the first one.

use super::check::Checker;
use super::problem::Problem;
use super::server::{base_url, key, warn_about_path};
use super::{Endpoint, Variable, variable as var};
use clew_context::model::Secret;

/// The most further servers: the time for a whole answer is four time-outs, so each of
/// four servers can be waited for.
const MAX_FALLBACKS: usize = 3;

/// A further server.
#[derive(Debug, Clone, PartialEq)]
pub struct FallbackConfig {
    /// Its address, as that of `LLM_BASE_URL`.
    pub base_url: Endpoint,
    /// The model's name there.
    pub model: String,
    /// Its key; local servers need none.
    pub api_key: Option<Secret>,
}

/// Problems name an entry by its number and never show its text, which may hold a key.
pub(super) fn read(check: &mut Checker) -> Vec<FallbackConfig> {
    let variable = &var::LLM_FALLBACKS;
    let text = check.text(variable).unwrap_or_default().to_owned();
    let mut fallbacks = Vec::new();
    for (number, entry) in numbered(&text) {
        let Some(fallback) = fallback(entry) else {
            let accepted = "for each server its address as in LLM_BASE_URL, the model's name, and \
                its key in printable ASCII if it needs one, with spaces between; a comma between \
                servers";
            check.problem(wrong_entry(variable, number, accepted));
            continue;
        };
        warn_about_path(check, variable, &fallback.base_url);
        fallbacks.push(fallback);
    }
    if fallbacks.len() > MAX_FALLBACKS {
        let accepted = format!("at most {MAX_FALLBACKS} servers");
        check.problem(wrong_entry(variable, MAX_FALLBACKS + 1, &accepted));
    }
    fallbacks
}

fn fallback(entry: &str) -> Option<FallbackConfig> {
    let mut words = entry.split_whitespace();
    let (address, model) = (words.next()?, words.next()?);
    let api_key = match words.next() {
        Some(text) => Some(key(text)?),
        None => None,
    };
    if words.next().is_some() {
        return None;
    }
    Some(FallbackConfig {
        base_url: base_url(address)?,
        model: model.to_owned(),
        api_key,
    })
}

/// The entries of a list with commas or line breaks between them, numbered from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let entries = text.split([',', '\n']).map(str::trim);
    (1..).zip(entries.filter(|entry| !entry.is_empty()))
}

fn wrong_entry(variable: &Variable, number: usize, accepted: &str) -> Problem {
    let shown = format!("has an entry {number} that cannot be used");
    Problem::new(variable.name, shown, accepted)
}
