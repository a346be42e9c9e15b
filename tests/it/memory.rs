//! What the bot remembers, through whole turns, on every back end.

mod agents;
mod deletions;
mod facts;
mod files;
mod history;
mod learn;
mod lesson;
mod loading;
mod place;
mod scopes;
mod unseen;
