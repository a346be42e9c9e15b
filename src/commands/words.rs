//! Wording: lines that several commands share, times and counts.

use std::time::Duration;

pub(super) use crate::model::{count, read_span, shortened};
use clew_context::model::UnixMillis;

/// A command of another version.
pub(super) const GONE: &str = "That command is gone. Type / for the current ones.";
/// A button of another version, or for which it is too late.
pub(super) const TOO_OLD: &str = "That button is too old.";
/// Of a button for whoever asked, and for moderators.
pub(super) const NOT_THEIRS: &str = "That is for whoever asked, and for who has Manage Messages.";
/// A store did not do what it was asked.
pub(super) const FAILED: &str =
    "My memory didn't answer, so this may not be done. Try again in a moment.";
/// The process ends before a call is carried out.
pub(super) const UNFINISHED: &str =
    "I'm restarting, and this isn't finished. Try again in a minute.";
/// The caller opted out.
pub(super) const OPTED_OUT: &str =
    "You opted out, so I keep nothing of you. `/privacy opt-in` changes that.";
/// The command needs Manage Server.
pub(super) const MANAGE_SERVER: &str = "You need Manage Server for this.";
/// The command does not work in direct messages.
pub(super) const SERVERS_ONLY: &str = "This works in servers only.";

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A point in time, which each client shows in its own time zone.
pub(super) fn moment(time: UnixMillis) -> String {
    format!("<t:{}:f>", time.0.div_euclid(1_000))
}

/// A span in its largest whole unit: `24 hours`, `7 days`.
pub(super) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let whole = |unit: u64| seconds >= 2 * unit && seconds.is_multiple_of(unit);
    if whole(DAY) {
        count(seconds / DAY, "day")
    } else if seconds >= HOUR && seconds.is_multiple_of(HOUR) {
        count(seconds / HOUR, "hour")
    } else if seconds >= MINUTE && seconds.is_multiple_of(MINUTE) {
        count(seconds / MINUTE, "minute")
    } else {
        count(seconds, "second")
    }
}

/// An approximate span: `about 3 hours`.
pub(super) fn about(span: Duration) -> String {
    let seconds = span.as_secs();
    let nearest = |unit: u64| (seconds + unit / 2) / unit;
    match seconds {
        0..MINUTE => "less than a minute".to_owned(),
        MINUTE..HOUR => format!("about {}", count(nearest(MINUTE), "minute")),
        _ if seconds < 2 * DAY => format!("about {}", count(nearest(HOUR), "hour")),
        _ => format!("about {}", count(nearest(DAY), "day")),
    }
}

/// Other people's text, as a quotation on a line of its own.
pub(super) fn quoted(text: &str) -> String {
    format!("> {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_in_their_largest_whole_unit() {
        #[track_caller]
        fn check(seconds: u64, expected: &str, expected_about: &str) {
            let given = Duration::from_secs(seconds);
            assert_eq!((&*span(given), &*about(given)), (expected, expected_about));
        }
        check(1, "1 second", "less than a minute");
        check(90, "90 seconds", "about 2 minutes");
        check(3_600, "1 hour", "about 1 hour");
        check(86_400, "24 hours", "about 24 hours");
        check(86_399, "86399 seconds", "about 24 hours");
        check(5_400, "90 minutes", "about 2 hours");
        check(604_800, "7 days", "about 7 days");
    }

    #[test]
    fn a_text_is_cut_at_its_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
