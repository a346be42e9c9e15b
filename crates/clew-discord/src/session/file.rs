//! What a process leaves for the next, in our own format with a version: the session file, one
//! small JSON object that is written every second or so, and the guild file beside it, a server
//! in each line, which is written when a server has changed.
//!
//! Invariant: the guild file is never behind the session file's sequences, so that resuming
//! from these makes it whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::{Gap, ShardSession};
use crate::guild_state::{CurrentUser, GuildState, PartialGuild};
use clew_context::model::{OptedOut, UnixMillis};

/// Raised with every change of format; a file of another version counts as
/// damaged.
const VERSION: u32 = 2;
/// The same of the guild file. In 2 nothing was known of age restriction, and unknown is no:
/// Discord tells of the servers again in a new session.
const GUILDS_VERSION: u32 = 3;
/// Discord keeps a session for minutes; resuming an older one is not worth
/// trying.
const MOST_AGE: Duration = Duration::from_mins(5);
/// Keeps these fingerprints distinct from any other hash of the token.
const FINGERPRINT_KEY: &[u8] = b"clew session file, fingerprint of the token";

/// Enough to tell tokens apart.
const FINGERPRINT_BYTES: usize = 12;

/// The guild file is beside the session file.
pub const GUILD_FILE: &str = "guilds.jsonl";

/// The session file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFile {
    version: u32,
    /// When it was written, in Unix milliseconds.
    pub written: i64,
    /// Keyed hash of the token it belongs to.
    pub token: String,
    /// Who we are; none before the first READY.
    #[serde(flatten)]
    us: Option<CurrentUser>,
    /// One session per shard.
    pub shards: Vec<ShardSession>,
    /// Gaps that are not made up for.
    pub gaps: Vec<Gap>,
    /// When the process was last alive, if it noted nothing else since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alive: Option<i64>,
    /// Another process may have gone on in our place: of the file only `written` counts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_over: bool,
}

/// The first line of the guild file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GuildFile {
    version: u32,
    token: String,
}

/// What a process has left.
#[derive(Debug)]
pub struct Left {
    /// Its session file.
    pub session: SessionFile,
    /// The servers, which resuming does not send again.
    pub guilds: Vec<PartialGuild>,
}

/// How long a process heard what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heard {
    /// When it was last alive, by its clock.
    pub alive: Option<UnixMillis>,
    /// Until when all events had come and were handled. None if that is another process's.
    pub whole_until: Option<UnixMillis>,
}

/// Why there is no usable file; in each case we IDENTIFY.
#[derive(Debug, thiserror::Error)]
pub enum Absent {
    /// It does not exist.
    #[error("there is no session file")]
    Missing,
    /// It could not be read.
    #[error("the session file cannot be read")]
    Unreadable(#[source] io::Error),
    /// It is not in this version's format.
    #[error("the session file is damaged or of another version")]
    Damaged(#[source] Option<serde_json::Error>),
    /// It belongs to another token.
    #[error("the session file belongs to another token")]
    OtherToken,
    /// The process that left it was not the last one with its questions: see [`forget`].
    #[error("the process before was not the last one with this store")]
    Over(Heard),
    /// The guild file beside it is of no use, and resuming does not send the servers again.
    #[error("the servers beside the session file cannot be read")]
    NoGuilds {
        /// Why.
        #[source]
        error: Box<Absent>,
        /// What the session file says.
        heard: Heard,
    },
    /// Too old: Discord will have dropped the session.
    #[error("the session file is {seconds} s old, sessions last for minutes")]
    Old {
        /// How old.
        seconds: i64,
        /// What it says.
        heard: Heard,
    },
}

impl Absent {
    /// Expected after a first start, a long pause or a new token, or nothing is lost by it.
    pub const fn is_ordinary(&self) -> bool {
        !matches!(self, Self::Unreadable(_) | Self::Damaged(_))
    }

    /// What the file says all the same.
    pub fn heard(&self) -> Heard {
        match self {
            Self::Over(heard) | Self::Old { heard, .. } | Self::NoGuilds { heard, .. } => *heard,
            _ => Heard::default(),
        }
    }
}

impl SessionFile {
    /// Collects what to save.
    pub fn new(
        now: UnixMillis,
        token: &str,
        shards: Vec<ShardSession>,
        us: Option<CurrentUser>,
        gaps: Vec<Gap>,
    ) -> Self {
        Self {
            version: VERSION,
            written: now.0,
            token: fingerprint(token),
            us,
            shards,
            gaps,
            alive: None,
            is_over: false,
        }
    }

    /// How long the process that left it heard what was asked.
    pub fn heard(&self) -> Heard {
        let shards = self.shards.iter();
        let unfinished = shards.filter_map(|shard| shard.unfinished_since);
        let whole_until = UnixMillis(unfinished.fold(self.written, i64::min));
        Heard {
            alive: Some(UnixMillis(self.late())),
            whole_until: (!self.is_over).then_some(whole_until),
        }
    }

    /// The same where nobody takes over the sessions, and with them what is known of outages.
    fn heard_in_all_servers(&self) -> Heard {
        let outages = self.shards.iter().flat_map(|shard| shard.outages.values());
        let heard = self.heard();
        let whole_until = |until: UnixMillis| UnixMillis(outages.copied().fold(until.0, i64::min));
        Heard {
            whole_until: heard.whole_until.map(whole_until),
            ..heard
        }
    }

    fn late(&self) -> i64 {
        self.alive.unwrap_or_default().max(self.written)
    }
}

impl Left {
    /// Restores the guild state.
    pub fn restore(&mut self, guild_state: &GuildState) {
        if let Some(us) = self.session.us.clone() {
            guild_state.set_current_user(us);
        }
        guild_state.restore(std::mem::take(&mut self.guilds));
    }
}

/// Reads both files.
///
/// # Errors
/// Why they cannot be used.
pub fn load(path: &Path, token: &str, now: UnixMillis) -> Result<Left, Absent> {
    let session = load_session(path)?;
    if session.token != fingerprint(token) {
        return Err(Absent::OtherToken);
    }
    let heard = session.heard_in_all_servers();
    if session.is_over {
        return Err(Absent::Over(heard));
    }
    let age = now.since(UnixMillis(session.written));
    if age.unsigned_abs() > u64::try_from(MOST_AGE.as_millis()).unwrap_or(u64::MAX) {
        return Err(Absent::Old {
            seconds: age / 1_000,
            heard,
        });
    }
    // Without a session to resume, Discord sends the servers again.
    if session.shards.is_empty() {
        return Ok(Left {
            session,
            guilds: Vec::new(),
        });
    }
    match load_guilds(path, token) {
        Ok(guilds) => Ok(Left { session, guilds }),
        Err(error) => Err(Absent::NoGuilds {
            error: Box::new(error),
            heard,
        }),
    }
}

fn load_session(path: &Path) -> Result<SessionFile, Absent> {
    let session: SessionFile = serde_json::from_slice(&fs::read(path).map_err(absent)?)
        .map_err(|error| Absent::Damaged(Some(error)))?;
    if session.version != VERSION {
        return Err(Absent::Damaged(None));
    }
    Ok(session)
}

fn load_guilds(path: &Path, token: &str) -> Result<Vec<PartialGuild>, Absent> {
    let file = File::open(path.with_file_name(GUILD_FILE)).map_err(absent)?;
    let mut lines = BufReader::new(file).lines();
    let first = lines.next().transpose().map_err(Absent::Unreadable)?;
    let first: GuildFile = serde_json::from_str(&first.unwrap_or_default())
        .map_err(|error| Absent::Damaged(Some(error)))?;
    if first != GuildFile::of(token) {
        return Err(Absent::Damaged(None));
    }
    let guilds = lines.map(|line| {
        let line = line.map_err(Absent::Unreadable)?;
        serde_json::from_str(&line).map_err(|error| Absent::Damaged(Some(error)))
    });
    guilds.collect()
}

fn absent(error: io::Error) -> Absent {
    match error.kind() {
        io::ErrorKind::NotFound => Absent::Missing,
        _ => Absent::Unreadable(error),
    }
}

impl GuildFile {
    fn of(token: &str) -> Self {
        Self {
            version: GUILDS_VERSION,
            token: fingerprint(token),
        }
    }
}

/// How long what is written has to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// Beyond the process: it is in the system's hands.
    Process,
    /// Beyond a loss of power, too.
    System,
}

/// Writes the session file: a reader finds the old one or the new one. Only its owner may
/// read it.
///
/// # Errors
/// The file system's error.
pub fn save(path: &Path, file: &SessionFile, lasts: Lasts) -> io::Result<()> {
    replace(path, lasts, |new| {
        serde_json::to_writer(new, file).map_err(io::Error::from)
    })
}

/// Writes the guild file in the same way, without titles of threads whose owners opted out.
///
/// # Errors
/// The file system's error.
pub fn save_guilds(
    path: &Path,
    token: &str,
    guild_state: &GuildState,
    opted_out: &OptedOut,
    lasts: Lasts,
) -> io::Result<()> {
    replace(&path.with_file_name(GUILD_FILE), lasts, |new| {
        let mut line = |value: &[u8]| {
            new.write_all(value)?;
            new.write_all(b"\n")
        };
        line(&serde_json::to_vec(&GuildFile::of(token))?)?;
        for id in guild_state.guilds() {
            if let Some(mut guild) = guild_state.snapshot(id) {
                untitle(&mut guild, opted_out);
                line(&serde_json::to_vec(&guild)?)?;
            }
        }
        Ok(())
    })
}

/// Notes that questions are this process's from now on: killed before its first READY is noted,
/// it leaves at least that to the next one.
///
/// # Errors
/// The file system's error.
pub fn begin(
    path: &Path,
    token: &str,
    now: UnixMillis,
    alive: Option<UnixMillis>,
) -> io::Result<()> {
    let begun = SessionFile::new(now, token, Vec::new(), None, Vec::new());
    let alive = alive.map(|alive| alive.0);
    save(path, &SessionFile { alive, ..begun }, Lasts::Process)
}

/// Notes how late it is while nothing else may be noted, so that what is stored meanwhile lies before
/// what the next process has missed even if the clock is set back. Without a file nothing happens.
///
/// # Errors
/// The file system's error.
pub fn note_alive(path: &Path, now: UnixMillis, lasts: Lasts) -> io::Result<()> {
    match load_session(path) {
        Ok(left) => {
            let alive = Some(left.late().max(now.0));
            save(path, &SessionFile { alive, ..left }, lasts)
        }
        Err(_) => Ok(()),
    }
}

/// Another process may answer in our place, or the store is another one: the next process
/// begins a new session and looks for no questions that came before it. What stays is how late
/// it was, so that it confirms what is stored until then even if the clock has been set back.
///
/// # Errors
/// The file system's error.
pub fn forget(path: &Path, now: UnixMillis) -> io::Result<()> {
    remove(&path.with_file_name(GUILD_FILE))?;
    let Ok(left) = load_session(path) else {
        return remove(path);
    };
    let over = SessionFile {
        written: left.late().max(now.0),
        shards: Vec::new(),
        gaps: Vec::new(),
        alive: None,
        is_over: true,
        ..left
    };
    save(path, &over, Lasts::System)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// A reader finds the old file or the new one; only its owner may read it.
pub(super) fn replace(
    path: &Path,
    lasts: Lasts,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)?;
    }
    let beside = beside(path, ".new");
    let mut new = BufWriter::new(create_private(&beside)?);
    write(&mut new)?;
    let new = new.into_inner().map_err(io::IntoInnerError::into_error)?;
    if lasts == Lasts::System {
        new.sync_all()?;
    }
    fs::rename(&beside, path)?;
    if lasts == Lasts::System {
        // The rename is durable only once the folder is synced.
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Clears titles written by owners who opted out. Only threads name their
/// owner.
fn untitle(guild: &mut PartialGuild, opted_out: &OptedOut) {
    let channels = guild.channels.iter_mut().chain(&mut guild.threads);
    let theirs = channels.filter(|one| one.owner_id.is_some_and(|owner| opted_out.contains(owner)));
    theirs.for_each(|thread| thread.name.clear());
}

/// A short hash of the token that does not reveal it.
fn fingerprint(token: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(FINGERPRINT_KEY) else {
        return String::new();
    };
    mac.update(token.as_bytes());
    HEXLOWER.encode(&mac.finalize().into_bytes()[..FINGERPRINT_BYTES])
}

/// The path with `suffix` appended to its name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.mode(0o600).open(path)
}

#[cfg(test)]
mod tests;
