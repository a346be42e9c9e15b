//! `--since` and `--until`: a date, a time, or how long ago.

use std::time::Duration;

use clew_context::model::UnixMillis;

const HOUR_S: u64 = 60 * 60;
const DAY_S: u64 = 24 * HOUR_S;

/// Which end of a date is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its first moment.
    First,
    /// The moment after its last.
    Last,
}

/// A time in UTC: RFC 3339 (`2026-01-02T03:04:05Z`), a date (`2026-01-02`, all of it), or
/// how long before now (`90m`, `12h`, `7d`, `2w`). None if it is nothing of these.
pub fn parse_time(text: &str, now: UnixMillis, end: End) -> Option<UnixMillis> {
    let text = text.trim();
    if let Some(ago) = ago(text) {
        return Some(now.before(ago));
    }
    if text.len() == "2026-01-02".len() {
        let begin = UnixMillis::parse(&format!("{text}T00:00:00Z"))?;
        return Some(match end {
            End::First => begin,
            End::Last => UnixMillis::of_day(begin.day() + 1),
        });
    }
    UnixMillis::parse(text)
}

fn ago(text: &str) -> Option<Duration> {
    let (at, unit) = text.char_indices().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => HOUR_S,
        'd' => DAY_S,
        'w' => 7 * DAY_S,
        _ => return None,
    };
    let digits = text[..at].trim_end();
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = digits.parse().ok().filter(|_| is_number)?;
    Some(Duration::from_secs(count.checked_mul(seconds)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates_moments_or_spans_back() {
        #[track_caller]
        fn check(text: &str, now: UnixMillis, first: Option<&str>, last: Option<&str>) {
            let parsed = |end| parse_time(text, now, end).map(UnixMillis::rfc3339);
            assert_eq!(parsed(End::First).as_deref(), first, "{text}");
            assert_eq!(parsed(End::Last).as_deref(), last, "{text}");
        }
        let now = UnixMillis::parse("2026-11-23T06:00:00Z").unwrap();
        for (text, time) in [
            ("7d", "2026-11-16T06:00:00.000Z"),
            ("12h", "2026-11-22T18:00:00.000Z"),
            (" 90 m ", "2026-11-23T04:30:00.000Z"),
            ("1s", "2026-11-23T05:59:59.000Z"),
            ("2w", "2026-11-09T06:00:00.000Z"),
            ("2026-11-20T10:00:00+02:00", "2026-11-20T08:00:00.000Z"),
        ] {
            check(text, now, Some(time), Some(time));
        }
        let (first, last) = ("2026-02-28T00:00:00.000Z", "2026-03-01T00:00:00.000Z");
        check("2026-02-28", now, Some(first), Some(last));
        for text in [
            "",
            "d",
            "7",
            "-7d",
            "+7d",
            "7y",
            "2026-02-30",
            "2026-1-2",
            "yesterday",
            "7ä",
            "18446744073709551615w",
            "99999999999999999999d",
            "10:00",
        ] {
            check(text, now, None, None);
        }
    }
}
