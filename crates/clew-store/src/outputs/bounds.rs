//! What all outputs together may take, and who makes room.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use super::ContextPointer;
use clew_context::model::{GuildId, UserId};

/// What all outputs together may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputLimits {
    /// How many; the oldest of whoever has most make room.
    pub pointers: usize,
    /// Bytes of their files.
    pub bytes: u64,
    /// How long one is kept at most.
    pub age: Duration,
    /// A conversation's outputs go once nobody used
    /// them for so long.
    pub idle: Duration,
}

impl Default for OutputLimits {
    fn default() -> Self {
        Self {
            pointers: 1_000,
            bytes: 256 << 20,
            age: Duration::from_hours(24),
            idle: Duration::from_hours(1),
        }
    }
}

/// Who has to make room: a server, or in direct messages a user, and within it a
/// person.
type Holder = (Option<GuildId>, UserId);

/// The position of the output that goes next: of the server that takes most
/// there the person who takes most, of theirs the oldest; where several take as
/// much, whose oldest output is older. `pointers` are sorted by age.
pub(super) fn next_to_go(
    pointers: &[ContextPointer],
    weight: impl Fn(&ContextPointer) -> u64,
) -> Option<usize> {
    let of_server = |pointer: &ContextPointer| server_of(holder(pointer));
    let server = heaviest(pointers.iter().map(|one| (of_server(one), weight(one))))?;
    let there = pointers.iter().filter(|one| of_server(one) == server);
    let person = heaviest(there.map(|one| (holder(one), weight(one))))?;
    pointers.iter().position(|one| holder(one) == person)
}

fn holder(pointer: &ContextPointer) -> Holder {
    (pointer.guild, pointer.owner)
}

/// A direct conversation is a server of its own.
const fn server_of((guild, user): Holder) -> (Option<GuildId>, Option<UserId>) {
    match guild {
        Some(_) => (guild, None),
        None => (None, Some(user)),
    }
}

/// The key with the largest sum; of equals the one that comes first.
fn heaviest<K: Copy + Eq + Hash>(weights: impl Iterator<Item = (K, u64)>) -> Option<K> {
    let mut order = Vec::new();
    let mut sums: HashMap<K, u64> = HashMap::new();
    for (key, weight) in weights {
        let sum = sums.entry(key).or_insert_with(|| {
            order.push(key);
            0
        });
        *sum += weight;
    }
    order
        .into_iter()
        .rev()
        .max_by_key(|key| sums.get(key).copied())
}
