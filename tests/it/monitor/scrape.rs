//! Reads what a scrape gives, and holds it to the format: each series belongs to a metric with a type and a
//! help, stands once, and histograms add up.

use std::collections::{BTreeMap, BTreeSet};

/// A series' labels.
pub(super) type Labels = BTreeMap<String, String>;

#[derive(Debug, Default)]
pub(super) struct Scrape {
    /// The type of each metric, without the suffix of its series.
    pub(super) types: BTreeMap<String, String>,
    /// The values of all series, by the name as queries have it.
    pub(super) series: BTreeMap<String, BTreeMap<Labels, f64>>,
    pub(super) text: String,
}

impl Scrape {
    #[track_caller]
    pub(super) fn parse(text: &str) -> Self {
        let body = text.strip_suffix("# EOF\n").expect("the end is marked");
        let mut scrape = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        let mut helps = BTreeSet::new();
        for line in body.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                assert!(helps.insert(name.to_owned()), "{name} twice");
                assert!(help.ends_with('.') && !help.ends_with(".."), "{line}");
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert!(helps.contains(name), "{name} has no help");
                scrape.types.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with("# UNIT ") {
                scrape.take(line);
            }
        }
        scrape.check_histograms();
        scrape
    }

    #[track_caller]
    fn take(&mut self, line: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect("closed")),
            None => (series, ""),
        };
        assert!(self.family(name).is_some(), "{name} has no type");
        let all = self.series.entry(name.to_owned()).or_default();
        let before = all.insert(labels_of(labels), value.parse().unwrap());
        assert_eq!(before, None, "twice: {line}");
    }

    /// The metric that a series' name belongs to, and its type.
    pub(super) fn family(&self, name: &str) -> Option<(&str, &str)> {
        let suffixes: [(&str, &[&str]); 3] = [
            ("counter", &["_total"]),
            ("gauge", &[""]),
            ("histogram", &["_bucket", "_count", "_sum"]),
        ];
        let found = suffixes.into_iter().flat_map(|(kind, suffixes)| {
            let families = suffixes.iter().filter_map(|end| name.strip_suffix(end));
            families.map(move |family| (family, kind))
        });
        let mut known = found.filter_map(|(family, kind)| {
            let (family, known) = self.types.get_key_value(family)?;
            (known == kind).then_some((family.as_str(), known.as_str()))
        });
        known.next()
    }

    fn check_histograms(&self) {
        for (name, kind) in &self.types {
            if kind != "histogram" {
                continue;
            }
            let counts = self.series.get(&format!("{name}_count"));
            for (labels, count) in counts.into_iter().flatten() {
                let buckets = &self.series[&format!("{name}_bucket")];
                let of = buckets.iter().filter_map(|(of, value)| {
                    let mut of = of.clone();
                    let bound = of.remove("le")?;
                    let bound = bound.replace("+Inf", "inf").parse::<f64>().unwrap();
                    (of == *labels).then_some((bound, *value))
                });
                let mut of: Vec<(f64, f64)> = of.collect();
                of.sort_by(|one, other| one.0.total_cmp(&other.0));
                assert!(of.is_sorted_by(|one, next| one.1 <= next.1), "{name}");
                assert_eq!(of.last(), Some(&(f64::INFINITY, *count)), "{name}");
            }
        }
    }

    /// The same of counts.
    #[track_caller]
    pub(super) fn count(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        whole(self.sum(name, labels))
    }

    /// The sum of all series of a name that have these labels.
    #[track_caller]
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let series = self.series.get(name).into_iter().flatten();
        let has = |of: &Labels| {
            let mut labels = labels.iter();
            labels.all(|(label, value)| of.get(*label).is_some_and(|is| is == value))
        };
        series
            .filter(|(of, _)| has(of))
            .map(|(_, value)| value)
            .sum()
    }
}

/// A count.
#[track_caller]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "it is checked to be a small whole number"
)]
pub(super) fn whole(value: f64) -> u64 {
    let count = value.round() as u64;
    assert!(value.round() == value && value >= 0.0, "{value}");
    count
}

fn labels_of(mut text: &str) -> Labels {
    let mut labels = Labels::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"").unwrap();
        let mut value = String::new();
        let mut rest = rest.chars();
        loop {
            match rest.next().expect("a closing quote") {
                '"' => break,
                '\\' => value.push(rest.next().expect("an escaped character")),
                other => value.push(other),
            }
        }
        assert_eq!(labels.insert(name.to_owned(), value), None);
        text = rest.as_str().trim_start_matches(',');
    }
    labels
}
