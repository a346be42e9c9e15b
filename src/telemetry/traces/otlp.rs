//! Spans, and their form in OTLP's JSON encoding: ids in hexadecimal, times and other 64-bit
//! numbers as strings, enumerations as numbers.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use uuid::Uuid;

/// A part of a turn, with times in nanoseconds since 1970.
#[derive(Debug)]
pub(super) struct Span {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) begins: u64,
    pub(super) ends: u64,
    pub(super) attributes: Vec<Value>,
    pub(super) events: Vec<SpanEvent>,
    pub(super) is_error: bool,
}

/// A moment within a span.
#[derive(Debug)]
pub(super) struct SpanEvent {
    pub(super) name: &'static str,
    pub(super) at: u64,
    pub(super) attributes: Vec<Value>,
}

/// OTLP's `SpanKind`.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Kind {
    Internal = 1,
    Client = 3,
}

/// OTLP's `StatusCode` of an error.
const ERROR: u8 = 2;

impl Span {
    /// A span without a parent.
    pub(super) fn new(trace: [u8; 16], name: &str, begins: u64, ends: u64) -> Self {
        Self {
            trace,
            id: span_id(),
            parent: None,
            name: name.to_owned(),
            kind: Kind::Internal,
            begins,
            ends,
            attributes: Vec::new(),
            events: Vec::new(),
            is_error: false,
        }
    }

    /// A span below this one.
    pub(super) fn child(&self, name: &str, begins: u64, ends: u64) -> Self {
        Self {
            parent: Some(self.id),
            ..Self::new(self.trace, name, begins, ends)
        }
    }

    fn json(&self) -> Value {
        let mut span = json!({
            "traceId": HEXLOWER.encode(&self.trace),
            "spanId": HEXLOWER.encode(&self.id),
            "name": self.name,
            "kind": self.kind as u8,
            "startTimeUnixNano": self.begins.to_string(),
            "endTimeUnixNano": self.ends.to_string(),
            "attributes": self.attributes,
            "events": self.events.iter().map(SpanEvent::json).collect::<Vec<_>>(),
            "status": {},
        });
        if let Some(parent) = &self.parent {
            span["parentSpanId"] = HEXLOWER.encode(parent).into();
        }
        if self.is_error {
            span["status"] = json!({"code": ERROR});
        }
        span
    }
}

impl SpanEvent {
    fn json(&self) -> Value {
        json!({
            "timeUnixNano": self.at.to_string(),
            "name": self.name,
            "attributes": self.attributes,
        })
    }
}

/// The body of a request with these spans.
pub(super) fn body(spans: &[Span], instance: Uuid) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        attribute("service.name", "clew"),
        attribute("service.version", version),
        attribute("service.instance.id", instance.to_string()),
    ];
    let spans: Vec<Value> = spans.iter().map(Span::json).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "clew", "version": version}, "spans": spans}],
    }]})
    .to_string()
}

pub(super) fn attribute(key: &str, value: impl Into<Value>) -> Value {
    json!({"key": key, "value": typed(value.into())})
}

/// A value under the name of its type.
fn typed(value: Value) -> Value {
    match value {
        Value::String(text) => json!({"stringValue": text}),
        Value::Bool(value) => json!({"boolValue": value}),
        Value::Number(number) if number.is_f64() => json!({"doubleValue": number}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(values) => {
            let values: Vec<Value> = values.into_iter().map(typed).collect();
            json!({"arrayValue": {"values": values}})
        }
        Value::Null | Value::Object(_) => json!({}),
    }
}

/// Random, as trace ids are.
fn span_id() -> [u8; 8] {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    (high ^ low).to_be_bytes()
}
