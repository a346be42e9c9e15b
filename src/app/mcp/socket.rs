//! The operator's own programs come through a socket in `STATE_DIR`, by `clew mcp serve`: first
//! a line that says as whom they read, then a message of MCP in each.
//!
//! Invariant: only the user who runs the bot may come.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::{Door, Who};
use clew_context::model::{GuildId, UserId};

/// The socket's name in the state folder.
pub const SOCKET: &str = "mcp.sock";
/// The most connections at once; more wait.
const CONNECTIONS: usize = 8;
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
        while open.len() >= CONNECTIONS {
            open.join_next().await;
        }
        while open.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        // Somebody may have come before the permissions were set.
        if stream.peer_cred().is_ok_and(|peer| peer.uid() == us) {
            open.spawn(converse(stream, Arc::clone(&door)));
        }
    }
}

/// Ends where the other side does, or says something that is no message.
async fn converse(stream: UnixStream, door: Arc<Door>) -> io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let greeting = line(&mut read).await?;
    let Greeting { user, guild } = serde_json::from_slice(&greeting)?;
    let who = Who { user, guild };
    loop {
        let message = line(&mut read).await?;
        let reply = door.answer(who, &message, None).await;
        if let Some(body) = reply.body {
            write.write_all(format!("{body}\n").as_bytes()).await?;
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
