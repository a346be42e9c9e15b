//! Parses a call: path, query, and JSON or multipart body.

use std::ops::RangeInclusive;

use axum::body::Body;
use axum::extract::{FromRequest, Multipart, Request};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::answer::Refusal;
use crate::draft::File;
use crate::ids::Id;

/// The largest body accepted; above Discord's limit for files.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;

/// A call as the routes see it.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) method: String,
    /// Without `/api/v10`.
    pub(super) path: String,
    pub(super) raw_query: String,
    pub(super) token: Option<String>,
    pub(super) body: Value,
    pub(super) files: Vec<File>,
}

impl Call {
    /// A query parameter, percent-decoded.
    pub(super) fn query(&self, key: &str) -> Option<String> {
        let mut pairs = self.raw_query.split('&').filter_map(|p| p.split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == key)?;
        Some(decode(value))
    }

    /// A numeric query parameter.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        let Some(text) = self.query(key) else {
            return Ok(None);
        };
        let invalid = || {
            let message = format!("Value \"{text}\" is not int.");
            Refusal::invalid(key, "NUMBER_TYPE_COERCE", &message)
        };
        text.parse().map(Some).map_err(|_| invalid())
    }

    /// A numeric query parameter in a range.
    pub(super) fn within(
        &self,
        key: &str,
        default: u64,
        accepted: RangeInclusive<u64>,
    ) -> Result<usize, Refusal> {
        let number = self.number(key)?.unwrap_or(default);
        if !accepted.contains(&number) {
            let (least, most) = accepted.into_inner();
            let message = format!("int value should be between {least} and {most}.");
            return Err(Refusal::invalid(key, "NUMBER_TYPE_MAX", &message));
        }
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }
}

/// An id in a path.
pub(super) fn id(segment: &str) -> Result<Id, Refusal> {
    let message = format!("Value \"{segment}\" is not snowflake.");
    let number: Result<u64, _> = segment.parse();
    number
        .map(Id)
        .map_err(|_| Refusal::invalid("id", "NUMBER_TYPE_COERCE", &message))
}

/// Percent-decoding for paths and queries.
pub(super) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Reads the whole request.
pub(super) async fn read(parts: Parts, body: Body) -> Result<Call, Refusal> {
    let header = |name: &str| {
        let value = parts.headers.get(name)?;
        Some(value.to_str().ok()?.to_owned())
    };
    let path = parts.uri.path();
    let path = path
        .strip_prefix("/api/v10")
        .or_else(|| path.strip_prefix("/api/v9"))
        .unwrap_or(path)
        .to_owned();
    let mut call = Call {
        method: parts.method.as_str().to_owned(),
        path,
        raw_query: parts.uri.query().unwrap_or_default().to_owned(),
        token: header("authorization"),
        ..Call::default()
    };
    let kind = header("content-type").unwrap_or_default();
    if kind.starts_with("multipart/form-data") {
        read_multipart(Request::from_parts(parts, body), &mut call).await?;
    } else {
        let bytes = axum::body::to_bytes(body, MAX_BODY_BYTES).await;
        let bytes = bytes.map_err(|_| Refusal::new(413, 40005, "Request entity too large"))?;
        call.body = parse(&bytes)?;
    }
    Ok(call)
}

fn parse(bytes: &[u8]) -> Result<Value, Refusal> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let invalid = |_| Refusal::new(400, 50109, "The request body contains invalid JSON.");
    serde_json::from_slice(bytes).map_err(invalid)
}

async fn read_multipart(request: Request, call: &mut Call) -> Result<(), Refusal> {
    let broken = || Refusal::new(400, 50035, "Invalid Form Body");
    let multipart = Multipart::from_request(request, &()).await;
    let mut multipart = multipart.map_err(|_| broken())?;
    while let Some(field) = multipart.next_field().await.map_err(|_| broken())? {
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().unwrap_or("unknown").to_owned();
        let content_type = field.content_type().map(str::to_owned);
        let bytes = field.bytes().await.map_err(|_| broken())?;
        if name == "payload_json" {
            call.body = parse(&bytes)?;
        } else if name.starts_with("files[") {
            call.files.push(File {
                content_type: content_type.unwrap_or_else(|| guess_type(&file_name)),
                name: file_name,
                bytes: bytes.to_vec(),
                description: None,
            });
        }
    }
    Ok(())
}

/// The media type that Discord derives from a file name.
fn guess_type(name: &str) -> String {
    let extension = name.rsplit('.').next().unwrap_or_default();
    match extension {
        "md" => "text/markdown; charset=utf-8",
        "png" => "image/png",
        "json" => "application/json; charset=utf-8",
        "txt" | "log" | "rs" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
    .to_owned()
}
