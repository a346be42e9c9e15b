//! Answers and refusals, and their conversion to HTTP.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::faults::{FaultKind, rate_limit};
use crate::limits::Standing;

/// The result of a route.
pub(super) type Answer = Result<Reply, Refusal>;

#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    body: Content,
    headers: Vec<(&'static str, String)>,
}

#[derive(Clone, Debug)]
enum Content {
    Nothing,
    Json(Value),
    File(String, Vec<u8>),
}

/// An error of the API.
#[derive(Clone, Debug)]
pub(super) struct Refusal(Reply);

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        refusal.0
    }
}

impl Reply {
    const fn new(status: u16, body: Content) -> Self {
        Self {
            status,
            body,
            headers: Vec::new(),
        }
    }

    /// Status 200 with an object.
    pub(super) fn json(body: Value) -> Self {
        Self::with_status(200, body)
    }

    /// The given status with an object.
    pub(super) fn with_status(status: u16, body: Value) -> Self {
        Self::new(status, Content::Json(body))
    }

    /// Status 204.
    pub(super) fn nothing() -> Self {
        Self::new(204, Content::Nothing)
    }

    /// A file from the CDN.
    pub(super) fn file(content_type: &str, bytes: &[u8]) -> Self {
        Self::new(200, Content::File(content_type.to_owned(), bytes.to_vec()))
    }

    /// Of a list, only its first half.
    pub(super) fn shortened(mut self) -> Self {
        if let Content::Json(Value::Array(list)) = &mut self.body {
            list.truncate(list.len() / 2);
        }
        self
    }

    /// The answer that a fault demands.
    pub(super) fn forced(status: u16, body: Value, retry_after: Option<f64>) -> Self {
        let body = if body.is_null() {
            Content::Nothing
        } else {
            Content::Json(body)
        };
        let mut reply = Self::new(status, body);
        if let Some(seconds) = retry_after {
            let headers = &mut reply.headers;
            headers.push(("retry-after", seconds.ceil().to_string()));
            // A proxy's own limit, without Discord's body, has no scope.
            if matches!(reply.body, Content::Json(_)) {
                headers.push(("x-ratelimit-scope", "user".to_owned()));
            }
        }
        reply
    }

    /// How long a forced 429 asks to wait.
    pub(super) fn limited_for(&self) -> Option<Duration> {
        let Content::Json(body) = &self.body else {
            return None;
        };
        let seconds = body["retry_after"]
            .as_f64()
            .filter(|_| self.status == 429)?;
        let told = self.headers.iter().any(|(name, _)| *name == "retry-after");
        Duration::try_from_secs_f64(seconds).ok().filter(|_| told)
    }

    /// The error code in its body.
    pub(super) fn code(&self) -> Option<u64> {
        match &self.body {
            Content::Json(body) if self.status >= 400 => body["code"].as_u64(),
            _ => None,
        }
    }

    /// The media type, empty without a body, and the body.
    pub(super) fn bytes(&self) -> (&str, Vec<u8>) {
        match &self.body {
            Content::Nothing => ("", Vec::new()),
            Content::Json(body) => ("application/json", body.to_string().into_bytes()),
            Content::File(kind, bytes) => (kind, bytes.clone()),
        }
    }

    /// A 429 for a bucket that is used up.
    pub(super) fn too_many(standing: &Standing) -> Self {
        let seconds = standing.reset_after.as_secs_f64();
        Self::forced(429, rate_limit(seconds), Some(seconds))
    }
}

impl Refusal {
    pub(super) fn new(status: u16, code: u64, message: &str) -> Self {
        let body = json!({"message": message, "code": code});
        Self(Reply::with_status(status, body))
    }

    /// Error 50035 for one field.
    pub(super) fn invalid(field: &str, code: &str, message: &str) -> Self {
        let error = json!({"_errors": [{"code": code, "message": message}]});
        // The OpenAPI document types codes as numbers, but the API sends names, which
        // is what clients see.
        let errors = json!({ field: error });
        let body = json!({"message": "Invalid Form Body", "code": 50035, "errors": errors});
        Self(Reply::with_status(400, body))
    }
}

/// Declares refusals by status, code and message.
macro_rules! refusals {
    ($($name:ident = $status:literal, $code:literal, $message:literal;)+) => {
        impl Refusal {$(
            pub(super) fn $name() -> Self {
                Self::new($status, $code, $message)
            }
        )+}
    };
}

refusals! {
    unauthorized = 401, 0, "401: Unauthorized";
    no_route = 404, 0, "404: Not Found";
    missing_access = 403, 50001, "Missing Access";
    missing_permissions = 403, 50013, "Missing Permissions";
    unknown_channel = 404, 10003, "Unknown Channel";
    unknown_guild = 404, 10004, "Unknown Guild";
    unknown_member = 404, 10007, "Unknown Member";
    unknown_message = 404, 10008, "Unknown Message";
    wrong_channel_type = 400, 50024, "Cannot execute action on this channel type";
    archived = 400, 50083, "Thread is archived";
    locked = 400, 160_005, "Thread is locked";
    unknown_emoji = 400, 10014, "Unknown Emoji";
    unknown_interaction = 404, 10062, "Unknown interaction";
    acknowledged = 400, 40060, "Interaction has already been acknowledged.";
    unauthorized_for_application = 403, 20012,
        "You are not authorized to perform this action on this application";
    direct_channel = 403, 50003, "Cannot execute action on a DM channel";
    foreign_message = 403, 50005, "Cannot edit a message authored by another user";
    empty_message = 400, 50006, "Cannot send an empty message";
    closed_to_direct_messages = 403, 50007, "Cannot send messages to this user";
    no_text_channel = 400, 50008, "Cannot send messages in a non-text channel";
    wrong_bulk = 400, 50016, "You can only bulk delete between 2 and 100 messages.";
    old_bulk = 400, 50034, "You can only bulk delete messages that are under 14 days old.";
    unreadable_reply = 400, 160_002, "Cannot reply without permission to read message history";
    has_thread = 400, 160_004, "A thread has already been created for this message";
}

/// The HTTP response at a time in Unix milliseconds, with rate-limit headers; its body is corrupted if a fault demands it.
pub(super) fn respond(
    reply: &Reply,
    standing: Option<&Standing>,
    now_ms: i64,
    spoilt: Option<&FaultKind>,
) -> Response {
    let (kind, bytes) = reply.bytes();
    let length = bytes.len();
    let mut response = Response::new(spoil(bytes, spoilt));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            let name = HeaderName::from_static(name);
            response.headers_mut().insert(name, value);
        }
    };
    if !kind.is_empty() {
        set("content-type", kind);
    }
    for (name, value) in &reply.headers {
        set(name, value);
    }
    if matches!(spoilt, Some(FaultKind::Truncated)) {
        set("content-length", &length.to_string());
    }
    if let Some(standing) = standing {
        set_limit_headers(standing, now_ms, &mut set);
    }
    response
}

fn set_limit_headers(standing: &Standing, now_ms: i64, set: &mut impl FnMut(&'static str, &str)) {
    let after = standing.reset_after.as_secs_f64();
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of today fit in 53 bits"
    )]
    let reset = now_ms as f64 / 1000.0 + after;
    set("x-ratelimit-limit", &standing.limit.to_string());
    set("x-ratelimit-remaining", &standing.remaining.to_string());
    set("x-ratelimit-reset", &format!("{reset:.3}"));
    set("x-ratelimit-reset-after", &format!("{after:.3}"));
    set("x-ratelimit-bucket", &standing.bucket);
}

/// The body: whole, or as a fault demands, cut in the middle or replaced.
fn spoil(bytes: Vec<u8>, spoilt: Option<&FaultKind>) -> Body {
    match spoilt {
        Some(FaultKind::Body(text)) => Body::from(text.clone()),
        Some(FaultKind::Truncated) => {
            let half = Bytes::copy_from_slice(&bytes[..bytes.len() / 2]);
            let end = async {
                // The first half must be sent before the connection fails.
                tokio::task::yield_now().await;
                Err(io::Error::from(io::ErrorKind::ConnectionReset))
            };
            Body::from_stream(stream::iter([Ok(half)]).chain(stream::once(end)))
        }
        _ => Body::from(bytes),
    }
}
