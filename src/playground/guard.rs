//! Who may use the page's server. Another page in the same browser can send requests here,
//! too: it does not know the token, its `Origin` is another, and its host may be a name that
//! was made to point here.

use std::net::{IpAddr, SocketAddr};

use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, Uri};
use uuid::Uuid;

use super::error::{Answer, ApiError};
use super::page::PageFile;

/// The header with the token.
pub(super) const TOKEN_HEADER: &str = "x-clew-token";

/// The port that browsers leave out.
const HTTP_PORT: u16 = 80;

/// What every answer says to the browser: which scripts and styles may run, that nobody may
/// frame or embed it, that types are as told.
pub(super) const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
         connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (header::CACHE_CONTROL, "no-store"),
];

/// The page's token, and where the page is.
#[derive(Debug)]
pub(super) struct PageToken {
    token: String,
    address: SocketAddr,
}

impl PageToken {
    /// A new token: 122 random bits.
    pub(super) fn new(address: SocketAddr) -> Self {
        let token = Uuid::new_v4().simple().to_string();
        Self { token, address }
    }

    /// The link to the page. It carries the token, since other accounts of this machine can
    /// connect, too.
    pub(super) fn link(&self) -> String {
        format!("http://{}/?token={}", self.address, self.token)
    }

    /// Checks a request. The page's scripts and styles need no token; the page takes it from
    /// its link, and puts it into a header of all else that it asks for.
    pub(super) fn check(&self, request: &Request) -> Answer<()> {
        let headers = request.headers();
        self.check_host(headers)?;
        self.check_origin(request.method(), headers)?;
        let given = headers.get(TOKEN_HEADER).map(HeaderValue::as_bytes);
        let uri = request.uri();
        let may = given.is_some_and(|given| self.fits(given))
            || PageFile::find(uri.path()).is_some_and(|file| !file.is_page() || self.is_in(uri));
        if may {
            Ok(())
        } else {
            Err(ApiError::forbidden(
                "the token is missing or old: open the link that `clew playground` printed",
            ))
        }
    }

    /// The `Host` must be our address: a name that was made to point here is not.
    fn check_host(&self, headers: &HeaderMap) -> Answer<()> {
        let host = headers.get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        if self.is_ours(host) {
            Ok(())
        } else {
            Err(ApiError::forbidden(
                "this is not the page's address: open the link that `clew playground` printed",
            ))
        }
    }

    fn check_origin(&self, method: &Method, headers: &HeaderMap) -> Answer<()> {
        let foreign = || ApiError::forbidden("only the playground's own page may ask here");
        let text = |name: &str| Some(headers.get(name)?.to_str().unwrap_or("?"));
        if let Some(origin) = text("origin") {
            let host = origin.strip_prefix("http://").ok_or_else(foreign)?;
            if !self.is_ours(host) {
                return Err(foreign());
            }
        }
        match text("sec-fetch-site") {
            // `none`: typed, or opened from a bookmark.
            None | Some("same-origin" | "none") => Ok(()),
            // A link to the page, which is only shown.
            Some(_) if method == Method::GET && text("sec-fetch-mode") == Some("navigate") => {
                Ok(())
            }
            Some(_) => Err(foreign()),
        }
    }

    /// Whether a host and port are ours: the address, or `localhost` if that is loopback.
    /// Listening on all addresses, any address of this machine will do, but no name.
    fn is_ours(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            // An IPv6 address ends with a bracket.
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(HTTP_PORT)),
        };
        let own = self.address.ip();
        let is_here = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(named) => named == own || own.is_unspecified(),
            Err(_) => name == "localhost" && own.is_loopback(),
        };
        is_here && port == Some(self.address.port())
    }

    fn is_in(&self, uri: &Uri) -> bool {
        let mut pairs = uri.query().unwrap_or_default().split('&');
        pairs.any(|pair| {
            let given = pair.strip_prefix("token=");
            given.is_some_and(|given| self.fits(given.as_bytes()))
        })
    }

    /// Compares in a time that says nothing about where they differ.
    fn fits(&self, given: &[u8]) -> bool {
        let own = self.token.as_bytes();
        let differences = own.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == given.len() && differences == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, host: &str, expected: bool) {
        let token = PageToken::new(address.parse().unwrap());
        assert_eq!(token.is_ours(host), expected, "{host} at {address}");
    }

    #[test]
    fn hosts_are_addresses_of_this_machine_or_localhost() {
        check("127.0.0.1:8000", "127.0.0.1:8000", true);
        check("127.0.0.1:8000", "localhost:8000", true);
        check("127.0.0.1:8000", "127.0.0.1", false);
        check("127.0.0.1:8000", "127.0.0.2:8000", false);
        check("127.0.0.1:8000", "clew.example:8000", false);
        check("127.0.0.1:80", "127.0.0.1", true);
        check("127.0.0.1:80", "localhost", true);
        check("[::1]:80", "[::1]", true);
        check("[::1]:8000", "[::1]:8000", true);
        check("0.0.0.0:8000", "192.0.2.7:8000", true);
        check("0.0.0.0:8000", "localhost:8000", false);
        check("0.0.0.0:8000", "", false);
    }
}
