//! The bot's pure decisions, in addition to those of `clew-context`: [`history`]
//! chooses the stored turns that go into a prompt, [`facts`] and [`extract`] decide
//! what is remembered, [`sources`] judges stored texts by what they were made from,
//! [`deliver`] cuts the answer into messages, [`daily_tokens`] counts what may be used of
//! the model in a day, [`rate_limit`] how often something happens within a minute,
//! [`citations`] links what an answer cites.
//!
//! Invariant: `engine` imports only domain types (`model`, `clew-context`, the
//! `model` of `clew-store`), does no IO, and reads no clock, environment or
//! randomness.

pub mod alerts;
pub mod catch_up;
pub mod citations;
pub mod daily_tokens;
pub mod deliver;
pub mod extract;
pub mod facts;
pub mod history;
pub mod rate_limit;
pub mod sources;
