//! Pure decisions: values in, plans and texts out.
//!
//! Invariant: engine imports model alone, does no IO, reads no clock, environment or randomness.

pub mod cluster;
pub mod deliver;
pub mod meaning;
pub mod nonce;
pub mod sanitise;
pub mod shorten;
