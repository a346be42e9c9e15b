//! Snowflakes, the clock they are made from, and Discord's way to write times.

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

/// A snowflake: milliseconds since 2015-01-01 UTC in the upper 42 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

/// 2015-01-01T00:00:00Z in Unix milliseconds, where Discord's snowflakes begin.
const EPOCH_MS: i64 = 1_420_070_400_000;

/// Bits of a snowflake below its time.
const SERIAL_BITS: u32 = 22;

impl Id {
    /// The smallest id of a Unix time in milliseconds.
    pub fn at(unix_ms: i64) -> Self {
        Self(unix_ms.saturating_sub(EPOCH_MS).max(0).cast_unsigned() << SERIAL_BITS)
    }

    /// The Unix time in milliseconds at which this id was made.
    pub fn unix_ms(self) -> i64 {
        (self.0 >> SERIAL_BITS).cast_signed() + EPOCH_MS
    }

    /// The id as the API writes it: a string of digits.
    pub(super) fn json(self) -> Value {
        Value::String(self.0.to_string())
    }

    /// Reads an id from a string of digits or a number.
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

/// Where ids and timestamps come from: the machine's clock, or a chosen start
/// that moves by a fixed step with every reading.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    chosen: Option<Steps>,
    serial: u64,
}

#[derive(Clone, Debug)]
struct Steps {
    now_ms: i64,
    step_ms: i64,
}

impl Clock {
    /// Starts at `start_ms` (Unix) and moves by `step_ms` with every reading.
    pub(super) fn choose(&mut self, start_ms: i64, step_ms: i64) {
        self.chosen = Some(Steps {
            now_ms: start_ms,
            step_ms,
        });
    }

    /// Moves a chosen clock forward; the machine's clock does not move.
    pub(super) fn advance(&mut self, by_ms: i64) {
        if let Some(steps) = &mut self.chosen {
            steps.now_ms = steps.now_ms.saturating_add(by_ms);
        }
    }

    /// The time without moving a chosen clock.
    pub(super) fn now_ms(&self) -> i64 {
        self.chosen
            .as_ref()
            .map_or_else(|| Timestamp::now().as_millisecond(), |steps| steps.now_ms)
    }

    /// A new id of the present; moves a chosen clock by its step.
    pub(super) fn fresh(&mut self) -> Id {
        if let Some(steps) = &mut self.chosen {
            steps.now_ms = steps.now_ms.saturating_add(steps.step_ms);
        }
        self.fresh_at(self.now_ms())
    }

    /// A new id of a chosen time; ids of one millisecond ascend.
    pub(super) fn fresh_at(&mut self, unix_ms: i64) -> Id {
        self.serial = (self.serial + 1) & ((1 << SERIAL_BITS) - 1);
        Id(Id::at(unix_ms).0 | self.serial)
    }
}

/// A time as the API writes it: `2015-04-26T06:26:56.936000+00:00`.
pub(super) fn iso(unix_ms: i64) -> String {
    Timestamp::from_millisecond(unix_ms)
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00")
        .to_string()
}

/// Reads a time as the API writes it.
pub(super) fn parse_iso(text: &str) -> Option<i64> {
    text.parse::<Timestamp>()
        .ok()
        .map(Timestamp::as_millisecond)
}
