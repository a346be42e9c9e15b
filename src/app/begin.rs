//! What a start needs of the disk, before the store: the lock, keys and telemetry.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::cluster::SHARED;
use super::secret::{self, Keys};
use super::state_folder::StateFolder;
use super::{CLAIM_FILE, Error, SESSION_FILE, alerts, wiring};
use crate::config::{Config, TelemetryIds};
use crate::telemetry::{self, Guard, IdStyle, Telemetry, with_sources};
use clew_context::model::Clock;
use clew_discord::session::{LockError, SessionLock};
use clew_store::close_files;

/// The pause between two tries of what a full disk refused.
const FULL_DISK_PAUSE: Duration = Duration::from_secs(10);

/// A start that has what it needs.
pub(super) struct Begun {
    pub(super) keys: Keys,
    pub(super) telemetry: Telemetry,
    pub(super) guard: Guard,
}

/// The state folder is claimed.
pub(super) fn begin(config: &Config, folder: &StateFolder, clock: &Clock) -> Result<Begun, Error> {
    close_to_others(config, folder);
    let keys = Keys {
        frames: key(folder, secret::FRAME_KEY)?,
        claims: key(folder, secret::CLAIM_KEY)?,
    };
    let ids = match config.telemetry.ids {
        TelemetryIds::Plain => IdStyle::Plain,
        TelemetryIds::Keyed => IdStyle::keyed(key(folder, secret::PSEUDONYM_KEY)?),
    };
    let settings = wiring::telemetry(config, ids);
    let (telemetry, guard) = Telemetry::start(&settings, Arc::clone(clock))?;
    Ok(Begun {
        keys,
        telemetry,
        guard,
    })
}

/// Claims `STATE_DIR`: no other bot can run from it while the lock is held.
///
/// # Errors
/// If a bot is running from it already, or the folder cannot be written to.
pub fn claim(config: &Config) -> Result<SessionLock, LockError> {
    SessionLock::take(&config.state_dir.join(SESSION_FILE))
}

/// Closes to other accounts what was made while they could open it. The stores see to theirs.
fn close_to_others(config: &Config, folder: &StateFolder) {
    let files = SHARED.into_iter().chain([CLAIM_FILE]);
    let files = files.map(|name| folder.path(name));
    let told = config.state_dir.join(alerts::FILE);
    close_files(folder.dir(), files.chain([told]));
    let telemetry = &config.telemetry.dir;
    let files = fs::read_dir(telemetry).into_iter().flatten().flatten();
    let files = files.map(|entry| entry.path());
    let is_ours = |path: &PathBuf| telemetry::is_of_ours(path);
    close_files(telemetry, files.filter(is_ours));
}

/// Tries again what a full disk refuses: it is not somebody else who has to act, and a
/// service manager does not start again what ended with code 2.
pub(super) async fn once_there_is_room<T>(
    mut attempt: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    loop {
        let error = match attempt() {
            Err(error) if is_of_full_disk(&error) => error,
            done => return done,
        };
        tracing::warn!(error = %with_sources(&error), seconds = FULL_DISK_PAUSE.as_secs(),
            "the disk is full: trying again");
        sleep(FULL_DISK_PAUSE).await;
    }
}

pub(super) fn is_of_full_disk(error: &Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        let kind = error.downcast_ref().map(std::io::Error::kind);
        if matches!(
            kind,
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        ) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A key in the state folder, made at the first start.
fn key(folder: &StateFolder, file: &str) -> Result<Vec<u8>, Error> {
    secret::load(folder.dir(), file).map_err(|source| Error::State {
        path: folder.dir().to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn state(kind: ErrorKind) -> Error {
        let source = io::Error::from(kind);
        Error::State {
            path: "var".into(),
            source,
        }
    }

    /// Only a full disk is waited for; the rest somebody has to see to.
    #[tokio::test(start_paused = true)]
    async fn a_start_waits_for_room_on_the_disk() {
        let mut left = vec![
            Ok(7),
            Err(state(ErrorKind::QuotaExceeded)),
            Err(state(ErrorKind::StorageFull)),
        ];
        let got = once_there_is_room(|| left.pop().unwrap()).await;
        assert_eq!(got.unwrap(), 7);
        let mut tries = 0;
        let refused = once_there_is_room::<()>(|| {
            tries += 1;
            Err(state(ErrorKind::PermissionDenied))
        });
        assert!(matches!(refused.await, Err(Error::State { .. })));
        assert_eq!(tries, 1);
    }
}
