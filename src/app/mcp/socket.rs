//! The operator's own programs come through a socket in `STATE_DIR`, by `clew mcp serve`: first
//! a line that says as whom they read, then a message of MCP in each.
//!
//! Invariant: only the user who runs the bot may come.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clew_mcp::{Reply, Step};
use futures_util::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::select;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::{Caller, Door};
use crate::telemetry::event::ServedBy;
use clew_context::model::{GuildId, UserId};

/// The socket's name in the state folder.
pub const SOCKET: &str = "mcp.sock";
/// The most connections at once; more are told so.
const CONNECTIONS: usize = 8;
/// The pause after a connection that could not be accepted, for lack of files for instance.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// How long a program may take to read an answer.
const WRITE: Duration = Duration::from_secs(10);
/// The most bytes of a line.
const MAX_BYTES: u64 = 64 << 10;

/// The first line.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Greeting {
    pub user: UserId,
    pub guild: GuildId,
}

/// Answers until dropped. What cannot be listened on is only warned of.
pub(super) async fn serve(path: PathBuf, door: Arc<Door>) {
    match listen(&path) {
        Ok(listener) => {
            let _bound = Bound(path);
            accept(listener, door).await;
        }
        Err(error) => tracing::warn!(path = %path.display(), %error,
            "`clew mcp serve` cannot reach this bot"),
    }
}

/// The socket goes with who listens.
struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        // The next process replaces what stays.
        let _ = fs::remove_file(&self.0);
    }
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        // Of an earlier process: the state folder is locked.
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn accept(listener: UnixListener, door: Arc<Door>) {
    let mut open = JoinSet::new();
    let us = rustix::process::geteuid().as_raw();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a program of `clew mcp serve` could not be let in");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while open.try_join_next().is_some() {}
        // Somebody may have come before the permissions were set.
        if !stream.peer_cred().is_ok_and(|peer| peer.uid() == us) {
            continue;
        }
        if open.len() < CONNECTIONS {
            open.spawn(converse(stream, Arc::clone(&door)));
        } else {
            let full = Reply::full().body.unwrap_or_default();
            // There is room for a line in what was just connected.
            let _ = stream.try_write(format!("{full}\n").as_bytes());
        }
    }
}

/// Ends when the other side has and its calls are answered, or when it is gone.
pub(super) async fn converse(stream: UnixStream, door: Arc<Door>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let greeting = line(&mut read).await?;
    let Greeting { user, guild } = serde_json::from_slice(&greeting)?;
    let caller = Arc::new(Caller {
        user,
        guilds: BTreeSet::from([guild]),
        by: ServedBy::Socket,
    });
    let lines = stream::unfold(read, async |mut read| {
        let line = line(&mut read).await.ok()?;
        Some((line, read))
    });
    let mut lines = pin!(lines.fuse());
    // They go on while an answer is being written, and are dropped with this.
    let mut calls = JoinSet::new();
    let mut running: HashMap<String, AbortHandle> = HashMap::new();
    loop {
        let reply = select! {
            biased;
            Some(done) = calls.join_next() => match done {
                Ok((id, reply)) => {
                    running.remove(&id);
                    reply
                }
                // It was cancelled.
                Err(_) => continue,
            },
            Some(message) = lines.next() => match door.step(&message, None) {
                Step::Answer(reply) => reply,
                Step::Call(asked) => {
                    let id = asked.id().to_string();
                    let (door, caller) = (Arc::clone(&door), Arc::clone(&caller));
                    let of = id.clone();
                    let call = async move { (of, door.answer(&caller, asked).await) };
                    running.insert(id, calls.spawn(call));
                    continue;
                }
                Step::Cancel(id) => {
                    running.remove(&id.to_string()).inspect(AbortHandle::abort);
                    continue;
                }
            },
            else => return Ok(()),
        };
        if let Some(body) = reply.body {
            let line = format!("{body}\n");
            timeout(WRITE, write.write_all(line.as_bytes())).await??;
        }
    }
}

async fn line(read: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    read.take(MAX_BYTES).read_until(b'\n', &mut line).await?;
    match line.last() {
        Some(b'\n') => Ok(line),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
