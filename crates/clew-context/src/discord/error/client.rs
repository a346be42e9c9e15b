//! What our own client and twilight's say.

use std::io;

use tokio::time::Instant;
use twilight_http::error::ErrorType;

use super::{RestError, Unreached};
use crate::model::Fallback;

impl Unreached {
    /// Decides by the error's sources. Their texts are not kept: they may contain secrets.
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(io) = error.downcast_ref::<io::Error>() {
                return Self::of_io(io.kind());
            }
            // hyper-util's own text; the error behind it has no usable kind.
            if error.to_string() == "dns error" {
                return Self::Name;
            }
            next = error.source();
        }
        Self::BrokenOff
    }

    const fn of_io(kind: io::ErrorKind) -> Self {
        match kind {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::TimedOut => Self::Network,
            io::ErrorKind::InvalidData => Self::Tls,
            _ => Self::BrokenOff,
        }
    }
}

impl RestError {
    /// A rate limit that lasts until the given time.
    pub(in crate::discord) fn limited_until(until: Instant) -> Self {
        Self {
            retry_after: Some(until.saturating_duration_since(Instant::now())),
            ..Self::lasting(Fallback::RateLimited)
        }
    }

    /// The same, with the cause as far as it is known.
    pub(in crate::discord) fn unreached(error: &dyn std::error::Error) -> Self {
        Self {
            unreached: error.source().map(Unreached::of),
            ..Self::broken()
        }
    }

    /// The token was refused.
    pub(in crate::discord) const fn unauthorized() -> Self {
        Self {
            unauthorized: true,
            status: Some(401),
            ..Self::lasting(Fallback::Forbidden)
        }
    }

    /// A 429.
    const fn limit() -> Self {
        Self {
            status: Some(429),
            ..Self::lasting(Fallback::RateLimited)
        }
    }

    /// Converts an error of twilight's client. Its texts are dropped: they contain
    /// paths with interaction tokens and whole bodies.
    pub fn of_twilight(error: &twilight_http::Error) -> Self {
        match error.kind() {
            ErrorType::Response { body, status, .. } => Self::answered(status.get(), body),
            ErrorType::Unauthorized => Self::unauthorized(),
            // Our pre-flight check refused to let twilight resend it.
            ErrorType::RequestCanceled => Self::limit(),
            ErrorType::RequestTimedOut => Self::lasting(Fallback::Timeout),
            // `Parsing` means that the body is not an error object, as with proxies and
            // load balancers; twilight drops the status.
            ErrorType::RequestError => Self::unreached(error),
            ErrorType::Parsing { .. } => Self::broken(),
            _ => Self::lasting(Fallback::Malformed),
        }
    }
}
