//! An order-independent checksum of entries.

use sha2::{Digest, Sha256};

use super::super::Record;

/// The number of entries and the sum of their digests. Stores with equal sums
/// hold the same entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sum {
    pub(super) entries: u64,
    digests: [u64; 4],
}

impl Sum {
    pub(super) fn add(&mut self, record: &Record) {
        self.entries += 1;
        let digest = Sha256::digest(record.to_line());
        for (sum, part) in self.digests.iter_mut().zip(digest.chunks_exact(8)) {
            let part = part
                .iter()
                .fold(0, |part, byte| part << 8 | u64::from(*byte));
            *sum = sum.wrapping_add(part);
        }
    }
}
