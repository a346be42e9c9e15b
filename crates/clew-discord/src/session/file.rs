//! The session file: one JSON object in our own format, with a version.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::{Gap, Missed, ShardSession};
use crate::guild_state::{CurrentUser, GuildState, PartialGuild};
use clew_context::model::{ApplicationId, MessageId, OptedOut, UnixMillis, UserId};

/// Raised with every change of format; a file of another version counts as
/// damaged.
const VERSION: u32 = 1;
/// Discord keeps a session for minutes; resuming an older one is not worth
/// trying.
const MOST_AGE: Duration = Duration::from_mins(5);
/// Keeps these fingerprints distinct from any other hash of the token.
const FINGERPRINT_KEY: &[u8] = b"clew session file, fingerprint of the token";

/// Enough to tell tokens apart.
const FINGERPRINT_BYTES: usize = 12;

/// What one process leaves for the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionFile {
    version: u32,
    /// When it was written, in Unix milliseconds.
    pub written: i64,
    /// Keyed hash of the token it belongs to.
    pub token: String,
    /// Our user.
    pub user: UserId,
    /// Its name.
    pub name: String,
    /// Our application.
    pub application: ApplicationId,
    /// One session per shard.
    pub shards: Vec<ShardSession>,
    /// Answered messages, oldest first: their events may be replayed.
    pub answered: Vec<MessageId>,
    /// The guild state, which resuming does not send again.
    pub guilds: Vec<PartialGuild>,
    /// Gaps that are not made up for; absent in files of earlier versions, where any may be.
    #[serde(default)]
    pub gaps: Option<Vec<Gap>>,
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
    /// Too old: Discord will have dropped the session.
    #[error("the session file is {0} s old, sessions last for minutes")]
    Old(i64),
}

impl Absent {
    /// Expected after a first start, a long pause or a new token: not a fault.
    pub const fn is_ordinary(&self) -> bool {
        match self {
            Self::Missing | Self::OtherToken | Self::Old(_) => true,
            Self::Unreadable(_) | Self::Damaged(_) => false,
        }
    }
}

impl SessionFile {
    /// Collects what to save; `None` before the first READY. Leaves out titles
    /// of threads whose owners opted out.
    pub fn new(
        now: UnixMillis,
        token: &str,
        shards: Vec<ShardSession>,
        answered: Vec<MessageId>,
        guild_state: &GuildState,
        opted_out: &OptedOut,
        gaps: Vec<Gap>,
    ) -> Option<Self> {
        let us = guild_state.current_user()?;
        let mut guilds = guild_state.snapshot();
        untitle(&mut guilds, opted_out);
        Some(Self {
            version: VERSION,
            written: now.0,
            token: fingerprint(token),
            user: us.user,
            name: us.name,
            application: us.application,
            shards,
            answered,
            guilds,
            gaps: Some(gaps),
        })
    }

    /// The gaps that the process before has left.
    pub fn gaps(&self) -> Vec<Gap> {
        let everything = || {
            vec![Gap {
                at: self.written,
                missed: Missed::Everything,
            }]
        };
        self.gaps.clone().unwrap_or_else(everything)
    }

    /// Restores the guild state.
    pub fn restore(&mut self, guild_state: &GuildState) {
        guild_state.set_current_user(CurrentUser {
            user: self.user,
            name: self.name.clone(),
            application: self.application,
        });
        guild_state.restore(std::mem::take(&mut self.guilds));
    }
}

/// Reads the file.
///
/// # Errors
/// Why it cannot be used.
pub fn load(path: &Path, token: &str, now: UnixMillis) -> Result<SessionFile, Absent> {
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Absent::Missing,
        _ => Absent::Unreadable(error),
    })?;
    let file: SessionFile =
        serde_json::from_str(&text).map_err(|error| Absent::Damaged(Some(error)))?;
    if file.version != VERSION {
        return Err(Absent::Damaged(None));
    }
    if file.token != fingerprint(token) {
        return Err(Absent::OtherToken);
    }
    let age = now.since(UnixMillis(file.written));
    if age.unsigned_abs() > u64::try_from(MOST_AGE.as_millis()).unwrap_or(u64::MAX) {
        return Err(Absent::Old(age / 1_000));
    }
    Ok(file)
}

/// Writes the file atomically: a reader finds the old one or the new one. Only
/// its owner may read it.
///
/// # Errors
/// The file system's error.
pub fn save(path: &Path, file: &SessionFile) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        fs::create_dir_all(folder)?;
    }
    let beside = beside(path, ".new");
    let mut new = create_private(&beside)?;
    new.write_all(&serde_json::to_vec(file)?)?;
    new.sync_all()?;
    fs::rename(&beside, path)?;
    // The rename is durable only once the folder is synced.
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Clears titles written by owners who opted out. Only threads name their
/// owner.
fn untitle(guilds: &mut [PartialGuild], opted_out: &OptedOut) {
    let channels = guilds.iter_mut().flat_map(|guild| &mut guild.channels);
    let theirs = channels.filter(|one| one.owner_id.is_some_and(|owner| opted_out.contains(owner)));
    theirs.for_each(|thread| thread.name.clear());
}

/// A short hash of the token that does not reveal it.
fn fingerprint(token: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(FINGERPRINT_KEY) else {
        return String::new();
    };
    mac.update(token.as_bytes());
    let hash = mac.finalize().into_bytes();
    let mut text = String::with_capacity(FINGERPRINT_BYTES * 2);
    for byte in hash.iter().take(FINGERPRINT_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
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
mod tests {
    use clew_context::model::GuildId;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

    fn file() -> SessionFile {
        let guild_state = GuildState::default();
        guild_state.set_current_user(CurrentUser {
            user: UserId::new(1),
            name: "clew".to_owned(),
            application: ApplicationId::new(2),
        });
        guild_state.apply(
            "GUILD_CREATE",
            r#"{"id":"3","name":"G","owner_id":"4","roles":[{"id":"3","name":"@everyone",
            "permissions":"1024"}],"channels":[{"id":"5","type":0,"name":"general",
            "permission_overwrites":[{"id":"3","type":0,"allow":"0","deny":"1024"}]}],
            "members":[{"user":{"id":"1","username":"clew"},"roles":["6"]}]}"#,
        );
        let shards = vec![ShardSession {
            shard: 0,
            shards: 1,
            id: "abc".to_owned(),
            resume_url: Some("ws://127.0.0.1:1".to_owned()),
            sequence: 42,
        }];
        let answered = vec![MessageId::new(7)];
        SessionFile::new(
            NOW,
            "token",
            shards,
            answered,
            &guild_state,
            &OptedOut::default(),
            vec![gap(Missed::Guild(GuildId::new(3)))],
        )
        .unwrap()
    }

    fn gap(missed: Missed) -> Gap {
        Gap { at: NOW.0, missed }
    }

    /// Who left it kept no account of what it had missed.
    #[test]
    fn without_gaps_everything_is_one() {
        let mut value = serde_json::to_value(file()).unwrap();
        let read = |value: &serde_json::Value| -> SessionFile {
            serde_json::from_value(value.clone()).unwrap()
        };
        assert_eq!(read(&value).gaps(), [gap(Missed::Guild(GuildId::new(3)))]);
        value.as_object_mut().unwrap().remove("gaps");
        assert_eq!(read(&value).gaps(), [gap(Missed::Everything)]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("var/session.json");
        let written = file();
        assert_eq!(written.guilds[0].channels.len(), 1);
        save(&path, &written).unwrap();
        save(&path, &written).unwrap();
        let mut read = load(&path, "token", NOW).unwrap();
        assert_eq!(read, written);
        let guild_state = GuildState::default();
        read.restore(&guild_state);
        assert_eq!(guild_state.snapshot(), written.guilds);
        assert_eq!(guild_state.current_user().unwrap().user, UserId::new(1));
        let names: Vec<_> = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["session.json"]);
    }

    #[test]
    fn only_the_owner_may_read_it_and_the_token_is_not_in_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.json");
        save(&path, &file()).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(
            !fs::read_to_string(&path)
                .unwrap()
                .contains("\"token\":\"token\"")
        );
    }

    #[track_caller]
    fn check(text: &str, token: &str, now: i64, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.json");
        fs::write(&path, text).unwrap();
        let found = load(&path, token, UnixMillis(now)).map(|_| ());
        let found = found.map_or_else(|absent| absent.to_string(), |()| "usable".to_owned());
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn a_file_that_is_of_no_use_says_why() {
        let good = serde_json::to_string(&file()).unwrap();
        check(&good, "token", NOW.0, "usable");
        check(&good, "token", NOW.0 + 299_000, "usable");
        check(&good, "token", NOW.0 + 301_000, "301 s old");
        check(&good, "token", NOW.0 - 301_000, "s old");
        check(&good, "another", NOW.0, "another token");
        check(&good[..good.len() / 2], "token", NOW.0, "damaged");
        check("", "token", NOW.0, "damaged");
        check(
            &good.replacen("\"version\":1", "\"version\":2", 1),
            "token",
            NOW.0,
            "damaged",
        );
        let missing = load(Path::new("/nowhere/session.json"), "token", NOW);
        assert!(matches!(missing, Err(Absent::Missing)));
    }

    #[test]
    fn titles_of_people_who_opted_out_are_not_written() {
        let guild_state = GuildState::default();
        file().restore(&guild_state);
        for (thread, owner) in [(8, 20), (9, 21)] {
            let thread = format!(
                r#"{{"id":"{thread}","guild_id":"3","type":11,"parent_id":"5","owner_id":"{owner}",
                "name":"title of {owner}"}}"#
            );
            guild_state.apply("THREAD_CREATE", &thread);
        }
        let opted_out = [UserId::new(20)].into_iter().collect();
        let file = SessionFile::new(
            NOW,
            "token",
            Vec::new(),
            Vec::new(),
            &guild_state,
            &opted_out,
            Vec::new(),
        );
        let text = serde_json::to_string(&file.unwrap()).unwrap();
        assert!(
            !text.contains("title of 20") && text.contains("title of 21"),
            "{text}"
        );
    }
}
