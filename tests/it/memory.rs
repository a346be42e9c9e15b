//! What is remembered, through whole turns.

mod learn;
mod lesson;
