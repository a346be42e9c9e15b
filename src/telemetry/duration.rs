//! Durations as lines show them.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// A duration, written in milliseconds with one decimal.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Ms(pub Duration);

impl Ms {
    /// In whole milliseconds.
    pub fn whole(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl From<Duration> for Ms {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl Serialize for Ms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tenths = (self.0.as_secs_f64() * 10_000.0).round();
        serializer.serialize_f64(tenths / 10.0)
    }
}

/// A duration in seconds, to the millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seconds(pub Duration);

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.subsec_millis() == 0 {
            return serializer.serialize_u64(self.0.as_secs());
        }
        let millis = (self.0.as_secs_f64() * 1_000.0).round();
        serializer.serialize_f64(millis / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_keep_their_fraction() {
        let text = |millis| serde_json::to_string(&Seconds(Duration::from_millis(millis))).unwrap();
        assert_eq!([5_000, 250, 1_001].map(text), ["5", "0.25", "1.001"]);
    }

    #[test]
    fn durations_have_one_decimal() {
        for (micros, expected) in [
            (0, "0.0"),
            (49, "0.0"),
            (50, "0.1"),
            (1_234, "1.2"),
            (123_456, "123.5"),
            (5_000_000, "5000.0"),
            (86_400_000_049, "86400000.0"),
        ] {
            let ms = Ms(Duration::from_micros(micros));
            assert_eq!(serde_json::to_string(&ms).unwrap(), expected, "{micros} µs");
        }
    }
}
