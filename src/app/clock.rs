//! The one place that reads the time of day.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use clew_context::model::{Clock, UnixMillis};

pub fn system_clock() -> Clock {
    Arc::new(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "everything else takes the clock from here"
        )]
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    })
}
