//! The log lines that the code under test writes.

use std::io;
use std::sync::{Arc, Mutex};

/// Everything logged on this thread while the guard lives.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// With a single subscriber, tracing assumes that it serves all threads, so a
    /// test running in parallel could disable a log line for everybody. A second
    /// subscriber, which receives nothing, prevents that.
    pub(crate) fn start(&self) -> (tracing::Dispatch, tracing::subscriber::DefaultGuard) {
        let log = self.clone();
        let lines = tracing_subscriber::fmt().with_writer(move || log.clone());
        let lines = lines.with_ansi(false).finish();
        let other = tracing::Dispatch::new(tracing_subscriber::registry());
        (other, tracing::subscriber::set_default(lines))
    }

    /// The lines since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}
