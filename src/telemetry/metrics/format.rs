//! The two formats of a scrape, and which one is asked for. The library writes `OpenMetrics`;
//! Prometheus's older text format is made from that, line by line.

/// The media type of `OpenMetrics`, without parameters.
const OPEN_METRICS: &str = "application/openmetrics-text";

/// How a scrape is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsFormat {
    /// `OpenMetrics` 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4, which every tool reads.
    Text,
}

impl MetricsFormat {
    /// What an `Accept` header prefers: `OpenMetrics` only where it is named, and no less wanted
    /// than text.
    pub fn asked_by(accept: &str) -> Self {
        let (mut open_metrics, mut text) = (0.0_f32, 0.0_f32);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            let wanted = weight(parts.clone());
            if media.eq_ignore_ascii_case(OPEN_METRICS) && is_known(parts) {
                open_metrics = open_metrics.max(wanted);
            } else if ["text/plain", "text/*", "*/*"].contains(&&*media.to_ascii_lowercase()) {
                text = text.max(wanted);
            }
        }
        if open_metrics > 0.0 && open_metrics >= text {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// What the library wrote, in this format.
    pub(super) fn of(self, open_metrics: String) -> String {
        match self {
            Self::OpenMetrics => open_metrics,
            Self::Text => text(&open_metrics),
        }
    }
}

/// The parameter `q`; 1 without one, 0 of one that is no number.
fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> f32 {
    let q = parameters.find_map(|one| one.strip_prefix("q="));
    q.map_or(1.0, |q| q.parse().unwrap_or(0.0))
}

/// Whether a version is asked for that we write; 0.0.1 was the draft of 1.0.0.
fn is_known<'a>(mut parameters: impl Iterator<Item = &'a str>) -> bool {
    let version = parameters.find_map(|one| one.strip_prefix("version="));
    version.is_none_or(|version| ["1.0.0", "0.0.1"].contains(&version.trim_matches('"')))
}

/// Here a counter's name includes its suffix, other kinds than these are unknown, and units and
/// the end are not marked. The values read alike.
fn text(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len());
    let mut help = None;
    for line in open_metrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            text.push_str(&format!("{line}\n"));
            continue;
        };
        match comment.split_once(' ') {
            Some(("HELP", rest)) => help = rest.split_once(' '),
            Some(("TYPE", rest)) => {
                let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
                let (suffix, kind) = match kind {
                    "counter" => ("_total", kind),
                    "info" => ("_info", "gauge"),
                    "gauge" | "histogram" | "summary" => ("", kind),
                    _ => ("", "untyped"),
                };
                if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                    text.push_str(&format!("# HELP {name}{suffix} {help}\n"));
                }
                text.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_that_is_asked_for_is_given() {
        #[track_caller]
        fn check(accept: &str, expected: MetricsFormat) {
            assert_eq!(MetricsFormat::asked_by(accept), expected, "{accept:?}");
        }
        use MetricsFormat::{OpenMetrics, Text};
        check("", Text);
        check("*/*", Text);
        check("text/plain", Text);
        check("text/html, */*;q=0.1", Text);
        check("application/openmetrics-text", OpenMetrics);
        check("Application/OpenMetrics-Text; version=1.0.0", OpenMetrics);
        check(
            "application/openmetrics-text; version=\"0.0.1\"",
            OpenMetrics,
        );
        check("application/openmetrics-text;version=2.0.0", Text);
        check("application/openmetrics-text;q=0", Text);
        check("application/openmetrics-text;q=0.5,text/plain;q=0.7", Text);
        check(
            "application/openmetrics-text;q=0.5,text/plain;q=0.5",
            OpenMetrics,
        );
        check("application/openmetrics-text;q=x, text/plain", Text);
        // Prometheus 2.42, and 3.
        check(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;\
             q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            OpenMetrics,
        );
        check(
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
             application/openmetrics-text;version=0.0.1;q=0.4,\
             text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,\
             text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
            OpenMetrics,
        );
    }

    #[test]
    fn text_has_neither_units_nor_an_end_and_counters_have_their_whole_name() {
        let open_metrics = "\
# HELP clew_turns Turns that ended.
# TYPE clew_turns counter
clew_turns_total{outcome=\"answered\"} 2
# HELP clew_turn_duration_seconds From the trigger.
# TYPE clew_turn_duration_seconds histogram
# UNIT clew_turn_duration_seconds seconds
clew_turn_duration_seconds_sum 1.5
# HELP clew_build What runs.
# TYPE clew_build info
clew_build_info{version=\"1.0.0\"} 1
# EOF
";
        let expected = "\
# HELP clew_turns_total Turns that ended.
# TYPE clew_turns_total counter
clew_turns_total{outcome=\"answered\"} 2
# HELP clew_turn_duration_seconds From the trigger.
# TYPE clew_turn_duration_seconds histogram
clew_turn_duration_seconds_sum 1.5
# HELP clew_build_info What runs.
# TYPE clew_build_info gauge
clew_build_info{version=\"1.0.0\"} 1
";
        assert_eq!(text(open_metrics), expected);
    }
}
