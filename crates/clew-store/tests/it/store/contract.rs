//! One contract for all stores: each check runs on SQLite, PostgreSQL and
//! files. What files do not keep, they refuse with a word of what to do.
//! What was asked for as a test by name bears that name.

mod clearing;
mod conversation;
mod copying;
mod facts;
mod lasting;
mod lists;
mod mending;
mod purging;
mod snapshots;
mod whose;

pub(super) use copying::everything;
