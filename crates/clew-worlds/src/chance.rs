//! All chance comes from a world's seed: its own, and what the bot and its libraries ask the
//! system for.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;

/// A random number generator (`SplitMix64`): small, and the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.any().checked_rem(end).unwrap_or_default()
    }

    /// A number from `from` to `to`, both included.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to.saturating_sub(from) + 1)
    }

    /// True this often in a hundred.
    pub(crate) fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let at = self.below(choices.len() as u64);
        choices.get(usize::try_from(at).ok()?).copied()
    }

    /// Another generator, whose numbers do not depend on how many are taken from this one.
    pub(crate) fn branch(&mut self) -> Self {
        Self(self.any())
    }
}

thread_local! {
    /// What the system's chance on this thread comes from instead.
    static OF_SYSTEM: Cell<Option<u64>> = const { Cell::new(None) };
}

/// From here on the system's chance comes from a seed on this thread. Must come first on a
/// thread: its hash maps keep the first keys that they got.
pub(crate) fn seed_system(seed: u64) {
    OF_SYSTEM.set(Some(seed));
}

/// Takes the place of libc's function in this program, so that hash maps, ids and TLS of the
/// libraries have no chance of their own.
///
/// # Safety
/// `buffer` is valid for writes of `length` bytes, as for libc's.
#[expect(
    unsafe_code,
    reason = "libraries reach the system's chance by this symbol alone"
)]
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: u32) -> isize {
    if buffer.is_null() {
        return -1;
    }
    // SAFETY: whoever calls promises that the bytes may be written.
    let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
    if fill(bytes) {
        isize::try_from(length).unwrap_or(isize::MAX)
    } else {
        -1
    }
}

fn fill(bytes: &mut [u8]) -> bool {
    let Some(seed) = OF_SYSTEM.get() else {
        let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes));
        return read.is_ok();
    };
    let mut chance = Chance::new(seed);
    for part in bytes.chunks_mut(8) {
        let word = chance.any().to_le_bytes();
        part.copy_from_slice(&word[..part.len()]);
    }
    OF_SYSTEM.set(Some(chance.any()));
    true
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    fn order(seed: u64) -> Vec<u32> {
        let made = thread::spawn(move || {
            seed_system(seed);
            let set: HashSet<u32> = (0..100).collect();
            set.into_iter().collect()
        });
        made.join().unwrap()
    }

    #[test]
    fn hash_maps_have_the_order_of_the_seed() {
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
    }
}
