//! One contract for all stores: each check runs on SQLite, PostgreSQL and
//! files. What files cannot hold, they refuse, and say what to do. Tests that
//! were requested by name have that name.

mod clearing;
mod conversation;
mod copying;
mod early;
mod exchanges;
mod facts;
mod lasting;
mod lists;
mod mending;
mod peeking;
mod purging;
mod receipts;
mod rule;
mod snapshots;
mod sources;
mod whose;

pub(super) use copying::{everything, sorted};
