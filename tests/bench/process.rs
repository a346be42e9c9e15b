//! What a process uses, from `/proc`.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The page size of Linux on all but exotic machines.
const PAGE_BYTES: u64 = 4_096;

/// A process by its id.
#[derive(Clone, Copy)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// This one.
    pub(crate) fn own() -> Self {
        Self(std::process::id())
    }

    /// CPU time of its living threads, user and system, in nanoseconds.
    pub(crate) fn cpu(self) -> Duration {
        let threads = fs::read_dir(self.path("task")).unwrap();
        let nanoseconds = threads.filter_map(|thread| {
            let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanoseconds.sum())
    }

    /// Bytes of memory that it holds now.
    pub(crate) fn resident(self) -> u64 {
        let text = fs::read_to_string(self.path("statm")).unwrap();
        let pages: u64 = text.split_whitespace().nth(1).unwrap().parse().unwrap();
        pages * PAGE_BYTES
    }

    /// The most bytes of memory that it ever held; nothing once it has ended.
    pub(crate) fn peak(self) -> Option<u64> {
        let text = fs::read_to_string(self.path("status")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kilobytes * 1_024)
    }

    /// Bytes that it has passed to the system to write, into files or anything else.
    pub(crate) fn written(self) -> u64 {
        self.io("wchar:")
    }

    /// In how many calls.
    pub(crate) fn writes(self) -> u64 {
        self.io("syscw:")
    }

    /// How often it has read.
    pub(crate) fn reads(self) -> u64 {
        self.io("syscr:")
    }

    fn io(self, name: &str) -> u64 {
        let text = fs::read_to_string(self.path("io")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse().unwrap()
    }

    /// How many entries a folder of `/proc/PID` has: `fd` its open files, `task` its threads.
    pub(crate) fn count(self, folder: &str) -> usize {
        fs::read_dir(self.path(folder)).unwrap().count()
    }

    fn path(self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.0))
    }
}

/// As mebibytes.
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

/// As milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
