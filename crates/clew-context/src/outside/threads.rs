//! Threads for work that blocks.

use tokio::task::{JoinError, spawn_blocking};

/// Runs work that may block, on a thread for that; without threads, right here.
///
/// # Errors
/// The work panicked, or the runtime ends.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    if has_threads() {
        spawn_blocking(work).await
    } else {
        Ok(work())
    }
}

/// Whether work may go to threads of its own: not within [`without_threads`].
pub fn has_threads() -> bool {
    #[cfg(feature = "test-util")]
    {
        !inline::IS_ON.get()
    }
    #[cfg(not(feature = "test-util"))]
    {
        true
    }
}

/// Has all that this thread does run on it alone, in an order that depends on nothing else.
#[cfg(feature = "test-util")]
pub fn without_threads<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            inline::IS_ON.set(self.0);
        }
    }
    let _before = Before(inline::IS_ON.replace(true));
    work()
}

#[cfg(feature = "test-util")]
mod inline {
    use std::cell::Cell;

    thread_local! {
        /// Whether [`super::without_threads`] is on.
        pub(super) static IS_ON: Cell<bool> = const { Cell::new(false) };
    }
}
