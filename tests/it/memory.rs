//! What the bot remembers, through whole turns, on every back end.

mod agents;
mod assembly;
mod deletions;
mod facts;
mod files;
mod history;
mod learn;
mod lesson;
mod loading;
mod mishaps;
mod place;
mod recalled;
mod scopes;
mod unseen;
