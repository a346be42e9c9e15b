//! A server that is a process of ours: its environment, its end, and what it says on its
//! standard error.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

use crate::words;

/// Bytes of one message of a server at most.
pub(crate) const MAX_MESSAGE: usize = 8 * 1024 * 1024;

/// Bytes of a line of standard error that are looked at, and lines that are remembered for
/// whoever asks why a server ended.
const MAX_LINE: u64 = 4_000;
const LAST_LINES: usize = 5;
/// Lines of one server that are logged in a minute.
const LINES_A_MINUTE: usize = 60;
const MINUTE: Duration = Duration::from_mins(1);

/// A server's process and all that it started: they are one group, and end with this.
pub(crate) struct Process {
    group: Option<Pid>,
    /// Waited for by tokio when it is dropped.
    _child: Child,
    /// The last lines of its standard error.
    pub(crate) said: Said,
}

/// The last lines that a process wrote to its standard error.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<VecDeque<String>>>);

impl Said {
    /// The lines, oldest first, as one text.
    pub(crate) fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" / ")
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // Gone already: there is nothing to end.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Process {
    /// Starts the program with what its entry names and nothing else. `secrets` are taken out of
    /// what it writes to its standard error.
    pub(crate) fn start(
        name: &str,
        command: &str,
        args: &[String],
        (inherited, variables): (&BTreeMap<String, String>, &BTreeMap<String, String>),
        cwd: Option<&Path>,
        secrets: &[String],
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut program = Command::new(command);
        program.args(args).env_clear();
        program.envs(inherited).envs(variables);
        if let Some(folder) = cwd {
            program.current_dir(folder);
        }
        program
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        program.process_group(0).kill_on_drop(true);
        let mut child = program.spawn()?;
        let group = child
            .id()
            .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pipe = || io::Error::other("its pipes are missing");
        let stdout = child.stdout.take().ok_or_else(pipe)?;
        let stdin = child.stdin.take().ok_or_else(pipe)?;
        let said = Said::default();
        if let Some(stderr) = child.stderr.take() {
            let secrets = secrets.to_vec();
            tokio::spawn(log(name.to_owned(), stderr, secrets, said.clone()));
        }
        Ok((
            Self {
                group,
                _child: child,
                said,
            },
            stdout,
            stdin,
        ))
    }
}

/// Logs each line until the process closes its standard error.
async fn log(name: String, stderr: ChildStderr, secrets: Vec<String>, said: Said) {
    let mut stderr = BufReader::new(stderr);
    let mut line = Vec::new();
    let (mut began, mut logged) = (Instant::now(), 0);
    loop {
        line.clear();
        let read = (&mut stderr)
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .await;
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = words::line(String::from_utf8_lossy(&line).trim_end(), &secrets);
        if text.is_empty() {
            continue;
        }
        if began.elapsed() >= MINUTE {
            (began, logged) = (Instant::now(), 0);
        }
        logged += 1;
        if logged <= LINES_A_MINUTE {
            tracing::debug!(server = name, "an MCP server says: {text}");
        }
        said.push(text);
    }
}

/// A reader of lines that fails at one that is longer than [`MAX_MESSAGE`].
pub(crate) struct ShortLines<R> {
    inner: R,
    line: usize,
}

impl<R> ShortLines<R> {
    pub(crate) const fn new(inner: R) -> Self {
        Self { inner, line: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ShortLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        let end = read.iter().rposition(|byte| *byte == b'\n');
        self.line = match end {
            Some(end) => read.len() - end - 1,
            None => self.line + read.len(),
        };
        if self.line > MAX_MESSAGE {
            let error = format!("a message of more than {MAX_MESSAGE} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(()))
    }
}
