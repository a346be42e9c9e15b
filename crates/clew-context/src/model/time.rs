//! Time as a value: the core never reads a clock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const MILLIS_A_DAY: i64 = 24 * 60 * 60 * 1_000;

/// Milliseconds since 1970-01-01, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// Milliseconds from `earlier` to `self`; negative if `earlier` is the later one.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// The time `span` earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// RFC 3339 in UTC with milliseconds: `2026-01-02T03:04:05.678Z`.
    pub fn rfc3339(self) -> String {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => format!("{time:.3}"),
            Err(_) => "0000-01-01T00:00:00.000Z".to_owned(),
        }
    }

    /// The time in UTC to the minute: `2026-01-02 03:04`.
    pub fn minute(self) -> String {
        format!("{} {}", self.date(), self.clock())
    }

    /// The date in UTC: `2026-01-02`.
    pub fn date(self) -> String {
        self.rfc3339()[..10].to_owned()
    }

    /// The month in UTC, from 1; none before the year -9999 and after 9999.
    pub fn month(self) -> Option<usize> {
        let time = jiff::Timestamp::from_millisecond(self.0).ok()?;
        let month = jiff::tz::Offset::UTC.to_datetime(time).month();
        usize::try_from(month).ok()
    }

    /// The time of day in UTC to the minute: `03:04`.
    pub fn clock(self) -> String {
        let minutes = self.0.rem_euclid(MILLIS_A_DAY) / 60_000;
        format!("{:02}:{:02}", minutes / 60, minutes % 60)
    }

    /// Days since 1970-01-01, UTC: equal whenever [`date`](Self::date) is.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(MILLIS_A_DAY)
    }

    /// The first moment of a day, by its [number](Self::day).
    pub const fn of_day(day: i64) -> Self {
        Self(day.saturating_mul(MILLIS_A_DAY))
    }

    /// Parses RFC 3339 as Discord writes it: `2026-01-02T03:04:05.678+00:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let time: jiff::Timestamp = text.parse().ok()?;
        Some(Self(time.as_millisecond()))
    }

    /// Parses a date of HTTP's headers: `Fri, 02 Jan 2026 03:04:05 GMT`.
    pub fn parse_http(text: &str) -> Option<Self> {
        let time = jiff::fmt::rfc2822::parse(text).ok()?;
        Some(Self(time.timestamp().as_millisecond()))
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

/// Where callers of the core get the time from; tests pass in their own.
pub type Clock = Arc<dyn Fn() -> UnixMillis + Send + Sync>;

/// A clock that always shows `time`.
pub fn fixed_clock(time: UnixMillis) -> Clock {
    Arc::new(move || time)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn discords_timestamps_are_read_and_ours_are_written() {
        let time = UnixMillis::parse("2026-01-02T03:04:05.678000+00:00").unwrap();
        assert_eq!(time.rfc3339(), "2026-01-02T03:04:05.678Z");
        assert_eq!(time.minute(), "2026-01-02 03:04");
        let midnight = UnixMillis::parse("2026-01-03T00:00:00Z").unwrap();
        assert_eq!(midnight.day(), time.day() + 1);
        assert_eq!(midnight.before(Duration::from_millis(1)).day(), time.day());
        assert_eq!(UnixMillis::parse("yesterday"), None);
        let of_http = UnixMillis::parse_http("Fri, 02 Jan 2026 03:04:05 GMT").unwrap();
        assert_eq!(of_http.rfc3339(), "2026-01-02T03:04:05.000Z");
        assert_eq!(UnixMillis::parse_http("yesterday"), None);
    }

    proptest! {
        #[test]
        fn the_time_of_day_is_that_of_rfc_3339(millis in -62_135_596_800_000..253_402_300_800_000_i64) {
            let time = UnixMillis(millis);
            prop_assert_eq!(time.clock(), &time.rfc3339()[11..16]);
        }
    }
}
