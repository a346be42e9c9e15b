//! What the bot remembers, tested through whole turns on every back end.

mod agents;
mod assembly;
mod bounded;
mod deletions;
mod departed;
mod erased;
mod extraction;
mod facts;
mod files;
mod gaps;
#[cfg(feature = "postgres")]
mod gone;
mod history;
mod learn;
mod loading;
mod members;
mod mishaps;
#[cfg(feature = "postgres")]
mod outage;
mod owner;
pub(crate) mod place;
mod races;
mod recalled;
mod recalling;
mod scopes;
mod unseen;
mod whose;
