//! What goes wrong on purpose in REST, chosen by method and path and counted.

use std::time::Duration;

use serde_json::{Value, json};

/// A fault: which calls it hits and what happens to them.
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
    /// It is answered this much later.
    Latency(Duration),
    /// It is answered with a status and a body in place of being processed.
    Status {
        /// HTTP status.
        status: u16,
        /// JSON body; null: an empty one, as a proxy in front might answer.
        body: Value,
        /// Seconds in the `Retry-After` header.
        retry_after: Option<f64>,
    },
    /// Nothing is answered for this long, then the connection is dropped.
    Hang(Duration),
    /// The answer ends in the middle of its body.
    Truncated,
    /// The connection is dropped and the call not processed.
    DroppedBefore,
    /// The call is processed and the connection dropped before the answer.
    DroppedAfter,
    /// A successful answer's body is replaced by this text.
    Body(String),
}

impl Fault {
    /// A fault for a method (`*`: any) and a path without `/api/v10`. A path
    /// with `*` is a pattern for the whole path, in which `*` stands for
    /// anything within a segment and `**` for anything; another one is looked
    /// for anywhere in the path.
    pub fn new(method: &str, path: &str, kind: FaultKind) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            kind,
            after: 0,
            times: usize::MAX,
        }
    }

    /// A call that is answered with a status and an API error.
    pub fn status(method: &str, path: &str, status: u16, code: u64, message: &str) -> Self {
        let body = json!({"message": message, "code": code});
        let kind = FaultKind::Status {
            status,
            body,
            retry_after: None,
        };
        Self::new(method, path, kind)
    }

    /// A call that is answered with 429 and this many seconds to wait.
    pub fn rate_limited(method: &str, path: &str, retry_after: f64) -> Self {
        let body = json!({
            "message": "You are being rate limited.", "retry_after": retry_after, "global": false,
            "code": 0,
        });
        let kind = FaultKind::Status {
            status: 429,
            body,
            retry_after: Some(retry_after),
        };
        Self::new(method, path, kind)
    }

    /// Hits only this many calls; without it every one.
    #[must_use]
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    /// Hits only the next one.
    #[must_use]
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Lets this many matching calls pass first.
    #[must_use]
    pub fn after(mut self, calls: usize) -> Self {
        self.after = calls;
        self
    }
}

/// The faults in force.
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
    /// Adds a fault and gives its number.
    pub(super) fn add(&mut self, fault: Fault) -> usize {
        self.active.push(Active {
            fault,
            seen: 0,
            hits: 0,
        });
        self.active.len() - 1
    }

    /// Ends every fault; their numbers and counts stay.
    pub(super) fn end_all(&mut self) {
        for active in &mut self.active {
            active.fault.times = 0;
        }
    }

    /// How many calls a fault has hit.
    pub(super) fn hits(&self, number: usize) -> usize {
        self.active.get(number).map_or(0, |active| active.hits)
    }

    /// What happens to a call, every fault counted that it meets.
    pub(super) fn meet(&mut self, method: &str, path: &str) -> Vec<FaultKind> {
        let mut kinds = Vec::new();
        for active in &mut self.active {
            let fault = &active.fault;
            let method_fits = fault.method == "*" || fault.method.eq_ignore_ascii_case(method);
            if !method_fits || !path_fits(&fault.path, path) {
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

/// Whether a path meets a pattern (see [`Fault::new`]).
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
