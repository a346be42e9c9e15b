//! Pure decisions: values in, plans and texts out.
//!
//! [`route`] says whether a message is for us, [`target`] what is answered,
//! [`chain`] and [`select`] which messages belong to it, [`render`] and
//! [`block`] what they look like under the caps, [`assemble`] what the model
//! gets, [`deliver`] how the answer is cut into messages.
//!
//! Invariant: engine imports model alone, does no IO, reads no clock,
//! environment or randomness.

pub mod access;
pub mod admission;
pub mod assemble;
pub mod block;
pub mod chain;
pub mod cluster;
pub mod deliver;
pub mod eligible;
pub mod facts;
pub mod frame;
pub mod history;
pub mod learn;
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
