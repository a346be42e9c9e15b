//! Errors of requests to Discord.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::collect::FetchError;
use crate::model::Fallback;

#[cfg(feature = "twilight")]
mod client;

/// A request that failed, or that was abandoned at its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Discord request failed: {reason}{}", Details(self))]
pub struct RestError {
    /// The reason, from the closed set.
    pub reason: Fallback,
    /// Whether an immediate retry is worthwhile: a server error or a broken connection.
    pub transient: bool,
    /// Whether Discord rejects the token (401): then nothing will succeed.
    pub unauthorized: bool,
    /// The HTTP status, if there was an answer and it is known.
    pub status: Option<u16>,
    /// After a rate limit, how long Discord told us to wait, if it did.
    pub retry_after: Option<Duration>,
    /// Discord's JSON error code, if the answer has one.
    pub code: Option<u64>,
    /// Whether the answer complains about `message_reference`.
    pub about_reference: bool,
    /// Why there was no answer, if known.
    pub unreached: Option<Unreached>,
}

/// Why Discord could not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    /// DNS does not know the host, or does not answer.
    #[error("the name of the server cannot be resolved")]
    Name,
    /// Nothing listens there.
    #[error("the connection was refused")]
    Refused,
    /// There is no network, or no route to the host.
    #[error("there is no way through the network to the server")]
    Network,
    /// TLS: the certificate is not accepted, or the server does not speak TLS.
    #[error(
        "no encrypted connection came about: the certificate is not accepted, or it is no TLS server"
    )]
    Tls,
    /// The connection broke before the answer was complete.
    #[error("the connection broke off")]
    BrokenOff,
}

/// Displays status, code and cause.
struct Details<'a>(&'a RestError);

impl fmt::Display for Details<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RestError {
            status,
            code,
            unreached,
            ..
        } = self.0;
        if let Some(status) = status {
            write!(f, ", status {status}")?;
        }
        if let Some(code) = code {
            write!(f, ", code {code}")?;
        }
        match unreached {
            Some(unreached) => write!(f, ": {unreached}"),
            None => Ok(()),
        }
    }
}

/// The client could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The token cannot be sent in a header. The error does not show it.
    #[error("the Discord token is empty or has characters that no token has")]
    Token,
    /// The address of the API cannot be used.
    #[error("`{0}` is no address of a Discord API: http://host:port or https://host")]
    ApiUrl(String),
    /// The client for attached files could not be built.
    #[error("cannot set up the client for attached files")]
    Files,
}

/// The JSON error codes that our rules use (Discord's reference, "JSON Error Codes").
mod code {
    pub(super) const UNKNOWN_CHANNEL: u64 = 10_003;
    pub(super) const UNKNOWN_MESSAGE: u64 = 10_008;
    pub(super) const EDITS_OF_OLD_MESSAGES: u64 = 30_046;
    pub(super) const UNKNOWN_MEMBER: u64 = 10_007;
    pub(super) const UNKNOWN_USER: u64 = 10_013;
    pub(super) const MISSING_ACCESS: u64 = 50_001;
    pub(super) const CANNOT_SEND_TO_USER: u64 = 50_007;
    pub(super) const MISSING_PERMISSIONS: u64 = 50_013;
    pub(super) const THREAD_ARCHIVED: u64 = 50_083;
    pub(super) const REPLY_WITHOUT_HISTORY: u64 = 160_002;
    pub(super) const THREAD_LOCKED: u64 = 160_005;
}

/// Discord's error object, the fields we read.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Body {
    code: u64,
    errors: serde_json::Map<String, serde_json::Value>,
}

impl RestError {
    /// Whether it is a 429 that passes: one of a route, of everything, or of what a channel or a
    /// server writes (codes 20028, 20029), but not that a message is too old to be edited so often.
    pub fn is_limit(&self) -> bool {
        self.reason == Fallback::RateLimited && self.code != Some(code::EDITS_OF_OLD_MESSAGES)
    }

    /// Whether Discord says that a message is deleted, alone or with its channel.
    pub fn says_gone(&self) -> bool {
        self.reason == Fallback::Deleted || self.code == Some(code::UNKNOWN_CHANNEL)
    }

    /// An error without an answer that a retry will not fix.
    pub const fn lasting(reason: Fallback) -> Self {
        Self {
            reason,
            transient: false,
            unauthorized: false,
            status: None,
            retry_after: None,
            code: None,
            about_reference: false,
            unreached: None,
        }
    }

    /// Whether Discord says of a member that there is none, and not a proxy or whoever is
    /// between that something is not found.
    pub const fn is_no_member(&self) -> bool {
        matches!(self.code, Some(code::UNKNOWN_MEMBER | code::UNKNOWN_USER))
    }

    /// No answer: no connection, a broken one, or a body that ended early.
    pub(super) const fn broken() -> Self {
        Self {
            transient: true,
            ..Self::lasting(Fallback::Unavailable)
        }
    }

    /// Interprets an answer that may be from a proxy. If its body is not an error
    /// object, only the statuses 413 and 429 mean the same as from Discord.
    pub fn refused(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let is_known = matches!(status, 413 | 429);
        let error = if is_known || serde_json::from_slice::<Body>(body).is_ok() {
            Self::answered(status, body)
        } else {
            Self::broken()
        };
        Self {
            retry_after,
            ..error
        }
    }

    pub(super) fn answered(status: u16, body: &[u8]) -> Self {
        let body: Body = serde_json::from_slice(body).unwrap_or_default();
        let reason = match (body.code, status) {
            (code::UNKNOWN_MESSAGE, _) => Fallback::Deleted,
            (code::THREAD_ARCHIVED, _) => Fallback::Archived,
            (code::THREAD_LOCKED, _) => Fallback::Locked,
            (
                code::MISSING_ACCESS
                | code::CANNOT_SEND_TO_USER
                | code::MISSING_PERMISSIONS
                | code::REPLY_WITHOUT_HISTORY,
                _,
            )
            | (_, 401 | 403) => Fallback::Forbidden,
            (code::EDITS_OF_OLD_MESSAGES, _) | (_, 429) => Fallback::RateLimited,
            (_, 404) => Fallback::NotFound,
            (_, 408 | 500..) => Fallback::Unavailable,
            _ => Fallback::Malformed,
        };
        Self {
            reason,
            transient: reason == Fallback::Unavailable,
            // With a code, a 401 is about an interaction's token (50027).
            unauthorized: status == 401 && body.code == 0,
            status: Some(status),
            retry_after: None,
            code: (body.code != 0).then_some(body.code),
            about_reference: body.code == code::REPLY_WITHOUT_HISTORY
                || body.errors.contains_key("message_reference"),
            unreached: None,
        }
    }
}

impl From<RestError> for FetchError {
    fn from(error: RestError) -> Self {
        Self {
            reason: error.reason,
            transient: error.transient,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_its_reason() {
        #[track_caller]
        fn check(status: u16, body: &str, reason: Fallback, transient: bool) {
            let error = RestError::answered(status, body.as_bytes());
            assert_eq!((error.reason, error.transient), (reason, transient));
        }
        let code = |code: u64| format!(r#"{{"code":{code},"message":"m"}}"#);
        check(404, &code(10_008), Fallback::Deleted, false);
        check(404, &code(10_003), Fallback::NotFound, false);
        check(404, "", Fallback::NotFound, false);
        check(403, &code(50_001), Fallback::Forbidden, false);
        check(403, &code(50_013), Fallback::Forbidden, false);
        check(403, &code(0), Fallback::Forbidden, false);
        check(400, &code(160_002), Fallback::Forbidden, false);
        check(403, &code(50_007), Fallback::Forbidden, false);
        check(400, &code(50_083), Fallback::Archived, false);
        check(403, &code(160_005), Fallback::Locked, false);
        check(429, "{}", Fallback::RateLimited, false);
        check(429, &code(30_046), Fallback::RateLimited, false);
        check(500, "", Fallback::Unavailable, true);
        check(502, "<html>", Fallback::Unavailable, true);
        check(503, &code(0), Fallback::Unavailable, true);
        check(400, &code(50_035), Fallback::Malformed, false);
        check(401, &code(0), Fallback::Forbidden, false);
    }

    #[test]
    fn only_discord_says_that_there_is_no_member() {
        for (body, is_said) in [
            (r#"{"code":10007}"#, true),
            (r#"{"code":10013}"#, true),
            (r#"{"code":10004}"#, false),
            (r#"{"code":0}"#, false),
            ("not found", false),
        ] {
            let error = RestError::refused(404, body.as_bytes(), None);
            assert_eq!(error.is_no_member(), is_said, "{body}");
        }
    }

    #[test]
    fn a_refused_token_and_a_refused_reference_are_marked() {
        assert!(RestError::answered(401, b"{}").unauthorized);
        let body = br#"{"code":50035,"errors":{"message_reference":{"_errors":[]}}}"#;
        assert!(RestError::answered(400, body).about_reference);
        assert!(
            !RestError::answered(400, br#"{"code":50035,"errors":{"content":{}}}"#).about_reference
        );
    }
}
