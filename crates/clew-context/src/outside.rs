//! What a process has around it, and a simulation replaces: how requests reach a server, and
//! threads for work that blocks.
//!
//! Invariant: imports nothing of ours; whoever waits for it cannot tell which of both it is.

mod threads;
#[cfg(feature = "twilight")]
mod transport;

#[cfg(feature = "test-util")]
pub use threads::without_threads;
pub use threads::{blocking, has_threads};
#[cfg(feature = "twilight")]
pub use transport::{Http, SendError, Transport};
