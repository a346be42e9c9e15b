//! Finds the [`Error`] that a server means. The status code alone is not enough:
//! servers use different ones for a bad key or a prompt that is too long.

use std::time::Duration;

use jiff::SignedDuration;
use reqwest::Response;
use reqwest::header::HeaderMap;
use tokio::time::timeout;

use super::Error;
use super::wire::{self, ServerError};
use clew_context::model::UnixMillis;

/// How many bytes of an error's body are read: the message is at its start.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Words, in lower case, that say outright that the prompt is too long: the
/// codes of OpenAI, llama.cpp and `LiteLLM`; the phrases of Anthropic,
/// Bedrock, Groq and text-generation-inference.
const CONTEXT_TOO_LONG: [&str; 7] = [
    "context_length_exceeded",
    "exceed_context_size",
    "contextwindowexceeded",
    "prompt is too long",
    "input is too long",
    "reduce the length of",
    "`max_new_tokens` must be <=",
];

/// Otherwise, names for the context: OpenAI, vLLM, Ollama, Mistral, `OpenRouter`,
/// `SGLang` ("context length"), llama.cpp ("context size"), llama-cpp-python
/// ("context window"), Anthropic ("context limit"), vLLM ("model length"), xAI
/// ("prompt length"), Gemini ("input token count")...
const CONTEXT: [&str; 7] = [
    "context length",
    "context size",
    "context window",
    "context limit",
    "model length",
    "prompt length",
    "input token count",
];

/// ...together with words for too much. Without these the error is about something
/// else, and shortening the context would not help.
const TOO_MUCH: [&str; 8] = [
    "exceed",
    "maximum",
    "longer",
    "larger",
    "greater",
    "too long",
    "too large",
    "of only",
];

/// Words that precede the size of a context in tokens, by up to [`MAX_GAP`] bytes.
const LIMITS: [&str; 8] = [
    "n_ctx",
    "context length",
    "context size",
    "context window",
    "model length",
    "prompt length",
    "tokens allowed",
    "must be <=",
];

/// Enough for "context length of only 4096".
const MAX_GAP: usize = 12;

/// Context sizes that are believed, in tokens.
const POSSIBLE_LIMITS: std::ops::RangeInclusive<u32> = 256..=100_000_000;

/// Groq and OpenAI: a single request exceeds the limit per minute.
const REQUEST_TOO_LARGE: &str = "request too large";

/// Words by which servers refuse a key despite another status: Gemini and
/// others with 400; `LiteLLM` without a database ("no connected db").
const BAD_KEY: [&str; 9] = [
    "invalid_api_key",
    "invalid api key",
    "incorrect api key",
    "api key not valid",
    "api_key_invalid",
    "authentication",
    "unauthorized",
    "no_db_connection",
    "no connected db",
];

/// Words for a model that the server does not have: OpenAI, `LiteLLM`,
/// `OpenRouter`.
const NO_MODEL: [&str; 4] = [
    "model_not_found",
    "invalid model name",
    "not a valid model",
    "unknown model",
];

/// Words by which a provider refuses what was said, with 403: `OpenRouter`'s
/// moderation.
const MODERATED: [&str; 2] = ["moderation", "flagged"];

/// Reads a server's reason for not accepting a request.
pub(super) async fn of_response(response: Response, patience: Duration) -> Error {
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let body = timeout(patience, body(response, MAX_ERROR_BYTES)).await;
    let reported = wire::server_error(&body.unwrap_or_default());
    classify(Some(status), retry_after, reported)
}

/// The meaning of an error within a stream.
pub(super) fn of_event(reported: ServerError) -> Error {
    classify(reported.status, None, reported)
}

/// Reads as much as possible, up to so many bytes.
pub(super) async fn body(mut response: Response, max_bytes: usize) -> String {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= max_bytes {
            body.truncate(max_bytes);
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

fn classify(status: Option<u16>, retry_after: Option<Duration>, reported: ServerError) -> Error {
    let words = format!("{}{}", reported.code, reported.message).to_lowercase();
    let says = |any: &[&str]| any.iter().any(|known| words.contains(known));
    let too_long = says(&CONTEXT_TOO_LONG) || says(&CONTEXT) && says(&TOO_MUCH);
    let limit = reported.limit.or_else(|| limit(&words));
    let message = reported.message;
    match status {
        Some(status @ 403) if says(&MODERATED) => Error::Rejected { status, message },
        Some(401..=403) => Error::Unauthorized { message },
        Some(300..400 | 404) => Error::ModelNotFound { message },
        Some(413) => Error::ContextTooLong { limit, message },
        Some(429) if says(&[REQUEST_TOO_LARGE]) => Error::ContextTooLong { limit, message },
        Some(429) => Error::RateLimited {
            retry_after,
            message,
        },
        _ if too_long => Error::ContextTooLong { limit, message },
        None if says(&["rate_limit", "rate limit"]) => Error::RateLimited {
            retry_after,
            message,
        },
        Some(400..500) | None if says(&BAD_KEY) => Error::Unauthorized { message },
        Some(400..500) | None if says(&NO_MODEL) => Error::ModelNotFound { message },
        Some(status @ (400..=407 | 409..500)) => Error::Rejected { status, message },
        status => Error::Unavailable {
            status,
            retry_after,
            message,
            cause: None,
        },
    }
}

/// The size of the model's context in tokens, if the text names it.
fn limit(words: &str) -> Option<u32> {
    LIMITS.iter().find_map(|name| {
        let (_, after) = words.split_once(name)?;
        let start = after.find(|c: char| c.is_ascii_digit())?;
        let digits = after.get(start..).filter(|_| start <= MAX_GAP)?;
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',');
        let digits = digits[..end.unwrap_or(digits.len())].replace(',', "");
        let tokens = digits.parse().ok()?;
        POSSIBLE_LIMITS.contains(&tokens).then_some(tokens)
    })
}

/// Headers that say how long to wait, in the order of how exactly, each with the seconds of
/// its unit: OpenAI's and Azure's `retry-after-ms`, then `retry-after`. `LiteLLM` passes the
/// headers of the service behind it on under names that begin with `llm_provider-`.
const WAITS: [(&str, f64); 4] = [
    ("retry-after-ms", 0.001),
    ("llm_provider-retry-after-ms", 0.001),
    ("retry-after", 1.0),
    ("llm_provider-retry-after", 1.0),
];

/// How long until limits are over, if nothing else is said: `1s`, `6m0s`, `17ms` or seconds
/// (OpenAI, Groq). Of two limits the later counts, since either may be the one that was hit.
const RESETS: [&str; 4] = [
    "x-ratelimit-reset-requests",
    "x-ratelimit-reset-tokens",
    "llm_provider-x-ratelimit-reset-requests",
    "llm_provider-x-ratelimit-reset-tokens",
];

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    // A date is measured from the answer's own, so that no difference of clocks counts.
    let until = |date: &str| {
        let now = UnixMillis::parse_http(text("date")?)?;
        let wait = UnixMillis::parse_http(date)?.since(now);
        u64::try_from(wait).ok().map(Duration::from_millis)
    };
    let told = WAITS.iter().find_map(|(name, unit)| {
        let value = text(name)?;
        match value.parse::<f64>() {
            Ok(number) => Duration::try_from_secs_f64(number * unit).ok(),
            Err(_) => until(value),
        }
    });
    let resets = || RESETS.iter().filter_map(|name| span(text(name)?)).max();
    told.or_else(resets)
}

/// A time such as `6m0s`, `1.5s` or `20`, which is in seconds.
fn span(text: &str) -> Option<Duration> {
    match text.parse() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => text.parse::<SignedDuration>().ok()?.try_into().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: u16, body: &str, reason: &str) {
        let error = classify(Some(status), None, wire::server_error(body));
        assert_eq!(error.reason().as_str(), reason, "{status} {body}");
    }

    #[test]
    fn a_status_alone() {
        for (status, reason) in [
            (302, "not_found"),
            (400, "rejected"),
            (401, "unauthorized"),
            (402, "unauthorized"),
            (403, "unauthorized"),
            (404, "not_found"),
            (408, "unavailable"),
            (413, "context_too_long"),
            (422, "rejected"),
            (429, "rate_limited"),
            (500, "unavailable"),
            (529, "unavailable"),
        ] {
            check(status, "", reason);
        }
    }

    #[test]
    fn a_prompt_that_is_too_long() {
        for (status, body) in [
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ),
            (
                400,
                r#"{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 8192","type":"BadRequestError","code":400}"#,
            ),
            (
                400,
                r#"{"error":{"message":"litellm.ContextWindowExceededError: too big","type":null,"code":"400"}}"#,
            ),
            (
                400,
                r#"{"error":"the input length exceeds the context length"}"#,
            ),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            ),
            (
                500,
                r#"{"error":{"message":"Requested tokens (5000) exceed context window of 2048"}}"#,
            ),
            (
                429,
                r#"{"error":{"message":"Request too large for model on tokens per min"}}"#,
            ),
        ] {
            check(status, body, "context_too_long");
        }
    }

    #[test]
    fn a_fault_that_names_the_context_is_not_always_its_length() {
        for (status, message, reason) in [
            (400, "context length must be positive", "rejected"),
            (400, "unknown parameter: context_size", "rejected"),
            (500, "failed to allocate the context window", "unavailable"),
            (500, "out of memory", "unavailable"),
            (400, "max_tokens is too large: 5000", "rejected"),
        ] {
            check(
                status,
                &format!(r#"{{"error":{{"message":"{message}"}}}}"#),
                reason,
            );
        }
    }

    #[test]
    fn the_limit_that_a_server_names() {
        for (body, expected) in [
            (
                r#"{"error":{"code":400,"message":"the request (5000 tokens) exceeds the available context size (4096 tokens)","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
                Some(4096),
            ),
            (
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens","code":"context_length_exceeded"}}"#,
                Some(8192),
            ),
            (
                r#"{"error":{"message":"Requested tokens (5000) exceed context window of 2048"}}"#,
                Some(2048),
            ),
            (
                r#"{"error":{"message":"the model is loaded with context length of only 4096 tokens"}}"#,
                Some(4096),
            ),
            (
                r#"{"error":{"message":"The input token count (1100000) exceeds the maximum number of tokens allowed (1,048,576)."}}"#,
                Some(1_048_576),
            ),
            (
                r#"{"error":"`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000"}"#,
                Some(4097),
            ),
            (
                r#"{"error":{"message":"the prompt exceeds the context length; 3 were sent"}}"#,
                None,
            ),
            (
                r#"{"error":{"message":"the context length is exceeded: you asked for 9000 tokens"}}"#,
                None,
            ),
        ] {
            let error = classify(Some(400), None, wire::server_error(body));
            let Error::ContextTooLong { limit, .. } = error else {
                panic!("{body}: {error:?}");
            };
            assert_eq!(limit, expected, "{body}");
        }
    }

    #[test]
    fn a_bad_key_and_a_missing_model() {
        check(
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}]"#,
            "unauthorized",
        );
        check(
            400,
            r#"{"error":{"message":"No connected db.","type":"no_db_connection","code":"400"}}"#,
            "unauthorized",
        );
        check(
            400,
            r#"{"error":{"message":"x is not a valid model ID","code":400}}"#,
            "not_found",
        );
        check(
            400,
            r#"{"error":{"message":"no","code":"model_not_found"}}"#,
            "not_found",
        );
    }

    #[test]
    fn moderation_is_no_bad_key() {
        check(
            403,
            r#"{"error":{"code":403,"message":"x/y requires moderation on Z. Your input was flagged for \"violence\"."}}"#,
            "rejected",
        );
        check(403, r#"{"error":{"message":"Forbidden"}}"#, "unauthorized");
    }

    #[test]
    fn an_error_within_a_stream() {
        for (body, reason) in [
            (r#"{"error":{"message":"boom"}}"#, "unavailable"),
            (r#"{"error":{"message":"boom","code":500}}"#, "unavailable"),
            (
                r#"{"error":{"message":"slow","code":"rate_limit_exceeded"}}"#,
                "rate_limited",
            ),
            (r#"{"error":{"message":"slow","code":429}}"#, "rate_limited"),
            (
                r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
                "context_too_long",
            ),
        ] {
            assert_eq!(
                of_event(wire::server_error(body)).reason().as_str(),
                reason,
                "{body}"
            );
        }
    }

    #[test]
    fn waits() {
        for (name, value, expected) in [
            ("retry-after", "2", Some(2000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "40", Some(40)),
            ("retry-after", "-1", None),
            ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", Some(60_000)),
            (
                "llm_provider-retry-after",
                "Wed, 21 Oct 2026 07:27:01 GMT",
                Some(1000),
            ),
            ("retry-after", "Wed, 21 Oct 2026 07:26:59 GMT", None),
            ("llm_provider-retry-after", "3", Some(3000)),
            ("llm_provider-retry-after-ms", "30", Some(30)),
            ("x-ratelimit-reset-requests", "1s", Some(1000)),
            ("x-ratelimit-reset-tokens", "6m0s", Some(360_000)),
            ("x-ratelimit-reset-tokens", "17ms", Some(17)),
            ("llm_provider-x-ratelimit-reset-tokens", "1.5s", Some(1500)),
            ("x-ratelimit-reset-requests", "1h2m", Some(3_720_000)),
            ("x-ratelimit-reset-requests", "20", Some(20_000)),
            ("x-ratelimit-reset-requests", "soon", None),
            ("x-ratelimit-reset-requests", "1d", None),
            ("x-other", "1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let now = "Wed, 21 Oct 2026 07:27:00 GMT";
            headers.insert("date", now.parse().unwrap());
            assert_eq!(
                retry_after(&headers),
                expected.map(Duration::from_millis),
                "{name}: {value}"
            );
        }
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ratelimit-reset-requests", "9s"),
            ("retry-after", "2"),
            ("retry-after-ms", "x"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        assert_eq!(retry_after(&headers), Some(Duration::from_secs(2)));
    }
}
