//! What a process has around it, and a simulation replaces: how requests reach a server, and
//! threads for work that blocks, and until when it may act at all.
//!
//! Invariant: imports nothing of ours; whoever waits for it cannot tell which of both it is.

mod lease;
mod threads;
#[cfg(feature = "twilight")]
mod transport;

pub use lease::Lease;
#[cfg(feature = "test-util")]
pub use threads::without_threads;
pub use threads::{blocking, has_threads};
#[cfg(feature = "twilight")]
pub use transport::{Http, SendError, Sending, Transport};
