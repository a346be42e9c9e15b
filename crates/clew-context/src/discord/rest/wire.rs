//! Sends requests built with twilight. twilight's own sending hides how long a 429
//! asks us to wait, unless a bucket is used up, and answers would be lost that
//! way; and its limiter, which knows each path by itself, could not be bounded. The
//! limiter is told of each answer just as twilight would.

use std::time::Duration;

use reqwest::header::{
    self, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Method, Response};
use tokio::time::Instant;
use twilight_http::request::Request;
use twilight_http_ratelimiting::{Permit, RateLimitHeaders};

use super::address::Address;
use super::pool::REQUEST_TIMEOUT;
use crate::discord::error::RestError;
use crate::model::Fallback;
use crate::outside::{Http, SendError};

/// Discord asks for this format (its reference, "User Agent").
const USER_AGENT: &str = concat!("DiscordBot (clew, ", env!("CARGO_PKG_VERSION"), ")");

/// Where requests are sent, and with which token.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    http: Http,
    /// Ends with `/`.
    base: String,
    token: HeaderValue,
}

impl Wire {
    /// `token` is the whole value of the header.
    pub(super) fn new(http: Http, token: &str, address: Option<&Address>) -> Option<Self> {
        let (scheme, authority) = match address {
            Some(Address {
                authority,
                plain: true,
                ..
            }) => ("http", authority.as_str()),
            Some(address) => ("https", address.authority.as_str()),
            None => ("https", "discord.com"),
        };
        let mut token = HeaderValue::from_str(token).ok()?;
        token.set_sensitive(true);
        Some(Self {
            http,
            base: format!("{scheme}://{authority}/api/v10/"),
            token,
        })
    }

    /// One attempt.
    pub(super) async fn send(
        &self,
        request: &Request,
        permit: Permit,
    ) -> Result<Vec<u8>, RestError> {
        let request = self.built(request).timeout(REQUEST_TIMEOUT);
        let answer = self.http.send(request).await;
        let answer = answer.map_err(|error| failed(&error))?;
        permit.complete(bucket(answer.headers()));
        if answer.status().is_success() {
            let body = answer
                .bytes()
                .await
                .map_err(|error| failed(&error.into()))?;
            return Ok(body.into());
        }
        Err(refused(answer).await)
    }

    fn built(&self, request: &Request) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.base, request.path());
        let method = Method::from_bytes(request.method().name().as_bytes()).unwrap_or_default();
        let mut builder = self
            .http
            .request(method.clone(), url)
            .header(header::USER_AGENT, USER_AGENT);
        if request.use_authorization_token() {
            builder = builder.header(AUTHORIZATION, self.token.clone());
        }
        if let Some(headers) = request.headers() {
            builder = builder.headers(headers.clone());
        }
        match (request.form(), request.body()) {
            (Some(form), _) => builder
                .header(CONTENT_TYPE, form.content_type())
                .body(form.clone().build()),
            (None, Some(body)) => builder
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_vec()),
            (None, None) if method == Method::GET => builder,
            (None, None) => builder.body(Vec::new()),
        }
    }
}

fn failed(error: &SendError) -> RestError {
    match error {
        // It will not be sent later, either.
        SendError::LeaseOver => RestError {
            transient: false,
            ..RestError::unreached(error)
        },
        _ if error.is_timeout() => RestError::lasting(Fallback::Timeout),
        _ => RestError::unreached(error),
    }
}

async fn refused(answer: Response) -> RestError {
    let status = answer.status().as_u16();
    let retry_after = number(answer.headers(), &RETRY_AFTER);
    let retry_after = retry_after.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match answer.bytes().await {
        Ok(body) => RestError::refused(status, &body, retry_after),
        Err(error) => failed(&error.into()),
    }
}

/// What the limiter has to know: the bucket and what is left of it.
fn bucket(headers: &HeaderMap) -> Option<RateLimitHeaders> {
    let bucket = headers.get(RateLimitHeaders::BUCKET)?.as_bytes().to_vec();
    let named = |name: &'static str| number(headers, &HeaderName::from_static(name));
    match headers.get(RateLimitHeaders::SCOPE)?.as_bytes() {
        b"shared" => {
            let seconds = number(headers, &RETRY_AFTER)?;
            Some(RateLimitHeaders::shared(bucket, whole(seconds)))
        }
        b"user" => {
            let reset_after = named(RateLimitHeaders::RESET_AFTER)?;
            Some(RateLimitHeaders {
                bucket,
                limit: whole(named(RateLimitHeaders::LIMIT)?),
                remaining: whole(named(RateLimitHeaders::REMAINING)?),
                reset_at: (Instant::now() + Duration::try_from_secs_f64(reset_after).ok()?).into(),
            })
        }
        _ => None,
    }
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<f64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion of numbers saturates"
)]
fn whole(number: f64) -> u16 {
    number.ceil() as u16
}
