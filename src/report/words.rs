//! Figures and names as people read them.

pub use clew_context::engine::shorten::with_thousands as grouped;

/// `1 line`, `2 lines`.
pub(super) fn many(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number))
}

/// Milliseconds: `0.4 ms`, `45 ms`, `1.2 s`, `12 min`, `3.4 h`; `-` if none.
pub(super) fn time(millis: Option<f64>) -> String {
    match millis {
        None => "-".to_owned(),
        Some(millis) if millis < 9.95 => format!("{millis:.1} ms"),
        Some(millis) if millis < 999.5 => format!("{millis:.0} ms"),
        Some(millis) if millis < 99_950.0 => format!("{:.1} s", millis / 1_000.0),
        Some(millis) if millis < 5_999_500.0 => format!("{:.1} min", millis / 60_000.0),
        Some(millis) => format!("{:.1} h", millis / 3_600_000.0),
    }
}

/// A share: `97.2 %`; `-` if none.
pub(super) fn percent(share: Option<f64>) -> String {
    match share {
        None => "-".to_owned(),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

/// An amount: four decimals below one, else two; `-` if none.
pub(super) fn cost(amount: Option<f64>) -> String {
    match amount {
        None => "-".to_owned(),
        Some(amount) if amount < 1.0 => format!("{amount:.4}"),
        Some(amount) => format!("{amount:.2}"),
    }
}

/// Bytes: `12 KB`, `1.2 GB`.
#[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
pub(super) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        small if small < 1e6 => format!("{:.0} KB", small / 1e3),
        middle if middle < 1e9 => format!("{:.1} MB", middle / 1e6),
        large => format!("{:.1} GB", large / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            (many(1, "line"), many(2_000, "line")),
            ("1 line".into(), "2,000 lines".into())
        );
        let times = [0.0, 9.94, 9.96, 999.4, 1_234.0, 99_960.0, 6e6, 86_400_000.0];
        let expected = [
            "0.0 ms", "9.9 ms", "10 ms", "999 ms", "1.2 s", "1.7 min", "1.7 h", "24.0 h",
        ];
        assert_eq!(times.map(|millis| time(Some(millis))), expected);
        assert_eq!(percent(Some(0.9721)), "97.2 %");
        assert_eq!(
            [0.0123, 12.345].map(|amount| cost(Some(amount))),
            ["0.0123", "12.35"]
        );
        assert_eq!(
            [12_000, 1_200_000, 1_234_567_890].map(bytes),
            ["12 KB", "1.2 MB", "1.2 GB"]
        );
        assert_eq!([time(None), percent(None), cost(None)], ["-", "-", "-"]);
    }
}
