//! Pure decisions of the bot beside those of `clew-context`: [`history`] says
//! which stored turns go into a prompt, [`facts`] and [`learn`] what is
//! remembered, [`deliver`] how the answer is cut into messages.
//!
//! Invariant: engine imports words alone (`model`, `clew-context`, the
//! `model` of `clew-store`), does no IO, reads no clock, environment or
//! randomness.

pub mod deliver;
pub mod facts;
pub mod history;
pub mod learn;
