//! Caches a character property that is slow to look up: it takes a search in
//! Unicode's tables, and every character of every text is checked several times.

use std::sync::OnceLock;

/// Characters in a block.
const BLOCK: u32 = 256;
/// Number of blocks for all code points.
const BLOCKS: usize = 0x11_0000 / BLOCK as usize;

/// The characters that have a property. Computed block by block when one of its
/// characters is first checked; 32 bytes per block.
pub(super) struct CharSet {
    holds: fn(char) -> bool,
    blocks: [OnceLock<[u64; 4]>; BLOCKS],
}

impl CharSet {
    #[expect(
        clippy::large_stack_arrays,
        reason = "it is made for statics, at compile time"
    )]
    pub(super) const fn new(holds: fn(char) -> bool) -> Self {
        Self {
            holds,
            blocks: [const { OnceLock::new() }; BLOCKS],
        }
    }

    pub(super) fn contains(&self, character: char) -> bool {
        let number = u32::from(character);
        let (block, place) = (number / BLOCK, number % BLOCK);
        let bits = self.blocks[block as usize].get_or_init(|| self.look_up(block));
        bits[place as usize / 64] >> (place % 64) & 1 == 1
    }

    fn look_up(&self, block: u32) -> [u64; 4] {
        let mut bits = [0; 4];
        for place in 0..BLOCK {
            let character = char::from_u32(block * BLOCK + place);
            if character.is_some_and(self.holds) {
                bits[place as usize / 64] |= 1 << (place % 64);
            }
        }
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static VOWELS: CharSet = CharSet::new(|character| "aeiouäö\u{10FFFF}".contains(character));

    #[test]
    fn each_character_is_as_the_property_says() {
        for character in '\0'..=char::MAX {
            let expected = (VOWELS.holds)(character);
            assert_eq!(VOWELS.contains(character), expected, "{character:?}");
        }
    }
}
