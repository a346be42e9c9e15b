//! Attached files, fetched only from Discord's own hosts.

use std::time::Duration;

use reqwest::{Client, Method, Url, redirect};
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::{RestReader, malformed};
use crate::discord::error::{ConnectError, RestError};
use crate::model::Fallback;
use crate::outside::{Http, Sending};

/// Where Discord stores attachments; nothing else is fetched for a prompt.
const HOSTS: [&str; 2] = ["cdn.discordapp.com", "media.discordapp.net"];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client without our token, cookies or redirects.
#[derive(Debug, Clone)]
pub(super) struct Files {
    http: Http,
    /// The simulator's address; its attachments are on this machine.
    loopback: Option<Address>,
}

impl Files {
    /// `sending`: what its client's requests go through.
    pub(super) fn new(address: Option<&Address>, sending: Sending) -> Result<Self, ConnectError> {
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .no_proxy()
            .build()
            .map_err(|_| ConnectError::Files)?;
        Ok(Self {
            http: Http::new(client).through(sending),
            loopback: address.filter(|address| address.loopback).cloned(),
        })
    }

    /// Its connections, for the API.
    pub(super) fn http(&self) -> Http {
        self.http.clone()
    }

    /// The file's first `max_bytes` bytes, and whether there are more.
    async fn first_bytes(
        &self,
        url: &str,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<(Vec<u8>, bool), RestError> {
        let url = Url::parse(url).map_err(|_| forbidden())?;
        if !self.allows(&url) {
            return Err(forbidden());
        }
        let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let bytes = timeout_at(deadline, self.bytes(url, max)).await;
        bytes.map_err(|_| RestError::lasting(Fallback::Timeout))?
    }

    fn allows(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let bare = url.username().is_empty() && url.password().is_none();
        let discords = url.scheme() == "https" && url.port().is_none() && HOSTS.contains(&host);
        let ours = self.loopback.as_ref().is_some_and(|address| {
            let port = url.port().map(|port| format!(":{port}"));
            let scheme = if address.plain { "http" } else { "https" };
            let authority = format!("{host}{}", port.unwrap_or_default());
            url.scheme() == scheme && address.authority == authority
        });
        bare && (discords || ours)
    }

    async fn bytes(&self, url: Url, max: usize) -> Result<(Vec<u8>, bool), RestError> {
        let broken = |_| RestError::broken();
        let response = self.http.send(self.http.request(Method::GET, url)).await;
        let mut response = response.map_err(|_| RestError::broken())?;
        if !response.status().is_success() {
            return Err(RestError::answered(response.status().as_u16(), b""));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            let room = max - bytes.len();
            if chunk.len() > room {
                bytes.extend_from_slice(&chunk[..room]);
                return Ok((bytes, true));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((bytes, false))
    }
}

impl RestReader {
    /// The text of an attached file, cut at `max_bytes`.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`] if the address is not on Discord's CDN,
    /// [`Fallback::Malformed`] if it is not UTF-8, otherwise like `page`.
    pub async fn file(
        &self,
        url: &str,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<String, RestError> {
        let (bytes, cut) = self.files.first_bytes(url, max_bytes, deadline).await?;
        utf8(bytes, cut).ok_or_else(malformed)
    }

    /// All bytes of an attached file, at most `max_bytes`, beyond which it is not read.
    ///
    /// # Errors
    /// [`Fallback::Forbidden`] if the address is not on Discord's CDN,
    /// [`Fallback::Malformed`] if there are more bytes, otherwise like `page`.
    pub async fn whole_file(
        &self,
        url: &str,
        max_bytes: u64,
        deadline: Instant,
    ) -> Result<Vec<u8>, RestError> {
        let (bytes, cut) = self.files.first_bytes(url, max_bytes, deadline).await?;
        if cut {
            return Err(malformed());
        }
        Ok(bytes)
    }
}

const fn forbidden() -> RestError {
    RestError::lasting(Fallback::Forbidden)
}

/// The bytes as text, if they are UTF-8; a character split by the cut is dropped.
fn utf8(mut bytes: Vec<u8>, cut: bool) -> Option<String> {
    if let Err(error) = std::str::from_utf8(&bytes) {
        let split = cut && error.error_len().is_none();
        if !split {
            return None;
        }
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_discords_own_hosts_are_asked() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let simulator = Address::parse("http://127.0.0.1:4000").unwrap();
        let files = Files::new(Some(&simulator), Sending::default()).unwrap();
        let check = |url: &str, expected: bool| {
            assert_eq!(files.allows(&Url::parse(url).unwrap()), expected, "{url}");
        };
        check(
            "https://cdn.discordapp.com/attachments/1/2/a.txt?ex=1",
            true,
        );
        check("https://media.discordapp.net/a", true);
        check("https://CDN.discordapp.com/a", true);
        check("http://cdn.discordapp.com/a", false);
        check("https://cdn.discordapp.com:8443/a", false);
        check("https://cdn.discordapp.com.evil.example/a", false);
        check("https://evil.example/cdn.discordapp.com", false);
        check("https://cdn.discordapp.com@evil.example/a", false);
        check("https://user@cdn.discordapp.com/a", false);
        check("http://127.0.0.1:4000/a", true);
        check("http://127.0.0.1:4001/a", false);
        check("http://169.254.169.254/latest", false);
        check("file:///etc/passwd", false);
        let public = Address::parse("http://proxy.example:80").unwrap();
        let files = Files::new(Some(&public), Sending::default()).unwrap();
        assert!(!files.allows(&Url::parse("http://proxy.example/a").unwrap()));
    }

    #[test]
    fn a_cut_splits_no_character() {
        let bytes = "aé".as_bytes();
        assert_eq!(utf8(bytes[..2].to_vec(), true).as_deref(), Some("a"));
        assert_eq!(utf8(bytes[..2].to_vec(), false), None);
        assert_eq!(utf8(vec![b'a', 0xff, b'b'], true), None);
        assert_eq!(utf8(bytes.to_vec(), true).as_deref(), Some("aé"));
    }
}
