//! Random choices that can be repeated by seed.

/// `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let bound = u64::try_from(from.len()).unwrap();
        from[usize::try_from(self.below(bound)).unwrap()]
    }
}

/// The seed in `STORE_TEST_SEED`, else this one.
#[expect(
    clippy::disallowed_methods,
    reason = "a failed run is repeated with the seed that it printed"
)]
pub(super) fn seed(usual: u64) -> u64 {
    let named = std::env::var("STORE_TEST_SEED").ok();
    named.map_or(usual, |seed| seed.parse().unwrap())
}
