//! Pure decisions: values in, plans and texts out.
//!
//! [`route`] decides whether a message is for us, [`target`] which message is
//! answered, [`chain`], [`links`], [`conversation`] and [`select`] which messages belong to it,
//! [`recall`] which earlier exchanges match it, [`docs`] which passages of documents. [`prepare`]
//! makes the prompt of what was collected: [`render`] and [`block`] turn messages
//! into text within the caps, [`assemble`] puts it together. [`status`] describes
//! our other turns, [`recheck`] judges what was collected once more, [`images`] puts
//! images beside the question, and [`echo`] removes
//! repeated frames from the answer.
//!
//! Invariant: `engine` imports `model` only, does no IO, and reads no clock,
//! environment or randomness.

pub mod access;
pub mod admission;
pub mod assemble;
pub mod audience;
pub mod block;
pub mod chain;
mod charset;
pub mod cluster;
pub mod conversation;
pub mod docs;
pub mod echo;
pub mod eligible;
pub mod frame;
pub mod images;
mod least;
pub mod links;
pub mod meaning;
pub mod nonce;
pub mod place;
pub mod prepare;
pub mod recall;
pub mod recheck;
pub mod render;
pub mod route;
pub mod sanitise;
pub mod select;
pub mod shorten;
pub mod status;
pub mod target;
pub mod turn;
pub mod window;
pub mod words;
