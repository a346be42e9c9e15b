//! What the bot remembers, through whole turns, on every back end.

mod agents;
mod assembly;
mod deletions;
mod departed;
mod erased;
mod facts;
mod files;
#[cfg(feature = "postgres")]
mod gone;
mod history;
mod learn;
mod lesson;
mod loading;
mod members;
mod mishaps;
mod owner;
mod place;
mod recalled;
mod scopes;
mod unseen;
