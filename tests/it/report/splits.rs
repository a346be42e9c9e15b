//! However lines are spread over files, the report is the same.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::world::{Turn, a_week, folder, options, report_in, turn};

/// Lines of all kinds, some of which nobody can read.
fn pool() -> Vec<String> {
    let mut lines: Vec<String> = a_week().lines().map(str::to_owned).collect();
    let again = turn(&Turn {
        id: 7,
        again: true,
        timeouts: 1,
        ..Turn::default()
    });
    lines.extend(again.lines().map(str::to_owned));
    lines.extend(
        [
            "",
            "   ",
            "not json",
            "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"event\":\"merge_ok\",\"detail\":{}}",
            "{\"ts\":\"2026-01-02T03:04:05.678Z\",\"event\":\"new_in_2030\",\"detail\":{\"ms\":\"x\"}}",
            "{\"ts\":\"2026-01-02T03:04:{\"ts\":\"2026-01-02T03:04:05.678Z\",\"event\":\"started\"}",
            "{\"ts\":\"1999-01-02T03:04:05.678Z\",\"event\":\"turn_done\",\"turn_id\":\"tff\"}",
        ]
        .map(str::to_owned),
    );
    lines.push("x".repeat(70_000));
    lines
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Without what says how the lines were spread.
fn figures(mut report: Value) -> Value {
    report["input"]["files"] = json!(null);
    report["input"]["unreadable_at"] = json!(null);
    report
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_split_gives_the_same_report(
        order in proptest::collection::vec(0..pool().len(), 1..120),
        cuts in proptest::collection::vec(0..120_usize, 0..4),
        compressed in any::<u8>(),
    ) {
        let pool = pool();
        let lines: Vec<&str> = order.iter().map(|at| pool[*at].as_str()).collect();
        let whole = lines.join("\n") + "\n{\"event\":\"started\",\"ts\":\"2026-01-02T03:04:05.678Z\"}\n";
        let one = folder(&[("clew.0.jsonl", whole.as_bytes())]);
        let expected = figures(report_in(one.path(), &options()));

        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % lines.len()).collect();
        cuts.extend([0, lines.len()]);
        cuts.sort_unstable();
        let parts: Vec<String> = cuts
            .windows(2)
            .map(|ends| lines[ends[0]..ends[1]].iter().flat_map(|line| [line, "\n"]).collect())
            .collect();
        let several = folder(&[]);
        for (number, part) in parts.iter().enumerate() {
            let is_last = number + 1 == parts.len();
            let part = if is_last {
                format!("{part}{{\"event\":\"started\",\"ts\":\"2026-01-02T03:04:05.678Z\"}}\n")
            } else {
                part.clone()
            };
            let is_compressed = compressed >> number & 1 == 1;
            let name = format!("clew.{number}.jsonl{}", if is_compressed { ".gz" } else { "" });
            let bytes = if is_compressed { gzip(part.as_bytes()) } else { part.into_bytes() };
            std::fs::write(several.path().join(name), bytes).unwrap();
        }
        prop_assert_eq!(figures(report_in(several.path(), &options())), expected);
    }
}
