//! What the system says of this process. Linux does; elsewhere nothing is told.

use std::fs;
use std::time::Duration;

/// What this process has used, and uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    /// Time of processors, in user and in system mode.
    pub(super) cpu: Duration,
    /// Memory that is not swapped out.
    pub(super) resident_bytes: u64,
    /// Open files and connections.
    pub(super) open_files: usize,
}

impl Usage {
    pub(super) fn now() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let open_files = fs::read_dir("/proc/self/fd").ok()?.count();
        Self::of(&stat, open_files)
    }

    /// The fields of `/proc/self/stat` are counted from 1 (`man proc_pid_stat`): 14 and 15 are
    /// the times in ticks, 24 is the memory in pages. The name, in parentheses, may hold
    /// anything.
    fn of(stat: &str, open_files: usize) -> Option<Self> {
        let (_, after_name) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = field(14)?.checked_add(field(15)?)?;
        let (per_second, page) = (
            rustix::param::clock_ticks_per_second(),
            rustix::param::page_size() as u64,
        );
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(per_second.max(1));
        Some(Self {
            cpu: Duration::from_nanos(u64::try_from(nanoseconds).ok()?),
            resident_bytes: field(24)?.checked_mul(page)?,
            open_files,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_process_does_not_shift_its_fields() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 700 300 0 0 20 0 1 0 99 1000000 512 0";
        for name in ["clew", "a) S 1 (b", ""] {
            let usage = Usage::of(&format!("7 ({name}) {rest}"), 5).unwrap();
            let ticks = u32::try_from(rustix::param::clock_ticks_per_second()).unwrap();
            assert_eq!(usage.cpu, Duration::from_secs(1000) / ticks, "{name}");
            assert_eq!(
                usage.resident_bytes,
                512 * rustix::param::page_size() as u64
            );
            assert_eq!(usage.open_files, 5);
        }
        assert_eq!(Usage::of("7 (clew) S 1", 5), None);
    }
}
