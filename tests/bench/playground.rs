//! How soon `clew playground` prints its link.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 10;

pub(crate) fn print() {
    let mut took: Vec<Duration> = (0..RUNS).map(|_| start()).collect();
    took.sort_unstable();
    println!(
        "\nclew playground prints its link after {:.0} to {:.0} ms ({RUNS} starts)",
        took[0].as_secs_f64() * 1e3,
        took[RUNS - 1].as_secs_f64() * 1e3
    );
}

fn start() -> Duration {
    // What it keeps meanwhile goes with this folder.
    let folder = tempfile::TempDir::new().unwrap();
    let began = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_clew"))
        .arg("playground")
        .env_clear()
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let link = out
        .lines()
        .map(Result::unwrap)
        .find(|line| line.contains("http://"));
    let took = began.elapsed();
    assert!(link.is_some(), "no link");
    child.kill().unwrap();
    child.wait().unwrap();
    took
}
