//! The address and the key of a model server.

use super::check::Checker;
use super::{Endpoint, Variable};
use clew_context::model::Secret;

pub(super) fn warn_about_path(check: &mut Checker, variable: &Variable, base_url: &Endpoint) {
    if !base_url.path().ends_with("/v1") {
        check.warn(format!(
            "{} does not end in /v1; requests go to {base_url}/chat/completions",
            variable.name
        ));
    }
}

/// A bare host gets `/v1`, where every server of the kind has its API.
pub(super) fn base_url(text: &str) -> Option<Endpoint> {
    let endpoint = Endpoint::parse(text, &["http", "https"])?;
    match endpoint.path() {
        "" => Some(endpoint.with_path("/v1")),
        path if path.ends_with("/completions") => None,
        _ => Some(endpoint),
    }
}

/// The key is sent in a header, which cannot carry other characters.
pub(super) fn key(text: &str) -> Option<Secret> {
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    printable.then(|| Secret::new(text))
}
