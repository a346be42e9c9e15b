//! Deliberate REST faults, selected by method and path.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// A fault: which calls it affects, and what happens to them.
#[derive(Clone, Debug)]
pub struct Fault {
    method: String,
    path: String,
    kind: FaultKind,
    after: usize,
    times: usize,
}

/// What happens to a call.
#[derive(Clone, Debug)]
pub enum FaultKind {
    /// It is answered after an additional delay.
    Latency(Duration),
    /// It is not processed, but answered with this status and body.
    Status {
        /// HTTP status.
        status: u16,
        /// JSON body; null for an empty one, such as a proxy might send.
        body: Value,
        /// Seconds for the `Retry-After` header.
        retry_after: Option<f64>,
    },
    /// It is processed and answered once the gate opens.
    Held(Gate),
    /// There is no answer for this long, then the connection is dropped.
    Hang(Duration),
    /// The answer breaks off in the middle of its body.
    Truncated,
    /// A list in the answer has only its first half.
    Short,
    /// The connection is dropped before the call is processed.
    DroppedBefore,
    /// The call is processed, but the connection is dropped before the answer.
    DroppedAfter,
    /// The body of a successful answer is replaced by this text.
    Body(String),
}

/// Keeps calls waiting until it opens.
#[derive(Clone, Debug)]
pub struct Gate(Arc<Semaphore>);

impl Gate {
    /// Lets all calls through, also those to come.
    pub fn open(&self) {
        self.0.close();
    }

    pub(super) async fn pass(&self) {
        // It has no permits: this waits until it is closed.
        let _closed = self.0.acquire().await;
    }
}

impl Fault {
    /// A fault for a method (`*` for any) and a path without `/api/v10`. A path
    /// with `*` is a pattern for the whole path: `*` matches anything within a
    /// segment, `**` anything at all. Any other path may occur anywhere in the
    /// call's.
    pub fn new(method: &str, path: &str, kind: FaultKind) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            kind,
            after: 0,
            times: usize::MAX,
        }
    }

    /// Answers with a status and an API error.
    pub fn status(method: &str, path: &str, status: u16, code: u64, message: &str) -> Self {
        let body = json!({"message": message, "code": code});
        let kind = FaultKind::Status {
            status,
            body,
            retry_after: None,
        };
        Self::new(method, path, kind)
    }

    /// Answers with a 429 and this many seconds to wait.
    pub fn rate_limited(method: &str, path: &str, retry_after: f64) -> Self {
        let kind = FaultKind::Status {
            status: 429,
            body: rate_limit(retry_after),
            retry_after: Some(retry_after),
        };
        Self::new(method, path, kind)
    }

    /// Answers searches as while a server's index is built, with this many seconds to wait
    /// (Search Guild Messages).
    pub fn not_indexed(retry_after: u64) -> Self {
        let body = json!({
            "message": "Index not yet available. Try again later", "code": 110_000,
            "documents_indexed": 0, "retry_after": retry_after,
        });
        let kind = FaultKind::Status {
            status: 202,
            body,
            retry_after: None,
        };
        Self::new("GET", "/guilds/*/messages/search", kind)
    }

    /// Keeps calls waiting, and the gate that lets them through.
    pub fn held(method: &str, path: &str) -> (Self, Gate) {
        let gate = Gate(Arc::new(Semaphore::new(0)));
        let kind = FaultKind::Held(gate.clone());
        (Self::new(method, path, kind), gate)
    }

    /// Affects only this many calls; the default is all.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Affects only the next call.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Lets this many matching calls through first.
    #[must_use]
    pub fn after(mut self, calls: usize) -> Self {
        self.after = calls;
        self
    }
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    active: Vec<Active>,
}

#[derive(Debug)]
struct Active {
    fault: Fault,
    seen: usize,
    hits: usize,
}

impl Faults {
    /// Adds a fault and returns its number.
    pub(super) fn add(&mut self, fault: Fault) -> usize {
        self.active.push(Active {
            fault,
            seen: 0,
            hits: 0,
        });
        self.active.len() - 1
    }

    /// Ends all faults; their numbers and counts remain.
    pub(super) fn end_all(&mut self) {
        for active in &mut self.active {
            active.fault.times = 0;
        }
    }

    /// How many calls a fault has hit.
    pub(super) fn hits(&self, number: usize) -> usize {
        self.active.get(number).map_or(0, |active| active.hits)
    }

    /// What happens to a call; counts it for every fault that matches.
    pub(super) fn meet(&mut self, method: &str, path: &str) -> Vec<FaultKind> {
        let mut kinds = Vec::new();
        for active in &mut self.active {
            let fault = &active.fault;
            if !call_fits((&fault.method, &fault.path), method, path) {
                continue;
            }
            active.seen += 1;
            if active.seen > fault.after && active.hits < fault.times {
                active.hits += 1;
                kinds.push(fault.kind.clone());
            }
        }
        kinds
    }
}

/// The body of a 429.
pub(super) fn rate_limit(retry_after: f64) -> Value {
    json!({
        "message": "You are being rate limited.", "retry_after": retry_after, "global": false,
        "code": 0,
    })
}

/// Whether a call has a method (`*` for any) and a path as a fault names them.
pub(super) fn call_fits(of: (&str, &str), method: &str, path: &str) -> bool {
    let (of_method, of_path) = of;
    (of_method == "*" || of_method.eq_ignore_ascii_case(method)) && path_fits(of_path, path)
}

/// Whether a path matches a pattern (see [`Fault::new`]).
pub(super) fn path_fits(pattern: &str, path: &str) -> bool {
    if pattern.contains('*') {
        glob(pattern.as_bytes(), path.as_bytes())
    } else {
        path.contains(pattern)
    }
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        [b'*', rest @ ..] => {
            let segment = text.iter().position(|&b| b == b'/').unwrap_or(text.len());
            (0..=segment).any(|at| glob(rest, &text[at..]))
        }
        [first, rest @ ..] => text.first() == Some(first) && glob(rest, &text[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, path, fits) in [
            ("/messages", "/channels/1/messages/2", true),
            ("/channels/*/messages", "/channels/1/messages", true),
            ("/channels/*/messages", "/channels/1/messages/2", false),
            ("/channels/*/messages/*", "/channels/1/messages/2", true),
            ("/channels/**", "/channels/1/messages/2", true),
            ("/guilds/*", "/channels/1", false),
            ("**/typing", "/channels/1/typing", true),
        ] {
            assert_eq!(path_fits(pattern, path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn counts() {
        let mut faults = Faults::default();
        let number = faults.add(
            Fault::new("GET", "/x", FaultKind::Truncated)
                .after(1)
                .times(2),
        );
        let met: Vec<usize> = (0..5).map(|_| faults.meet("GET", "/x").len()).collect();
        assert_eq!(met, [0, 1, 1, 0, 0]);
        assert_eq!(faults.hits(number), 2);
        assert!(faults.meet("POST", "/x").is_empty());
    }
}
