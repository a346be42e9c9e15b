//! Pure decisions: values in, plans and texts out.
//!
//! [`route`] says whether a message is for us, [`target`] what is answered,
//! [`chain`] and [`select`] which messages belong to it, [`render`] and
//! [`block`] what they look like under the caps, [`assemble`] what the model
//! gets, [`status`] what it is told of other turns, [`echo`] what of its answer
//! is not one.
//!
//! Invariant: engine imports model alone, does no IO, reads no clock,
//! environment or randomness.

pub mod access;
pub mod admission;
pub mod assemble;
pub mod block;
pub mod chain;
mod charset;
pub mod cluster;
pub mod echo;
pub mod eligible;
pub mod frame;
mod least;
pub mod meaning;
pub mod nonce;
pub mod render;
pub mod route;
pub mod sanitise;
pub mod select;
pub mod shorten;
pub mod status;
pub mod target;
pub mod window;
