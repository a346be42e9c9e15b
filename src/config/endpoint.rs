//! Addresses of servers.

use std::fmt;

use crate::model::without_keys;

/// A checked URL without user name, query or fragment.
///
/// `Display` and `Debug` are for people to read: parts of the path that look like keys are
/// left out.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    scheme: &'static str,
    authority: String,
    path: String,
}

impl Endpoint {
    /// The whole address, for requests; not to be shown.
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.authority, self.path)
    }

    /// The path without a trailing slash: empty, or starting with a slash.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The host without brackets, and the port.
    #[cfg(feature = "otel")]
    pub fn host_and_port(&self) -> (&str, u16) {
        let usual = if matches!(self.scheme, "https" | "wss") {
            443
        } else {
            80
        };
        let (host, port) = match self.authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(usual)),
            _ => (self.authority.as_str(), usual),
        };
        (host.trim_matches(['[', ']']), port)
    }

    /// The same server with another path.
    pub(super) fn with_path(self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            ..self
        }
    }

    /// Parses a URL with one of these schemes. A user name or password is refused,
    /// since addresses are logged.
    pub(super) fn parse(text: &str, schemes: &[&'static str]) -> Option<Self> {
        // The parser takes white space for part of the path.
        if text.contains(char::is_whitespace) {
            return None;
        }
        let url = reqwest::Url::parse(text).ok()?;
        let scheme = schemes.iter().find(|scheme| **scheme == url.scheme())?;
        let plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !plain {
            return None;
        }
        let host = url.host_str()?;
        Some(Self {
            scheme,
            authority: match url.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            },
            path: url.path().trim_end_matches('/').to_owned(),
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_keys(&self.url()))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
