//! An API address other than Discord's own.

use reqwest::Url;

use crate::discord::error::ConnectError;

/// Where the API is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// `host:port` without a scheme, as twilight expects it.
    pub(super) authority: String,
    /// Whether to connect without TLS.
    pub(super) plain: bool,
    /// Whether it is this machine: then it is a simulator, whose files may be fetched too.
    pub(super) loopback: bool,
}

impl Address {
    /// Parses `http://host:port`. A path of `/api` or `/api/v10` is dropped, since
    /// every request adds it.
    pub(super) fn parse(text: &str) -> Result<Self, ConnectError> {
        // Do not repeat what may be a login.
        let shown = if text.contains(['@', '?', '#']) {
            "[an address with a login or a key]"
        } else {
            text
        };
        let wrong = || ConnectError::ApiUrl(shown.to_owned());
        let url = Url::parse(text).map_err(|_| wrong())?;
        let plain = match url.scheme() {
            "http" => true,
            "https" => false,
            _ => return Err(wrong()),
        };
        let path_is_ours = matches!(url.path().trim_end_matches('/'), "" | "/api" | "/api/v10");
        let bare = url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| path_is_ours && bare);
        let host = host.ok_or_else(wrong)?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Ok(Self {
            authority,
            plain,
            loopback: matches!(host, "localhost" | "127.0.0.1" | "[::1]"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_not_repeated() {
        for text in [
            "http://me:hush@host",
            "http://host/?key=hush",
            "me:hush@host",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hush"), "{text}");
        }
        let error = Address::parse("ws://host").unwrap_err().to_string();
        assert!(error.contains("ws://host"), "{error}");
    }

    #[test]
    fn an_address_is_host_and_port() {
        #[track_caller]
        fn check(text: &str, expected: Option<(&str, bool, bool)>) {
            let address = Address::parse(text).ok();
            let address = address.as_ref();
            let read = address.map(|read| (&*read.authority, read.plain, read.loopback));
            assert_eq!(read, expected, "{text}");
        }
        check(
            "http://127.0.0.1:4000",
            Some(("127.0.0.1:4000", true, true)),
        );
        check(
            "http://127.0.0.1:4000/api/v10/",
            Some(("127.0.0.1:4000", true, true)),
        );
        check("http://[::1]:4000", Some(("[::1]:4000", true, true)));
        check(
            "https://proxy.example",
            Some(("proxy.example", false, false)),
        );
        check("http://proxy:3000/", Some(("proxy:3000", true, false)));
        check("ws://127.0.0.1:4000", None);
        check("127.0.0.1:4000", None);
        check("http://host/elsewhere", None);
        check("http://me:secret@host", None);
        check("", None);
    }
}
