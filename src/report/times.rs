//! How long things took: histograms of a fixed size.

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest time that is told apart, in tenths of a millisecond: a day.
const LONGEST: u64 = 24 * 60 * 60 * 1_000 * 10;

/// Times in tenths of a millisecond, to the given number of digits. Times above a day
/// count as a day.
#[derive(Debug, Clone, Default)]
pub(super) struct Times<const DIGITS: u8> {
    /// None until there is one: empty lists of times are frequent.
    histogram: Option<Histogram<u64>>,
    /// To the tenth, unlike the histogram's.
    longest: u64,
}

/// Percentiles in milliseconds; none without times.
#[derive(Debug, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50: Option<f64>,
    pub(super) p95: Option<f64>,
    pub(super) p99: Option<f64>,
    pub(super) max: Option<f64>,
}

impl<const DIGITS: u8> Times<DIGITS> {
    pub(super) fn record(&mut self, tenths: Option<u64>) {
        let Some(tenths) = tenths else { return };
        let tenths = tenths.min(LONGEST);
        self.longest = self.longest.max(tenths);
        if self.histogram.is_none() {
            // It grows with the times; one for a day has 24 KB (two digits) or 190 KB.
            self.histogram = Histogram::new(DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            // Up to the longest time every size can be allocated.
            let _ = histogram.record(tenths);
        }
    }

    /// Adds other times.
    pub(super) fn merge(&mut self, other: &Self) {
        self.longest = self.longest.max(other.longest);
        match (&mut self.histogram, &other.histogram) {
            (_, None) => {}
            (None, Some(_)) => self.histogram.clone_from(&other.histogram),
            (Some(histogram), Some(other)) => {
                // As in `record`.
                let _ = histogram.add(other);
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    pub(super) fn percentiles(&self) -> Percentiles {
        Percentiles {
            p50: self.quantile(0.50),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
            max: self.longest(),
        }
    }

    /// The time below which that share stays, in milliseconds; none without times.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref()?;
        Some(millis(histogram.value_at_quantile(share).min(self.longest)))
    }

    /// In milliseconds; none without times.
    pub(super) fn longest(&self) -> Option<f64> {
        self.histogram.as_ref()?;
        Some(millis(self.longest))
    }
}

/// Tenths as milliseconds.
#[expect(
    clippy::cast_precision_loss,
    reason = "times above a day count as a day"
)]
pub(super) fn millis(tenths: u64) -> f64 {
    tenths.min(LONGEST) as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_their_digits() {
        let mut times = Times::<3>::default();
        assert_eq!((times.count(), times.quantile(0.5)), (0, None));
        for tenths in 1..=10_000 {
            times.record(Some(tenths));
        }
        times.record(None);
        assert_eq!(times.count(), 10_000);
        assert_eq!(times.longest(), Some(1_000.0));
        for (share, expected) in [(0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let found = times.quantile(share).unwrap();
            assert!((found - expected).abs() <= expected / 1_000.0, "{found}");
        }
    }

    #[test]
    fn no_time_is_too_long_or_too_short() {
        let mut times = Times::<3>::default();
        times.record(Some(0));
        times.record(Some(u64::MAX));
        assert_eq!(times.count(), 2);
        assert_eq!(times.quantile(0.5), Some(0.0));
        assert_eq!(times.longest(), Some(86_400_000.0));
    }
}
