//! What the bot remembers, through whole turns, on every back end.

mod agents;
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
mod owner;
mod place;
mod scopes;
mod unseen;
