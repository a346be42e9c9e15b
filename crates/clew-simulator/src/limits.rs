//! Rate limits: the headers of every answer, and a 429 when a bucket configured
//! by a test is used up.

use std::collections::BTreeMap;
use std::time::Duration;

use super::faults::call_fits;

/// Calls per second for buckets without a configured limit: more than any test
/// makes, so that only configured buckets refuse. Clients read it as 16 bits.
const UNLIMITED: u64 = 50_000;

/// A configured limit.
#[derive(Clone, Debug)]
pub struct Limit {
    /// HTTP method, or `*`.
    pub method: String,
    /// Path, as in [`super::Fault::new`].
    pub path: String,
    /// Calls allowed per window.
    pub calls: u64,
    /// Length of the window.
    pub window: Duration,
}

/// Configured limits and the buckets in use.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) configured: Vec<Limit>,
    buckets: BTreeMap<String, Bucket>,
}

#[derive(Debug)]
struct Bucket {
    used: u64,
    /// Since the server started.
    opened: Duration,
}

/// The state of a bucket after a call.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) bucket: String,
    pub(super) limit: u64,
    pub(super) remaining: u64,
    pub(super) reset_after: Duration,
    pub(super) exceeded: bool,
}

impl Limits {
    /// Counts a call in its bucket; there is one per method, route and major parameter.
    pub(super) fn count(&mut self, method: &str, path: &str, now: Duration) -> Standing {
        let fits = |limit: &&Limit| call_fits((&limit.method, &limit.path), method, path);
        let configured = self.configured.iter().find(fits);
        let (limit, window) = configured.map_or((UNLIMITED, Duration::from_secs(1)), |limit| {
            (limit.calls, limit.window)
        });
        let (route, major) = route_of(method, path);
        let bucket = self
            .buckets
            .entry(format!("{route} {major}"))
            .or_insert(Bucket {
                used: 0,
                opened: now,
            });
        if now.saturating_sub(bucket.opened) >= window {
            bucket.used = 0;
            bucket.opened = now;
        }
        let exceeded = bucket.used >= limit;
        if !exceeded {
            bucket.used += 1;
        }
        Standing {
            bucket: hash_of(&route),
            limit,
            remaining: limit.saturating_sub(bucket.used),
            reset_after: window.saturating_sub(now.saturating_sub(bucket.opened)),
            exceeded,
        }
    }
}

/// The route with its ids removed, and the major parameter.
fn route_of(method: &str, path: &str) -> (String, String) {
    let mut route = method.to_owned();
    let mut major = String::new();
    let (mut last, mut reactions) = ("", false);
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let id = segment.bytes().all(|byte| byte.is_ascii_digit()) || reactions;
        let is_major = id && matches!(last, "channels" | "guilds" | "webhooks") && major.is_empty();
        if is_major {
            segment.clone_into(&mut major);
        }
        route.push('/');
        route.push_str(if id { ":" } else { segment });
        reactions |= segment == "reactions";
        last = segment;
    }
    (route, major)
}

/// A bucket's opaque name: FNV-1a of the route, in hexadecimal.
fn hash_of(route: &str) -> String {
    let hash = route.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
