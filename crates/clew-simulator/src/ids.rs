//! Snowflakes, the clock behind them, and Discord's time format.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

/// A snowflake: milliseconds since 2015-01-01 UTC in the upper 42 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

/// 2015-01-01T00:00:00Z in Unix milliseconds, the epoch of Discord's snowflakes.
const EPOCH_MS: i64 = 1_420_070_400_000;

/// Bits of a snowflake below the time.
const SERIAL_BITS: u32 = 22;

impl Id {
    /// The smallest id for a Unix time in milliseconds.
    pub fn at(unix_ms: i64) -> Self {
        Self(unix_ms.saturating_sub(EPOCH_MS).max(0).cast_unsigned() << SERIAL_BITS)
    }

    /// The Unix time in milliseconds at which this id was created.
    pub fn unix_ms(self) -> i64 {
        (self.0 >> SERIAL_BITS).cast_signed() + EPOCH_MS
    }

    /// The id in the API's format: a string of digits.
    pub(super) fn json(self) -> Value {
        Value::String(self.0.to_string())
    }

    /// Parses an id from a string of digits or a number.
    pub(super) fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => text.parse().ok().map(Self),
            Value::Number(number) => number.as_u64().map(Self),
            _ => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<u64> for Id {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

/// Gives the time in Unix milliseconds; never runs backwards.
pub type TimeSource = Arc<dyn Fn() -> i64 + Send + Sync>;

/// The source of ids and timestamps.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    time: Time,
    serial: u64,
}

#[derive(Clone, Default)]
enum Time {
    #[default]
    System,
    /// Starts at a chosen time and advances by a fixed step with every new id.
    Chosen(Steps),
    Given(TimeSource),
}

#[derive(Clone, Debug)]
struct Steps {
    now_ms: i64,
    step_ms: i64,
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("System"),
            Self::Chosen(steps) => steps.fmt(f),
            Self::Given(_) => f.write_str("Given"),
        }
    }
}

impl Clock {
    /// Starts at `start_ms` (Unix) and advances by `step_ms` with every new id.
    pub(super) fn choose(&mut self, start_ms: i64, step_ms: i64) {
        self.time = Time::Chosen(Steps {
            now_ms: start_ms,
            step_ms,
        });
    }

    /// Takes the time from a source.
    pub(super) fn follow(&mut self, source: TimeSource) {
        self.time = Time::Given(source);
    }

    /// The time by the source that it follows, if it does.
    pub(super) fn followed_ms(&self) -> Option<i64> {
        match &self.time {
            Time::Given(source) => Some(source()),
            Time::System | Time::Chosen(_) => None,
        }
    }

    /// Moves a chosen clock forward; has no effect on the others.
    pub(super) fn advance(&mut self, by_ms: i64) {
        if let Time::Chosen(steps) = &mut self.time {
            steps.now_ms = steps.now_ms.saturating_add(by_ms);
        }
    }

    /// The current time; does not advance a chosen clock.
    pub(super) fn now_ms(&self) -> i64 {
        match &self.time {
            Time::System => Timestamp::now().as_millisecond(),
            Time::Chosen(steps) => steps.now_ms,
            Time::Given(source) => source(),
        }
    }

    /// A new id for the current time; advances a chosen clock by its step.
    pub(super) fn fresh(&mut self) -> Id {
        if let Time::Chosen(steps) = &mut self.time {
            steps.now_ms = steps.now_ms.saturating_add(steps.step_ms);
        }
        self.fresh_at(self.now_ms())
    }

    /// A new id for the given time; ids within a millisecond ascend.
    pub(super) fn fresh_at(&mut self, unix_ms: i64) -> Id {
        self.serial = (self.serial + 1) & ((1 << SERIAL_BITS) - 1);
        Id(Id::at(unix_ms).0 | self.serial)
    }
}

/// A time in the API's format: `2015-04-26T06:26:56.936000+00:00`.
pub(super) fn iso(unix_ms: i64) -> String {
    Timestamp::from_millisecond(unix_ms)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00")
        .to_string()
}

/// Parses a time in the API's format.
pub(super) fn parse_iso(text: &str) -> Option<i64> {
    text.parse::<Timestamp>()
        .ok()
        .map(Timestamp::as_millisecond)
}
