//! What the page is told of a request that is refused.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONNECTION;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// What a request is answered with: JSON, unless something else is named.
pub(super) type Answer<T = Json<Value>> = Result<T, ApiError>;

/// A request that is refused, with a sentence for the person at the page.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    sentence: String,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        let sentence = sentence.into();
        Self { status, sentence }
    }

    /// What was sent cannot be used.
    pub(super) fn bad(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// Who sent it may not.
    pub(super) fn forbidden(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, sentence)
    }

    /// There is no such thing.
    pub(super) fn missing(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// Not now.
    pub(super) fn busy(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        // The rest of its body is not read, so no request can follow on this connection.
        let is_too_large = self.status == StatusCode::PAYLOAD_TOO_LARGE;
        let close = is_too_large.then_some([(CONNECTION, "close")]);
        (self.status, close, Json(json!({"error": self.sentence}))).into_response()
    }
}
