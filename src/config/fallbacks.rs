//! `LLM_FALLBACKS`: the servers that stand in for the first one, and their keys.

use super::check::Checker;
use super::llm::{base_url, key, warn_about_path};
use super::problem::Problem;
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
    /// The key that `LLM_FALLBACK_KEYS` has for its host.
    pub api_key: Option<Secret>,
}

/// A host, with its port if the address has one, and the key for it.
type HostKey<'a> = (&'a str, Secret);

/// Reads both variables. Problems name an entry by its number and never show its text,
/// as a key may stand in the wrong place.
pub(super) fn read(
    check: &mut Checker,
    servers: Option<String>,
    keys: Option<String>,
) -> Vec<FallbackConfig> {
    let (servers, keys) = (servers.unwrap_or_default(), keys.unwrap_or_default());
    let mut fallbacks = read_servers(check, &servers);
    for (host, key) in read_keys(check, &keys, &fallbacks) {
        let of_host = fallbacks
            .iter_mut()
            .filter(|fallback| fallback.base_url.authority().eq_ignore_ascii_case(host));
        for fallback in of_host {
            fallback.api_key = Some(key.clone());
        }
    }
    fallbacks
}

fn read_servers(check: &mut Checker, text: &str) -> Vec<FallbackConfig> {
    let variable = &var::LLM_FALLBACKS;
    let mut fallbacks = Vec::new();
    for (number, entry) in numbered(text) {
        let Some(fallback) = fallback(entry) else {
            let accepted = "for each server its address as in LLM_BASE_URL, a space, and the \
                model's name; a comma between servers; keys in LLM_FALLBACK_KEYS";
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
    if words.next().is_some() {
        return None;
    }
    Some(FallbackConfig {
        base_url: base_url(address)?,
        model: model.to_owned(),
        api_key: None,
    })
}

fn read_keys<'a>(
    check: &mut Checker,
    text: &'a str,
    fallbacks: &[FallbackConfig],
) -> Vec<HostKey<'a>> {
    let variable = &var::LLM_FALLBACK_KEYS;
    let mut keys: Vec<HostKey<'a>> = Vec::new();
    for (number, entry) in numbered(text) {
        let Some((host, key)) = host_key(entry) else {
            let accepted = "for each key its server's host as in LLM_FALLBACKS, =, and the key \
                in printable ASCII; a comma between keys";
            check.problem(wrong_entry(variable, number, accepted));
            continue;
        };
        let is_host = |fallback: &FallbackConfig| {
            let authority = fallback.base_url.authority();
            authority.eq_ignore_ascii_case(host)
        };
        let is_known = fallbacks.iter().any(is_host);
        let is_new = !keys
            .iter()
            .any(|(other, _)| other.eq_ignore_ascii_case(host));
        if !is_known || !is_new {
            let accepted = "one key for each host (with its port, if it has one) that \
                LLM_FALLBACKS names";
            check.problem(wrong_entry(variable, number, accepted));
        }
        keys.push((host, key));
    }
    keys
}

fn host_key(entry: &str) -> Option<HostKey<'_>> {
    let (host, text) = entry.split_once('=')?;
    let (host, text) = (host.trim(), text.trim());
    if host.is_empty() || text.is_empty() {
        return None;
    }
    Some((host, key(text)?))
}

/// The entries of a list with commas or line breaks between them, numbered from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let entries = text.split([',', '\n']).map(str::trim);
    (1..).zip(entries.filter(|entry| !entry.is_empty()))
}

fn wrong_entry(variable: &Variable, number: usize, accepted: &str) -> Problem {
    Problem {
        subject: variable.name.to_owned(),
        shown: format!("has an entry {number} that cannot be used"),
        accepted: accepted.to_owned(),
    }
}
