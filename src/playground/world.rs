//! The playground's world: two small servers with channels, threads, a forum and direct
//! conversations, as `world.json` describes them.

use crate::sandbox::plan::{self, WorldPlan};
use clew_simulator::{Id, World};

/// The world before anybody asks, and what a newcomer may ask where.
pub(super) fn build() -> (World, (Id, String)) {
    let (world, cast) = plan::read::<WorldPlan>(include_str!("world.json")).build();
    let ask = cast.text("{bot} what is this about, and what was tried so far?");
    (world, (cast.place("Leak at the stern"), ask))
}
