//! The collectors with a world in memory: what engine and collect decide of the
//! rules in `docs/behaviour.md`.

mod asker;
mod bounds;
mod chain;
mod conversation;
mod files;
mod fruitless;
mod held;
mod images;
mod links;
mod lone;
mod opt_out;
mod ours;
mod place;
mod proxies;
mod routing;
mod shown;
mod spared;
mod starter;
mod tail;
mod target;
mod thread;
mod thread_select;
mod window;
mod withheld;
