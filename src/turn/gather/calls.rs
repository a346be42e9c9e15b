//! The calls with which a turn collects.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clew_context::discord::ReadCall;

/// The calls to Discord of one turn, noted for an observer.
#[derive(Debug, Default)]
pub(in crate::turn) struct NotedCalls(Mutex<Vec<ReadCall>>);

impl NotedCalls {
    pub(in crate::turn) fn note(&self, call: ReadCall) {
        self.lock().push(call);
    }

    pub(in crate::turn) fn take(&self) -> Vec<ReadCall> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ReadCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
